//! Programs: those that register themselves, and those that say what they are at their address.

use cairn_store::before_sign_in::KnownClient;
use chrono::{TimeDelta, Utc};
use serde_json::json;

use super::{REDIRECT, authorize_path, error, register, start};
use crate::support::TestApp;
use crate::support::browser::Browser;

#[tokio::test]
async fn a_program_registers_as_a_public_one() {
    let app = TestApp::start().await;
    let body = json!({"client_name": "Editor\u{202e}", "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "client_secret_basic", "application_type": "native",
        "grant_types": ["authorization_code"], "unknown": 1});
    let known = app.anonymous().post("/oauth/register", body).await.ok();
    assert_eq!(known["token_endpoint_auth_method"], "none");
    assert_eq!(
        (&known["client_name"], &known["application_type"]),
        (&json!("Editor"), &json!("native"))
    );
    assert!(known.get("client_secret").is_none());
    for (body, told) in [
        (json!({"redirect_uris": []}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": ["http://app.example.com/cb"]}),
            "invalid_redirect_uri",
        ),
        (
            json!({"redirect_uris": ["javascript:alert(1)"]}),
            "invalid_redirect_uri",
        ),
        (
            json!({"redirect_uris": vec![REDIRECT; 21]}),
            "invalid_redirect_uri",
        ),
        (json!({"redirect_uris": "x"}), "invalid_client_metadata"),
        (json!({}), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
        (
            json!({"redirect_uris": [REDIRECT], "x": "y".repeat(70_000)}),
            "invalid_request",
        ),
    ] {
        let refused = app.anonymous().post("/oauth/register", body).await;
        assert_eq!(
            (refused.status.as_u16(), error(&refused).as_str()),
            (400, told)
        );
    }
}

#[tokio::test]
async fn a_program_that_nobody_lets_in_is_forgotten() {
    let (app, hands) = start().await;
    let (used, unused) = (
        register(&app, REDIRECT).await,
        register(&app, REDIRECT).await,
    );
    super::code_for(&app, "ben", &used, &[]).await;
    hands.forward(31 * 24 * 3600);
    let mut tx = app.db.store.system("test").await.expect("begin");
    tx.clean_sign_in((hands.clock()).now())
        .await
        .expect("cleaned");
    tx.commit().await.expect("commit");
    let mut browser = Browser::new(&app.base);
    assert_eq!(browser.get(&authorize_path(&used, &[])).await.status, 200);
    assert_eq!(browser.get(&authorize_path(&unused, &[])).await.status, 400);
}

#[tokio::test]
async fn a_copy_of_a_document_is_used_for_a_day() {
    let app = TestApp::start().await;
    // Nothing answers at this address, so only the copy can.
    let id = "https://127.0.0.1/client.json";
    let client = KnownClient {
        name: "Documented".to_owned(),
        redirect_uris: vec!["http://localhost/callback".to_owned()],
    };
    let now = Utc::now();
    let put = |until| {
        let (app, client) = (&app, &client);
        async move {
            let mut tx = app.db.store.system("test").await.expect("begin");
            tx.put_client(id, client, "127.0.0.1", (now, Some(until)))
                .await
                .expect("kept");
            tx.commit().await.expect("commit");
        }
    };
    put(now + TimeDelta::hours(24)).await;
    let path = authorize_path(id, &[("redirect_uri", "http://localhost:4444/callback")]);
    let mut browser = Browser::new(&app.base);
    let page = browser.sign_in(&path, &app.sign_in_code("ben").await).await;
    for shown in ["Documented", "<dd>127.0.0.1</dd>", "<dd>localhost</dd>"] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    put(now - TimeDelta::seconds(1)).await;
    let refused = browser.get(&path).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("public address"), "{}", refused.text);
}
