//! Pages: who is signed in, and what keeps others from filling in their forms.

use reqwest::Method;
use serde_json::json;

use super::{LetIn, REDIRECT, authorize_path, register, start};
use crate::support::TestApp;
use crate::support::browser::Browser;

#[tokio::test]
async fn a_sign_in_code_works_once_within_its_time() {
    let (app, hands) = start().await;
    let code = app.sign_in_code("ben").await;
    Browser::new(&app.base).sign_in("/device", &code).await;
    let mut other = Browser::new(&app.base);
    let page = other.get("/device").await;
    let again = other
        .submit(&page, "/oauth/sign-in", &[("code", &code)])
        .await;
    assert_eq!(again.status, 403, "{again:?}");
    let late = app.sign_in_code("ben").await;
    hands.forward(15 * 60);
    let refused = other
        .submit(&page, "/oauth/sign-in", &[("code", &late)])
        .await;
    assert_eq!(refused.status, 403);
    // A newer code takes the place of an older one.
    let (older, newer) = (app.sign_in_code("ben").await, app.sign_in_code("ben").await);
    let refused = other
        .submit(&page, "/oauth/sign-in", &[("code", &older)])
        .await;
    assert_eq!(refused.status, 403);
    let typed = newer.to_lowercase().replace('-', " ");
    let done = other
        .submit(&page, "/oauth/sign-in", &[("code", &typed)])
        .await;
    assert_eq!(done.status, 303, "{done:?}");
}

#[tokio::test]
async fn wrong_sign_in_codes_are_counted_by_address() {
    let (app, hands) = start().await;
    let mut browser = Browser::new(&app.base);
    let page = browser.get("/device").await;
    for _ in 0..5 {
        let wrong = browser
            .submit(&page, "/oauth/sign-in", &[("code", "BCDF")])
            .await;
        assert_eq!(wrong.status, 403);
    }
    let code = app.sign_in_code("ben").await;
    let refused = browser
        .submit(&page, "/oauth/sign-in", &[("code", &code)])
        .await;
    assert_eq!(refused.status, 429);
    hands.forward(60);
    let done = browser
        .submit(&page, "/oauth/sign-in", &[("code", &code)])
        .await;
    assert_eq!(done.status, 303);
}

#[tokio::test]
async fn a_code_for_an_owner_is_made_by_an_owner() {
    let app = TestApp::start().await;
    use cairn_domain::scope::Scope;
    let admin = app.owner_with(&[Scope::TenantAdmin]).await;
    assert_eq!(
        admin.post("/v1/members/ben/code", json!({})).await.status,
        201
    );
    let refused = admin.post("/v1/members/ada/code", json!({})).await;
    assert_eq!(refused.code(), "insufficient_scope");
    let owner = app.owner().await;
    assert_eq!(
        owner.post("/v1/members/ada/code", json!({})).await.status,
        201
    );
    assert_eq!(
        owner.post("/v1/members/zoe/code", json!({})).await.code(),
        "not_found"
    );
    let lines: i64 = sqlx::query_scalar("select count(*) from audit where action = 'member.code'")
        .fetch_one(&mut app.db.admin().await)
        .await
        .expect("a count");
    assert_eq!(lines, 2);
}

#[tokio::test]
async fn a_page_is_shown_in_no_frame_and_loads_nothing() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app.base);
    let page = browser.get("/device").await;
    let header = |name: &str| page.headers[name].to_str().expect("a text").to_owned();
    let policy = header("content-security-policy");
    for rule in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert_eq!(header("x-frame-options"), "DENY");
    assert_eq!(header("cache-control"), "no-store");
    let cookie = header("set-cookie");
    for rule in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(rule), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    for outside in ["http://", "https://", "//", "<script"] {
        assert!(!page.text.contains(outside), "{outside}: {}", page.text);
    }
    // Encrypted, the cookie is ours alone.
    let hands = super::Hands::default();
    let secure = TestApp::at(Some("https://127.0.0.1"), hands.clock()).await;
    let page = Browser::new(&secure.base).get("/device").await;
    let cookie = page.headers["set-cookie"].to_str().expect("a text");
    assert!(
        cookie.starts_with("__Host-cairn=") && cookie.contains("Secure"),
        "{cookie}"
    );
}

