//! What still works when a store is away.

use cairn_store::continuations::Continuations;
use cairn_store::cursor_keys::KeyRing;
use cairn_store::test_util::TestDb;
use cairn_store::{Store, StoreOptions};
use serde_json::json;

use crate::support::frozen::Relay;
use crate::support::{RING, TestApp, hold_counters, item, redis_continuations};

#[tokio::test]
async fn c041_without_redis_all_but_guided_search_goes_on() {
    // Nobody listens on port 1 of the loopback address.
    let nowhere =
        Continuations::connect("redis://127.0.0.1:1", KeyRing::parse(RING).expect("ring"));
    let app = TestApp::with(nowhere.expect("an address")).await;
    let caller = app.owner().await;
    let id = caller.remember("pool leak", "").await;
    assert_eq!(
        caller.get(&format!("/v1/observations/{id}")).await.status,
        200
    );
    assert!(caller.get("/v1/context").await.text.contains("pool leak"));
    let ready = caller.get("/readyz").await;
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["continuations"], false);
    let started = std::time::Instant::now();
    let reply = caller.mem_search(json!({"query": "pool leak"})).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (503, "store_unavailable")
    );
    assert!(started.elapsed().as_secs() < 25, "fails fast");
    assert!(reply.headers.contains_key("retry-after"));
    assert!(
        reply.json()["detail"].is_null(),
        "a 5xx tells nothing of itself"
    );
}

#[tokio::test]
async fn guard_authentication_is_closed_without_postgres() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    app.db.store.close().await;
    let reply = caller.get("/v1/me").await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (503, "store_unavailable")
    );
    assert_eq!(caller.get("/livez").await.status, 200);
    let ready = caller.get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["postgres"]),
        (503, &json!(false))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_says_nothing_holds_a_request_for_ten_seconds_only() {
    let db = TestDb::new().await;
    let relay = Relay::to(&db).await;
    let options = StoreOptions {
        url: relay.url.clone(),
        pool: 1,
    };
    let store = Store::connect(&options).await.expect("connected");
    let app = TestApp::over(db, store, redis_continuations()).await;
    let caller = app.owner().await;
    assert_eq!(caller.get("/v1/me").await.status, 200);
    let mut admin = app.db.admin().await;
    let blocker = hold_counters(&mut admin).await;
    let started = std::time::Instant::now();
    let events = caller.events(vec![item("observation", json!({"title": "lost"}))]);
    let freeze = async {
        crate::shutdown::until_blocked(&app).await;
        relay.freeze();
    };
    let (reply, ()) = tokio::join!(events, freeze);
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (503, "store_unavailable")
    );
    assert!(started.elapsed().as_secs() < 28, "{:?}", started.elapsed());
    blocker.rollback().await.expect("released");
    // The only connection is lost; another one takes its place.
    while caller.get("/v1/me").await.status != 200 {
        assert!(started.elapsed().as_secs() < 60, "it never came back");
    }
}

#[tokio::test]
async fn the_first_call_after_postgres_ended_its_connections_works() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    // Several connections, so that more than one is found gone.
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let caller = caller.clone();
        calls.spawn(async move { caller.get("/v1/context").await.status });
    }
    while let Some(status) = calls.join_next().await {
        assert_eq!(status.expect("answered"), 200);
    }
    let ended: i64 = sqlx::query_scalar(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where usename = 'cairn_app' and datname = current_database()",
    )
    .fetch_one(&mut app.db.admin().await)
    .await
    .expect("ended");
    assert!(ended > 1, "{ended}");
    let id = caller.remember("first after the end", "").await;
    assert_eq!(
        caller.get(&format!("/v1/observations/{id}")).await.status,
        200
    );
}
