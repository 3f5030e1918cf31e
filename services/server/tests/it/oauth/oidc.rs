//! Sign-in at an identity provider: who comes in, and which tokens are believed.

use cairn_server::oauth::SignIn;
use cairn_server::oauth::oidc::Oidc;
use serde_json::{Value, json};

use super::Hands;
use super::provider::Provider;
use crate::support::browser::{Browser, location};
use crate::support::{Reply, TestApp};

async fn start(domains: &[&str]) -> (TestApp, Provider) {
    let provider = Provider::start().await;
    let settings = provider.settings(domains);
    let how = |it: SignIn| SignIn {
        oidc: Some(Oidc::new(settings).expect("a provider")),
        ..it
    };
    let app = TestApp::signing_in(Hands::default().clock(), how).await;
    (app, provider)
}

/// Gives a member of the first tenant an address.
async fn address(app: &TestApp, email: &str) {
    sqlx::query("update members set email = $2 where principal_id = $1")
        .bind(app.db.twins.0.member.key)
        .bind(email)
        .execute(&mut app.db.admin().await)
        .await
        .expect("an address");
}

/// Goes to the provider and back with a token that says `claims`.
async fn sign_in(app: &TestApp, provider: &Provider, claims: Value) -> (Browser, Reply) {
    let mut browser = Browser::new(&app.base);
    let page = browser.get("/device").await;
    assert!(
        page.text.contains("Sign in with 127.0.0.1"),
        "{}",
        page.text
    );
    let sent = browser.submit(&page, "/oauth/oidc/start", &[]).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    let back = provider.signs_in(&location(&sent), claims);
    let path = back.strip_prefix(&app.base).expect("back to us").to_owned();
    let reply = browser.get(&path).await;
    (browser, reply)
}

#[tokio::test]
async fn a_member_signs_in_by_a_verified_address() {
    let (app, provider) = start(&["acme.example"]).await;
    address(&app, "Ben@acme.example").await;
    let (mut browser, reply) = sign_in(&app, &provider, json!({})).await;
    assert_eq!(location(&reply), "/device", "{reply:?}");
    assert!(
        browser
            .get("/device")
            .await
            .text
            .contains("<strong>ben</strong>")
    );
}

#[tokio::test]
async fn a_token_that_is_not_quite_right_signs_nobody_in() {
    let (app, provider) = start(&["acme.example"]).await;
    address(&app, "ben@acme.example").await;
    let past = chrono::Utc::now().timestamp() - 1;
    for claims in [
        json!({"nonce": "another"}),
        json!({"aud": "another"}),
        json!({"iss": "https://other.example.com"}),
        json!({"exp": past}),
        json!({"email_verified": false}),
        json!({"email_verified": null}),
        json!({"email": null}),
    ] {
        let (mut browser, reply) = sign_in(&app, &provider, claims.clone()).await;
        assert_eq!(reply.status, 502, "{claims}: {reply:?}");
        assert!(
            browser.get("/device").await.text.contains("One-time"),
            "{claims}"
        );
    }
    provider.forge(true);
    let (_, reply) = sign_in(&app, &provider, json!({})).await;
    assert_eq!(reply.status, 502, "{reply:?}");
}

#[tokio::test]
async fn an_answer_is_for_the_browser_that_asked() {
    let (app, provider) = start(&["acme.example"]).await;
    address(&app, "ben@acme.example").await;
    let mut browser = Browser::new(&app.base);
    let page = browser.get("/device").await;
    let sent = browser.submit(&page, "/oauth/oidc/start", &[]).await;
    let back = provider.signs_in(&location(&sent), json!({}));
    let path = back.strip_prefix(&app.base).expect("back to us");
    let mut other = Browser::new(&app.base);
    for changed in [path.to_owned(), path.replace("state=", "state=x")] {
        other.get("/device").await;
        assert_eq!(other.get(&changed).await.status, 403, "{changed}");
    }
    assert_eq!(browser.get(path).await.status, 303);
    // Nobody else's page begins one.
    let page = browser.get("/device").await;
    let forged = browser
        .submit(&page, "/oauth/oidc/start", &[("form", "x")])
        .await;
    assert_eq!(forged.status, 403);
}

#[tokio::test]
async fn only_a_team_that_is_alone_takes_in_whom_it_does_not_know() {
    let (app, provider) = start(&["acme.example"]).await;
    let (_, reply) = sign_in(&app, &provider, json!({"email": "zoe@acme.example"})).await;
    assert!(
        reply.status == 403 && reply.text.contains("is no member"),
        "{reply:?}"
    );
    let (_, reply) = sign_in(&app, &provider, json!({"email": "zoe@evil.example"})).await;
    assert!(reply.text.contains("not of a domain"), "{reply:?}");

    let mut admin = app.db.admin().await;
    sqlx::query("delete from tenants where tenant_id = $1")
        .bind(app.db.twins.1.tenant.key())
        .execute(&mut admin)
        .await
        .expect("alone");
    for (setting, email, handle, role) in [
        ("{}", "ben@acme.example", "ben-2", "reader"),
        (
            r#"{"oidc_default_role": "member"}"#,
            "zoe@acme.example",
            "zoe",
            "member",
        ),
        (
            r#"{"oidc_default_role": "owner"}"#,
            "max@acme.example",
            "max",
            "reader",
        ),
    ] {
        sqlx::query("update tenants set settings = $1::jsonb")
            .bind(setting)
            .execute(&mut admin)
            .await
            .expect("set");
        let (mut browser, _) = sign_in(&app, &provider, json!({"email": email})).await;
        let page = browser.get("/device").await.text;
        assert!(
            page.contains(&format!("<strong>{handle}</strong>")),
            "{page}"
        );
        let is: String = sqlx::query_scalar("select role from members where email = $1")
            .bind(email)
            .fetch_one(&mut admin)
            .await
            .expect("a member");
        assert_eq!(is, role, "{email}");
    }
    // Whoever was removed does not come back by themselves.
    sqlx::query("update members set removed_at = now() where email = 'zoe@acme.example'")
        .execute(&mut admin)
        .await
        .expect("removed");
    let (_, reply) = sign_in(&app, &provider, json!({"email": "zoe@acme.example"})).await;
    assert!(reply.text.contains("was removed"), "{reply:?}");
}

#[tokio::test]
async fn without_domains_members_alone_come_in() {
    let (app, provider) = start(&[]).await;
    address(&app, "ben@anywhere.example").await;
    let ben = json!({"email": "ben@anywhere.example"});
    let (mut browser, _) = sign_in(&app, &provider, ben.clone()).await;
    assert!(
        browser
            .get("/device")
            .await
            .text
            .contains("<strong>ben</strong>")
    );
    let (_, reply) = sign_in(&app, &provider, json!({"email": "zoe@anywhere.example"})).await;
    assert!(reply.text.contains("is no member"), "{reply:?}");
    // An address that two have is nobody's.
    sqlx::query(
        "update members set email = 'ben@anywhere.example' where role = 'owner'
           and tenant_id <> (select tenant_id from members where email = 'ben@anywhere.example')",
    )
    .execute(&mut app.db.admin().await)
    .await
    .expect("an address");
    let (_, reply) = sign_in(&app, &provider, ben).await;
    assert!(reply.text.contains("several teams"), "{reply:?}");
}
