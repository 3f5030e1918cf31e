//! From a program's request over a member's yes to tokens.

use serde_json::json;

use super::{
    LetIn, REDIRECT, VERIFIER, authorize_path, code_for, error, fetch, led_with, register, start,
    token,
};
use crate::support::TestApp;
use crate::support::browser::{Browser, location};

#[tokio::test]
async fn a_member_lets_a_program_in() {
    let app = TestApp::start().await;
    let client = register(&app, "http://127.0.0.1/callback").await;
    let path = authorize_path(
        &client,
        &[("scope", "memory:read memory:write offline_access")],
    );
    let mut browser = Browser::new(&app.base);
    let code = app.sign_in_code("ben").await;
    let page = browser.sign_in(&path, &code).await;
    for shown in ["Probe", "ben", "acme", "127.0.0.1", "on your own machine"] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    assert!(!page.text.contains("tool calls"), "{}", page.text);
    let policy = page.headers["content-security-policy"]
        .to_str()
        .expect("a text");
    assert!(
        policy.contains("form-action 'self' http://127.0.0.1:5555;"),
        "{policy}"
    );

    let done = browser.submit(&page, &path, &[("decision", "allow")]).await;
    assert!(location(&done).starts_with(REDIRECT), "{done:?}");
    assert_eq!(led_with(&done, "state").as_deref(), Some("a state"));
    assert_eq!(led_with(&done, "iss").as_deref(), Some(app.base.as_str()));
    let code = led_with(&done, "code").expect("a code");
    let answer = fetch(&app.base, &client, &code).await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    let let_in = LetIn::of(client, answer.ok());
    assert_eq!(let_in.answer["token_type"], "Bearer");
    assert_eq!(let_in.answer["expires_in"], 600);
    assert_eq!(let_in.answer["scope"], "memory:read memory:write");

    let caller = let_in.caller(&app.base);
    let me = caller.get("/v1/me").await.ok();
    assert_eq!(
        (&me["handle"], &me["tenant"]),
        (&json!("ben"), &json!("acme"))
    );
    assert_eq!(me["scopes"], json!(["memory:read", "memory:write"]));
    let id = caller.remember("seen by a program", "").await;
    let seen = app
        .owner()
        .await
        .get(&format!("/v1/observations/{id}"))
        .await
        .ok();
    assert_eq!(seen["author"], "ben");
    // What it may not do it is told in full.
    let refused = caller.work("list", json!({"n": 1})).await;
    assert_eq!(refused.code(), "insufficient_scope");
}

#[tokio::test]
async fn a_member_may_say_no() {
    let app = TestApp::start().await;
    let client = register(&app, REDIRECT).await;
    let path = authorize_path(&client, &[]);
    let mut browser = Browser::new(&app.base);
    let page = browser.sign_in(&path, &app.sign_in_code("ben").await).await;
    let done = browser.submit(&page, &path, &[("decision", "deny")]).await;
    assert_eq!(led_with(&done, "error").as_deref(), Some("access_denied"));
    assert_eq!(led_with(&done, "iss").as_deref(), Some(app.base.as_str()));
    assert_eq!(led_with(&done, "code"), None);
}

#[tokio::test]
async fn a_request_that_is_wrong_is_told_to_the_program_or_to_the_person() {
    let app = TestApp::start().await;
    let client = register(&app, REDIRECT).await;
    let mut browser = Browser::new(&app.base);
    let other = format!("{}/other", app.base);
    for (changes, told) in [
        (("response_type", "token"), "unsupported_response_type"),
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge", "short"), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("code_challenge_method", ""), "invalid_request"),
        (("scope", "memory:everything"), "invalid_scope"),
        (
            ("resource", "https://other.example.com/mcp"),
            "invalid_target",
        ),
        (("resource", other.as_str()), "invalid_target"),
    ] {
        let reply = browser.get(&authorize_path(&client, &[changes])).await;
        assert!(location(&reply).starts_with(REDIRECT), "{changes:?}");
        assert_eq!(
            led_with(&reply, "error").as_deref(),
            Some(told),
            "{changes:?}"
        );
        assert_eq!(led_with(&reply, "state").as_deref(), Some("a state"));
    }
    for changes in [
        ("client_id", "nobody"),
        ("client_id", "https://127.0.0.1/client.json"),
        ("client_id", "cairn"),
        ("redirect_uri", "http://127.0.0.1:5555/elsewhere"),
        ("redirect_uri", "https://evil.example/callback"),
    ] {
        let reply = browser.get(&authorize_path(&client, &[changes])).await;
        assert_eq!(reply.status, 400, "{changes:?}");
        assert!(reply.headers.get("location").is_none(), "{changes:?}");
    }
}

