//! Going away in order: what is in flight is answered, the process ends with 0.

use std::sync::Arc;
use std::time::Duration;

use cairn_server::lifecycle::{Drain, serve};
use cairn_store::test_util::TestDb;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::frozen::Relay;
use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, TestApp, hold_counters, item, new_owner_key};

/// What replicas of tests are given to end in.
const DRAIN: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_answered_before_the_end() {
    let mut app = TestApp::start().await;
    let caller = app.owner().await;
    // Another transaction holds the tenant's counter, so the batch waits inside the service.
    let mut admin = app.db.admin().await;
    let blocker = hold_counters(&mut admin).await;
    let batch = caller.batch(vec![item("observation", json!({"title": "in flight"}))]);
    let request = caller
        .request(reqwest::Method::POST, "/v1/events")
        .json(&batch);
    let waiting = tokio::spawn({
        let caller = caller.clone();
        async move { caller.send(request).await }
    });
    soon(until_blocked(&app)).await;
    app.tell_to_stop();
    soon(async {
        while !app.app.is_draining() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    blocker.rollback().await.expect("released");
    let answer = waiting.await.expect("answered").ok();
    assert_eq!(answer["items"][0]["status"], "stored");
    app.stopped().await;
}

/// Waits for what must happen, but not for ever.
async fn soon(happens: impl Future<Output = ()>) {
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, happens)
        .await
        .expect("it happens soon");
}

pub async fn until_blocked(app: &TestApp) {
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
async fn a_draining_replica_is_not_ready_but_still_answers() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    assert_eq!(caller.get("/readyz").await.status, 200);
    app.app.drain();
    let ready = caller.get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["draining"]),
        (503, &json!(true))
    );
    assert_eq!(caller.get("/v1/me").await.status, 200);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_outlives_the_deadline_keeps_nobody_waiting() {
    let app = TestApp::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    let caller = app.owner().await.at(&base);
    let drain = Drain {
        notice: Duration::ZERO,
        deadline: Duration::from_millis(50),
    };
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let server = tokio::spawn(serve(Arc::clone(&app.app), listener, drain, stopped));
    let mut admin = app.db.admin().await;
    let _blocker = hold_counters(&mut admin).await;
    let batch = caller.batch(vec![item("observation", json!({"title": "too late"}))]);
    let request = caller.request(reqwest::Method::POST, "/v1/events");
    let waiting = tokio::spawn(request.json(&batch).send());
    soon(until_blocked(&app)).await;
    stop.cancel();
    // Its statement would go on for five seconds, and its connection with it.
    let ended = tokio::time::timeout(Duration::from_secs(3), server).await;
    let ended = ended.expect("in time").expect("the server task ends");
    ended.expect("the service stops in order");
    waiting.abort();
}

#[tokio::test]
async fn while_it_serves_new_records_move_to_their_places_in_the_index() {
    let app = TestApp::start().await;
    let mut admin = app.db.admin().await;
    sqlx::raw_sql("create extension pageinspect")
        .execute(&mut admin)
        .await
        .expect("the extension");
    app.owner().await.remember("pool leak", "").await;
    soon(async {
        loop {
            let waiting: i64 = sqlx::query_scalar(
                "select sum((gin_metapage_info(get_raw_page(inhrelid::regclass::text, 0)))
                   .n_pending_pages)::bigint
                 from pg_inherits where inhparent = 'records_words'::regclass",
            )
            .fetch_one(&mut admin)
            .await
            .expect("a count");
            if waiting == 0 {
                return;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_a_replica_in_time_although_postgres_says_nothing() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let relay = Relay::to(&db).await;
    let mut replica = Replica::over(&relay.url);
    let caller = Caller::new(&replica.base, Some(&key)).in_project(PROJECT);
    caller.remember("before", "").await;
    relay.freeze();
    let waiting = tokio::spawn(async move { caller.get("/v1/context").await.status });
    let started = std::time::Instant::now();
    assert_eq!(replica.terminate(), Some(0));
    assert!(started.elapsed() < DRAIN * 5, "{:?}", started.elapsed());
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_an_embedded_service_in_time_although_its_database_hangs() {
    let data = tempfile::tempdir().expect("a folder");
    let mut replica = Replica::embedded(data.path());
    let postmaster = std::fs::read_to_string(data.path().join("postgres/postmaster.pid"));
    let postmaster = postmaster
        .expect("running")
        .lines()
        .next()
        .map(str::to_owned);
    let stopped = std::process::Command::new("kill")
        .args(["-STOP", &postmaster.expect("a process id")])
        .status();
    assert!(stopped.expect("kill runs").success());
    let started = std::time::Instant::now();
    assert_eq!(replica.terminate(), Some(0));
    assert!(started.elapsed() < DRAIN * 5, "{:?}", started.elapsed());
}
