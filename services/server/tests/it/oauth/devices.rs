//! Devices: they ask at intervals, and a member lets them in on a page.

use serde_json::{Value, json};

use super::{LetIn, error, post_form, start, token};
use crate::support::TestApp;
use crate::support::browser::Browser;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

async fn begin(app: &TestApp) -> Value {
    let fields = [
        ("client_id", "cairn"),
        ("device_name", "ben's <laptop>"),
        ("scope", "memory:read work:write tenant:admin"),
    ];
    post_form(&app.base, "/oauth/device_authorization", &fields)
        .await
        .ok()
}

async fn poll(app: &TestApp, begun: &Value) -> crate::support::Reply {
    let code = begun["device_code"].as_str().expect("a code");
    let fields = [
        ("grant_type", GRANT),
        ("client_id", "cairn"),
        ("device_code", code),
    ];
    token(&app.base, &fields).await
}

fn page_of(begun: &Value) -> String {
    format!(
        "/device?user_code={}",
        begun["user_code"].as_str().expect("a code")
    )
}

#[tokio::test]
async fn a_device_is_let_in_by_its_code() {
    let (app, hands) = start().await;
    let begun = begin(&app).await;
    assert_eq!(
        (&begun["expires_in"], &begun["interval"]),
        (&json!(600), &json!(5))
    );
    assert_eq!(begun["verification_uri"], format!("{}/device", app.base));
    let complete = begun["verification_uri_complete"]
        .as_str()
        .expect("an address");
    assert_eq!(complete, format!("{}{}", app.base, page_of(&begun)));
    assert_eq!(error(&poll(&app, &begun).await), "authorization_pending");

    let mut browser = Browser::new(&app.base);
    let page = browser
        .sign_in(&page_of(&begun), &app.sign_in_code("ben").await)
        .await;
    let code = begun["user_code"].as_str().expect("a code");
    for shown in [
        "the command line",
        "ben&#39;s &#60;laptop&#62;",
        code,
        "write to-do lists",
    ] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    assert!(
        !page.text.contains("run the team"),
        "a member is no admin: {}",
        page.text
    );
    let done = browser
        .submit(&page, "/device", &[("decision", "allow")])
        .await;
    assert!(done.text.contains("It is in"), "{done:?}");
    hands.forward(5);
    let let_in = LetIn::of("cairn".to_owned(), poll(&app, &begun).await.ok());
    assert_eq!(let_in.answer["scope"], "memory:read work:write");
    let grants = let_in.caller(&app.base).get("/v1/grants").await.ok();
    assert_eq!(grants["items"][0]["device"], "ben's <laptop>");
    assert_eq!(grants["items"][0]["current"], true);
    // The code is used up for both.
    assert_eq!(browser.get(&page_of(&begun)).await.status, 400);
    hands.forward(5);
    assert_eq!(error(&poll(&app, &begun).await), "invalid_grant");
}

#[tokio::test]
async fn a_device_that_asks_too_often_waits_longer_each_time() {
    let (app, hands) = start().await;
    let begun = begin(&app).await;
    assert_eq!(error(&poll(&app, &begun).await), "authorization_pending");
    hands.forward(3);
    assert_eq!(error(&poll(&app, &begun).await), "slow_down");
    hands.forward(7);
    assert_eq!(error(&poll(&app, &begun).await), "slow_down");
    hands.forward(16);
    assert_eq!(error(&poll(&app, &begun).await), "authorization_pending");
}

#[tokio::test]
async fn a_device_is_turned_away_or_runs_out_of_time() {
    let (app, hands) = start().await;
    let (denied, late) = (begin(&app).await, begin(&app).await);
    let mut browser = Browser::new(&app.base);
    let page = browser
        .sign_in(&page_of(&denied), &app.sign_in_code("ben").await)
        .await;
    browser
        .submit(&page, "/device", &[("decision", "deny")])
        .await;
    assert_eq!(error(&poll(&app, &denied).await), "access_denied");
    hands.forward(601);
    assert_eq!(error(&poll(&app, &late).await), "expired_token");
    assert_eq!(browser.get(&page_of(&late)).await.status, 400);
    let unknown = json!({"device_code": "unknown"});
    assert_eq!(error(&poll(&app, &unknown).await), "invalid_grant");
    let stranger = [("client_id", "nobody")];
    let refused = post_form(&app.base, "/oauth/device_authorization", &stranger).await;
    assert_eq!(
        (refused.status.as_u16(), error(&refused).as_str()),
        (401, "invalid_client")
    );
}

#[tokio::test]
async fn five_wrong_codes_a_minute_and_no_more() {
    let (app, hands) = start().await;
    let begun = begin(&app).await;
    let mut browser = Browser::new(&app.base);
    browser
        .sign_in("/device", &app.sign_in_code("ben").await)
        .await;
    // Right ones do not count.
    for _ in 0..7 {
        assert_eq!(browser.get(&page_of(&begun)).await.status, 200);
    }
    for n in 0..5 {
        let wrong = browser.get("/device?user_code=BCDF-BCDF").await;
        assert_eq!(wrong.status, 400, "{n}");
    }
    assert_eq!(browser.get(&page_of(&begun)).await.status, 429);
    hands.forward(60);
    assert_eq!(browser.get(&page_of(&begun)).await.status, 200);
    // However it is typed.
    let typed = page_of(&begun).to_lowercase().replace('-', "+");
    assert_eq!(browser.get(&typed).await.status, 200);
}
