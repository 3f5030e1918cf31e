//! Redis goes away in the middle of searches and comes back.

use std::time::Duration;

use cairn_store::continuations::Continuations;
use cairn_store::cursor_keys::KeyRing;
use cairn_store::test_util::PrivateRedis;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{RING, TestApp};

#[tokio::test]
async fn c041_guard_mem_search_is_closed_while_redis_is_away_and_the_first_after_works() {
    let mut redis = PrivateRedis::start();
    let ring = KeyRing::parse(RING).expect("a ring");
    let app = TestApp::with(Continuations::connect(&redis.url(), ring).expect("an address")).await;
    let caller = app.owner().await;
    caller.remember("pool leak", "").await;
    let query = json!({"query": "pool leak"});
    let before = caller.mem_search(query.clone()).await.ok();
    let call = json!({"continuation": before["continuation"], "selectedIds": ["1"]});

    redis.pause();
    let hung = caller.mem_search(call.clone()).await;
    assert_eq!(hung.code(), "store_unavailable");
    caller.remember("written while it hangs", "").await;
    redis.resume();
    assert_eq!(
        caller.mem_search(call.clone()).await.ok()["status"],
        "continue"
    );

    redis.kill();
    assert_eq!(
        caller.mem_search(query.clone()).await.code(),
        "store_unavailable"
    );
    redis.restart();
    let after = caller.mem_search(query).await.ok();
    assert_eq!(after["status"], "continue");
    // What it held is lost: that search starts again, and nothing else does.
    assert_eq!(caller.mem_search(call).await.code(), "invalid_continuation");
}

#[tokio::test(flavor = "multi_thread")]
async fn c041_while_redis_hangs_many_searches_fail_together_and_all_else_goes_on() {
    let redis = PrivateRedis::start();
    let ring = KeyRing::parse(RING).expect("a ring");
    let app = TestApp::with(Continuations::connect(&redis.url(), ring).expect("an address")).await;
    let caller = app.owner().await;
    caller.remember("pool leak", "").await;
    let query = json!({"query": "pool leak"});
    let before = caller.mem_search(query.clone()).await.ok();
    let call = json!({"continuation": before["continuation"], "selectedIds": ["1"]});

    redis.pause();
    let mut searches = JoinSet::new();
    for n in 0..60 {
        let (caller, call) = (caller.clone(), [&query, &call][n % 2].clone());
        searches.spawn(async move { caller.mem_search(call).await.code() });
    }
    let together = async {
        while let Some(code) = searches.join_next().await {
            assert_eq!(code.expect("answered"), "store_unavailable");
        }
    };
    // One after the other they would take minutes.
    let in_time = tokio::time::timeout(Duration::from_secs(20), together).await;
    in_time.expect("all at about the same time");
    let ready = caller.get("/readyz").await;
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["continuations"], false);
    caller.remember("written while it hangs", "").await;
    let context = caller.get("/v1/context").await.text;
    assert!(context.contains("written while it hangs"), "{context}");
    caller.work("release", json!({"task": "docs"})).await.ok();
    assert!(caller.open_work().await.contains("docs"));

    redis.resume();
    let first = caller.mem_search(call).await.ok();
    assert_eq!(first["status"], "continue");
    assert_eq!(caller.get("/readyz").await.json()["continuations"], true);
}