#[tokio::test]
async fn nobody_elses_page_fills_in_a_form() {
    let app = TestApp::start().await;
    let client = register(&app, REDIRECT).await;
    let path = authorize_path(&client, &[]);
    let mut browser = Browser::new(&app.base);
    let page = browser.sign_in(&path, &app.sign_in_code("ben").await).await;
    // Without the value of the page, or with another one.
    for value in ["", "guessed"] {
        let forged = browser
            .submit(&page, &path, &[("form", value), ("decision", "allow")])
            .await;
        assert_eq!(forged.status, 403, "{value}");
    }
    // With the right value, but from elsewhere.
    let kind = "application/x-www-form-urlencoded";
    let value = page
        .text
        .split("name=\"form\" value=\"")
        .nth(1)
        .expect("a value");
    let value = value.split('"').next().expect("a value");
    for origin in ["https://evil.example", "null"] {
        let request = browser.request(Method::POST, &path);
        let request = request
            .header("origin", origin)
            .header("content-type", kind)
            .body(format!("form={value}&decision=allow"));
        assert_eq!(browser.send(request).await.status, 403, "{origin}");
    }
    // From a page of ours it works.
    let request = browser.request(Method::POST, &path);
    let request = request
        .header("origin", &app.base)
        .header("content-type", kind)
        .body(format!("form={value}&decision=allow"));
    assert_eq!(browser.send(request).await.status, 303);
    let host = browser
        .request(Method::GET, "/device")
        .header("host", "evil.example");
    assert_eq!(browser.send(host).await.code(), "host_not_allowed");
}

#[tokio::test]
async fn signing_in_changes_the_cookie_and_signing_out_ends_it() {
    let (app, hands) = start().await;
    let mut browser = Browser::new(&app.base);
    browser.get("/device").await;
    let before = browser.cookie.clone();
    let page = browser
        .sign_in("/device", &app.sign_in_code("ben").await)
        .await;
    assert!(page.text.contains("ben"), "{page:?}");
    assert_ne!(browser.cookie, before);
    // The old one is nobody.
    let signed_in = browser.cookie.clone();
    browser.cookie = before;
    assert!(browser.get("/device").await.text.contains("One-time"));
    browser.cookie.clone_from(&signed_in);
    hands.forward(3600);
    assert!(browser.get("/device").await.text.contains("One-time"));
    let page = browser
        .sign_in("/device", &app.sign_in_code("ben").await)
        .await;
    assert!(page.text.contains("ben"));
    let client = register(&app, REDIRECT).await;
    let consent = browser.get(&authorize_path(&client, &[])).await;
    let out = browser
        .submit(&consent, "/oauth/sign-out", &[("next", "/device")])
        .await;
    assert_eq!(out.status, 303);
    assert!(browser.get("/device").await.text.contains("One-time"));
}

#[tokio::test]
async fn a_member_who_was_removed_is_signed_out_everywhere() {
    let app = TestApp::start().await;
    let let_in = LetIn::by(&app, "ben", &[]).await;
    let mut browser = Browser::new(&app.base);
    browser
        .sign_in("/device", &app.sign_in_code("ben").await)
        .await;
    sqlx::query("update members set removed_at = now() where principal_id = $1")
        .bind(app.db.twins.0.member.key)
        .execute(&mut app.db.admin().await)
        .await
        .expect("removed");
    app.app.rights_changed(app.db.twins.0.tenant);
    assert!(browser.get("/device").await.text.contains("One-time"));
    let refused = let_in.caller(&app.base).get("/v1/me").await;
    assert_eq!(refused.json()["detail"], "member removed");
    assert_eq!(
        let_in.refresh_with(&app.base, &let_in.refresh).await.status,
        400
    );
}
