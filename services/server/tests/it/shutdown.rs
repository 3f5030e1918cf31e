//! Going away in order: what is in flight is answered, the process ends with 0.

use cairn_store::test_util::TestDb;
use serde_json::json;

use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, TestApp, item, new_owner_key};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_answered_and_readyz_says_no() {
    let mut app = TestApp::start().await;
    let caller = app.owner().await;
    // Another transaction holds the tenant's counter, so the batch waits inside the service.
    let mut admin = app.db.admin().await;
    let mut blocker = sqlx::Connection::begin(&mut admin).await.expect("begin");
    sqlx::query("select * from tenant_counters for update")
        .fetch_all(&mut *blocker)
        .await
        .expect("locked");
    let batch = caller.batch(vec![item("observation", json!({"title": "in flight"}))]);
    let request = caller
        .request(reqwest::Method::POST, "/v1/events")
        .json(&batch);
    let waiting = tokio::spawn({
        let caller = caller.clone();
        async move { caller.send(request).await }
    });
    wait_until_blocked(&app).await;
    app.tell_to_stop();
    while !app.app.is_draining() {
        tokio::task::yield_now().await;
    }
    blocker.rollback().await.expect("released");
    let answer = waiting.await.expect("answered").ok();
    assert_eq!(answer["items"][0]["status"], "stored");
    app.stopped().await;
}

async fn wait_until_blocked(app: &TestApp) {
    let mut admin = app.db.admin().await;
    loop {
        let waits: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
             and datname = current_database()",
        )
        .fetch_one(&mut admin)
        .await
        .expect("answers");
        if waits > 0 {
            return;
        }
    }
}

#[tokio::test]
async fn sigterm_ends_a_replica_with_zero() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let mut replica = Replica::shared(&db);
    let caller = Caller::new(&replica.base, Some(&key)).in_project(PROJECT);
    caller.remember("before", "").await;
    assert_eq!(replica.terminate(), Some(0));
    assert!(
        caller
            .try_send(caller.request(reqwest::Method::GET, "/livez"))
            .await
            .is_err()
    );
}