#[tokio::test]
async fn a_code_is_for_one_program_and_its_verifier_within_a_minute() {
    let (app, hands) = start().await;
    let client = register(&app, REDIRECT).await;
    let stranger = register(&app, REDIRECT).await;
    let code = code_for(&app, "ben", &client, &[]).await;
    let mcp = format!("{}/mcp", app.base);
    for (name, value, told) in [
        ("client_id", stranger.as_str(), "invalid_grant"),
        (
            "code_verifier",
            "another-verifier-of-at-least-43-characters-00",
            "invalid_grant",
        ),
        (
            "redirect_uri",
            "http://127.0.0.1:5556/callback",
            "invalid_grant",
        ),
        ("code", "unknown", "invalid_grant"),
        ("code", "", "invalid_request"),
        ("code_verifier", "", "invalid_request"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("resource", "https://other.example.com", "invalid_target"),
    ] {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("client_id", client.as_str()),
            ("code", code.as_str()),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
        let reply = token(&app.base, &fields).await;
        assert_eq!(
            (reply.status.as_u16(), error(&reply).as_str()),
            (400, told),
            "{name}={value}"
        );
    }
    // None of them used it up. It may ask for less than was agreed to.
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", code.as_str()),
        ("code_verifier", VERIFIER),
        ("resource", mcp.as_str()),
    ];
    let narrow = LetIn::of(client.clone(), token(&app.base, &fields).await.ok());
    assert_eq!(
        narrow.caller(&app.base).get("/v1/me").await.code(),
        "unauthenticated"
    );

    let late = code_for(&app, "ben", &client, &[]).await;
    hands.forward(61);
    assert_eq!(
        error(&fetch(&app.base, &client, &late).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_code_that_comes_twice_ends_what_it_gave() {
    let app = TestApp::start().await;
    let client = register(&app, REDIRECT).await;
    let code = code_for(&app, "ben", &client, &[]).await;
    let let_in = LetIn::of(client.clone(), fetch(&app.base, &client, &code).await.ok());
    assert_eq!(let_in.caller(&app.base).get("/v1/me").await.status, 200);
    assert_eq!(
        error(&fetch(&app.base, &client, &code).await),
        "invalid_grant"
    );
    let ended = let_in.caller(&app.base).get("/v1/me").await;
    assert_eq!(ended.code(), "credential_revoked");
    let refreshed = let_in.refresh_with(&app.base, &let_in.refresh).await;
    assert_eq!(error(&refreshed), "invalid_grant");
}

#[tokio::test]
async fn a_token_for_a_part_works_there_only() {
    let app = TestApp::start().await;
    let resource = format!("{}/mcp", app.base);
    let mcp = LetIn::by(&app, "ben", &[("resource", &resource)]).await;
    let (text, is_error) = mcp
        .caller(&app.base)
        .tool("work_state_read", json!({}))
        .await;
    assert!(!is_error, "{text}");
    let elsewhere = mcp.caller(&app.base).get("/v1/me").await;
    assert_eq!(
        (elsewhere.status.as_u16(), elsewhere.code().as_str()),
        (401, "unauthenticated")
    );
    let all = LetIn::by(&app, "ben", &[]).await;
    assert_eq!(all.caller(&app.base).get("/v1/me").await.status, 200);
    let (_, is_error) = all
        .caller(&app.base)
        .tool("work_state_read", json!({}))
        .await;
    assert!(!is_error);
    // A new token of the narrow grant is as narrow.
    let wide = [
        ("grant_type", "refresh_token"),
        ("client_id", mcp.client.as_str()),
        ("refresh_token", mcp.refresh.as_str()),
        ("resource", app.base.as_str()),
    ];
    assert_eq!(error(&token(&app.base, &wide).await), "invalid_target");
}

#[tokio::test]
async fn a_role_limits_what_a_program_may_do() {
    let app = TestApp::start().await;
    let everything = "memory:read memory:write tenant:admin tenant:own";
    let let_in = LetIn::by(&app, "ben", &[("scope", everything)]).await;
    assert_eq!(let_in.answer["scope"], "memory:read memory:write");
    let refused = let_in
        .caller(&app.base)
        .post("/v1/cache/context/clear", json!({}))
        .await;
    assert_eq!(refused.code(), "insufficient_scope");
    // Rights are read from the row: a member who becomes a reader only reads.
    sqlx::query("update members set role = 'reader' where principal_id = $1")
        .bind(app.db.twins.0.member.key)
        .execute(&mut app.db.admin().await)
        .await
        .expect("demoted");
    app.app.rights_changed(app.db.twins.0.tenant);
    let me = let_in.caller(&app.base).get("/v1/me").await.ok();
    assert_eq!(me["scopes"], json!(["memory:read"]));
}
