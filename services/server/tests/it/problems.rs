//! Problems: their form, their codes, their headers.

use std::collections::BTreeSet;

use cairn_domain::scope::Scope;
use cairn_wire::Code;
use serde_json::json;

use crate::support::{Caller, TestApp};

#[tokio::test]
async fn a_problem_has_the_form_of_rfc_9457() {
    let app = TestApp::start().await;
    let reply = app.owner().await.get("/v1/observations/9").await;
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    let body = reply.json();
    assert_eq!(body["type"], "urn:cairn:problem:not_found");
    assert_eq!(
        (&body["status"], &body["code"]),
        (&json!(404), &json!("not_found"))
    );
    assert_eq!(
        body["instance"].as_str(),
        reply.headers["x-request-id"].to_str().ok()
    );
    assert_eq!(reply.headers["cairn-service"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn addresses_and_methods_that_are_not_there() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    assert_eq!(caller.get("/v1/nothing").await.code(), "not_found");
    assert_eq!(caller.get("/v1/observations/abc").await.code(), "not_found");
    let reply = caller.get("/v1/events").await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (405, "method_not_allowed")
    );
    assert_eq!(reply.headers["allow"], "POST");
}

#[tokio::test]
async fn credentials_that_are_not_good() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut other = owner.key().to_owned();
    let last = if other.ends_with('a') { "b" } else { "a" };
    other.replace_range(other.len() - 1.., last);
    let ghost = format!("cairn_{}_{}", "a".repeat(12), "A".repeat(43));
    for key in [other.as_str(), ghost.as_str(), "cairn_", "x", "é"] {
        let reply = Caller::new(&app.base, Some(key)).get("/v1/me").await;
        assert_eq!(
            (reply.status.as_u16(), reply.code().as_str()),
            (401, "unauthenticated")
        );
        assert!(
            reply.headers["www-authenticate"]
                .to_str()
                .expect("text")
                .starts_with("Bearer")
        );
    }
    assert_eq!(
        app.anonymous().get("/v1/me").await.code(),
        "unauthenticated"
    );
}

#[tokio::test]
async fn revoked_and_expired_keys_say_so() {
    let app = TestApp::start().await;
    let (revoked, expired) = (app.owner().await, app.owner().await);
    let mut tx = app
        .db
        .store
        .tenant(app.db.twins.0.tenant, "test")
        .await
        .expect("begin");
    tx.revoke_credential(revoked.key_id(), chrono::Utc::now())
        .await
        .expect("revoked");
    tx.commit().await.expect("commit");
    let mut admin = app.db.admin().await;
    sqlx::query("update credentials set expires_at = now() where key_id = $1")
        .bind(expired.key_id())
        .execute(&mut admin)
        .await
        .expect("expired");
    assert_eq!(revoked.get("/v1/me").await.code(), "credential_revoked");
    assert_eq!(expired.get("/v1/me").await.code(), "credential_expired");
}

#[tokio::test]
async fn a_lacking_scope_is_named() {
    let app = TestApp::start().await;
    let reader = app.owner_with(&[Scope::MemoryRead]).await;
    let reply = reader.events(Vec::new()).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (403, "insufficient_scope")
    );
    assert_eq!(reply.json()["scopes"], json!(["memory:write"]));
    let writer = app.owner_with(&[Scope::MemoryWrite]).await;
    assert_eq!(writer.get("/v1/context").await.code(), "insufficient_scope");
    let entry = crate::support::item("work_entry", json!({"list": "l", "fields": {"task": "t"}}));
    let reply = writer.events(vec![entry]).await;
    assert_eq!(reply.json()["items"][0]["code"], "insufficient_scope");
}

#[tokio::test]
async fn c048_only_configured_hosts_are_served() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let reply = caller
        .send(
            caller
                .request(reqwest::Method::GET, "/v1/me")
                .header("Host", "evil.example"),
        )
        .await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (403, "host_not_allowed")
    );
    assert!(reply.text.contains("CAIRN_ALLOWED_HOSTS"));
    let request = caller
        .request(reqwest::Method::GET, "/v1/me")
        .header("Origin", "https://evil.example");
    assert_eq!(caller.send(request).await.code(), "origin_not_allowed");
    let probe = caller
        .request(reqwest::Method::GET, "/readyz")
        .header("Host", "10.0.0.1");
    assert_eq!(caller.send(probe).await.status, 200);
}

/// The table of the contract, so that a changed code or status is seen here.
#[test]
fn codes_and_statuses_are_those_of_the_contract() {
    let table: BTreeSet<String> = Code::ALL
        .iter()
        .map(|code| format!("{} {}", code.status(), code))
        .collect();
    insta::assert_snapshot!(table.into_iter().collect::<Vec<_>>().join("\n"), @r"
    400 malformed_body
    401 credential_expired
    401 credential_revoked
    401 unauthenticated
    403 host_not_allowed
    403 insufficient_scope
    403 origin_not_allowed
    403 quota_exceeded
    404 invalid_continuation
    404 not_found
    405 method_not_allowed
    409 claimed
    409 conflict
    409 event_id_reused
    409 last_owner
    409 scope_changed
    410 expired_continuation
    410 position_unknown
    413 body_too_large
    414 uri_too_long
    416 range_not_satisfiable
    422 ambiguous_project
    422 digest_mismatch
    422 empty_record
    422 entry_too_long
    422 instructions_too_long
    422 invalid_cursor
    422 invalid_field
    422 invalid_input
    422 invalid_selection
    422 project_required
    422 query_or_filter_required
    422 response_too_large
    422 selection_required
    422 unsupported_kind
    426 client_too_old
    429 rate_limited
    500 internal
    503 overloaded
    503 shutting_down
    503 store_unavailable
    ");
}
