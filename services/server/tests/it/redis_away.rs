//! Redis goes away in the middle of searches and comes back.

use cairn_store::continuations::Continuations;
use cairn_store::cursor_keys::KeyRing;
use cairn_store::test_util::PrivateRedis;
use serde_json::json;

use crate::support::{RING, TestApp};

#[tokio::test]
async fn c041_when_redis_returns_the_very_first_search_works() {
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
