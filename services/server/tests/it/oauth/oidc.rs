//! Sign-in at an identity provider: who comes in, and which tokens are believed.

use cairn_server::oauth::SignIn;
use cairn_server::oauth::oidc::Oidc;
use serde_json::{Value, json};

use super::Hands;
use super::provider::Provider;
use crate::support::browser::{Browser, hidden, location};
use crate::support::{Reply, TestApp, forged};

async fn start(domains: &[&str]) -> (TestApp, Provider) {
    let (app, provider, _) = start_at(domains).await;
    (app, provider)
}

async fn start_at(domains: &[&str]) -> (TestApp, Provider, Hands) {
    let hands = Hands::default();
    let provider = Provider::start().await;
    let settings = provider.settings(domains);
    let how = |it: SignIn| SignIn {
        oidc: Some(Oidc::new(settings).expect("a provider")),
        ..it
    };
    let app = TestApp::signing_in(hands.clock(), how).await;
    (app, provider, hands)
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

/// Gives the owner of the other tenant an address.
async fn claim(app: &TestApp, email: &str) {
    sqlx::query("update members set email = $2 where tenant_id = $1 and role = 'owner'")
        .bind(app.db.twins.1.tenant.key())
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
    claim(&app, "ben@anywhere.example").await;
    let (_, reply) = sign_in(&app, &provider, ben).await;
    assert!(reply.text.contains("Choose a team"), "{reply:?}");
}

const CHOOSE: &str = "/oauth/oidc/choose";

#[tokio::test]
async fn whose_address_several_teams_have_added_chooses_one() {
    let (app, provider) = start(&["acme.example"]).await;
    address(&app, "ben@acme.example").await;
    claim(&app, "BEN@acme.example").await;
    let (one, two) = app.db.twins;
    let mut admin = app.db.admin().await;
    for (mine, other, handle) in [(one, two, "ben"), (two, one, "ada")] {
        let lines = "select count(*) from audit where tenant_id = $1";
        let told = async |admin: &mut sqlx::PgConnection| -> i64 {
            let told = sqlx::query_scalar(lines).bind(other.tenant.key());
            told.fetch_one(admin).await.expect("a count")
        };
        let before = told(&mut admin).await;
        let (mut browser, page) = sign_in(&app, &provider, json!({})).await;
        assert_eq!(page.status, 200, "{page:?}");
        for shown in ["acme, as ben", "umbra, as ada"] {
            assert!(page.text.contains(shown), "{shown}: {}", page.text);
        }
        // Nobody is signed in yet.
        let still = browser.get("/device").await;
        assert!(still.text.contains("One-time"), "{}", still.text);
        let team = mine.tenant.uuid().to_string();
        let done = browser.submit(&page, CHOOSE, &[("team", &team)]).await;
        assert_eq!(location(&done), "/device", "{done:?}");
        let page = browser.get("/device").await.text;
        let shown = format!("<strong>{handle}</strong>");
        assert!(page.contains(&shown), "{page}");
        // The other team learns nothing of it.
        assert_eq!(told(&mut admin).await, before);
    }
}

#[tokio::test]
async fn a_choice_is_among_ones_own_teams_in_the_browser_that_signed_in() {
    let (app, provider, hands) = start_at(&["acme.example"]).await;
    address(&app, "ben@acme.example").await;
    claim(&app, "ben@acme.example").await;
    let team = app.db.twins.0.tenant.uuid().to_string();
    let (mut browser, page) = sign_in(&app, &provider, json!({})).await;
    // No team of theirs: they are asked again.
    let foreign = uuid::Uuid::now_v7().to_string();
    for odd in ["", "x", &foreign] {
        let again = browser.submit(&page, CHOOSE, &[("team", odd)]).await;
        assert_eq!(again.status, 403, "{odd}");
        assert!(again.text.contains("acme, as ben"), "{odd}: {}", again.text);
    }
    // Another browser that got hold of the page, and other people's pages.
    let mut other = Browser::new(&app.base);
    let others = other.get("/device").await;
    let offer = hidden(&page.text)
        .into_iter()
        .find_map(|(name, value)| (name == "offer").then_some(value))
        .expect("an offer");
    let fields = [("offer", offer.as_str()), ("team", team.as_str())];
    let stolen = other.submit(&others, CHOOSE, &fields).await;
    assert_eq!(stolen.status, 403);
    assert!(stolen.text.contains("One-time"), "{}", stolen.text);
    let made_up = forged(&offer);
    for (name, value) in [("form", "x"), ("offer", &made_up), ("offer", "")] {
        let fields = [(name, value), ("team", team.as_str())];
        let refused = browser.submit(&page, CHOOSE, &fields).await;
        assert_eq!(refused.status, 403, "{name} {value}");
        assert!(refused.text.contains("One-time"), "{}", refused.text);
    }
    // Who was removed meanwhile is not let in there.
    let owner = app.owner().await;
    assert_eq!(owner.delete("/v1/members/ben").await.status, 204);
    let gone = browser.submit(&page, CHOOSE, &[("team", &team)]).await;
    assert_eq!(gone.status, 403);
    assert!(!gone.text.contains("acme, as ben"), "{}", gone.text);
    let (_, straight) = sign_in(&app, &provider, json!({})).await;
    assert_eq!(location(&straight), "/device", "one team is left");
    // What was offered is not so for ever.
    let other_team = app.db.twins.1.tenant.uuid().to_string();
    hands.forward(601);
    let late = browser
        .submit(&page, CHOOSE, &[("team", &other_team)])
        .await;
    assert_eq!(late.status, 403);
    assert!(late.text.contains("One-time"), "{}", late.text);
}
