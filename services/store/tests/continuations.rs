//! The store of continuations: one contract for Redis and for the embedded form, and what a
//! stopped Redis means to its callers.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

#[path = "support/cursors.rs"]
mod cursors;

use std::time::{Duration, Instant};

use cairn_domain::search::Cursor;
use cairn_store::continuations::{ContinuationError, Continuations, Loaded};
use cairn_store::test_util::{PrivateRedis, shared_redis_url};
use chrono::{TimeDelta, Utc};

use cursors::{Behind, both_arms, fresh, in_minutes, prefix, replica, ring, save_in};

const SCOPE: &str = "tenant/principal/*";

async fn save(store: &Continuations, state: &[u8]) -> Cursor {
    save_in(store, SCOPE, state).await
}

async fn load(store: &Continuations, cursor: &Cursor) -> Result<Loaded, ContinuationError> {
    store.load(SCOPE, cursor, Utc::now()).await
}

#[tokio::test]
async fn c040_a_cursor_answers_the_same_however_often_it_is_used() {
    for (arm, store) in both_arms() {
        let cursor = save(&store, b"one").await;
        let other = save(&store, b"two").await;
        assert_ne!(cursor, other, "{arm}");
        for _ in 0..2 {
            let loaded = load(&store, &cursor).await.expect("answers");
            assert_eq!(loaded, Loaded::State(b"one".to_vec()), "{arm}");
        }
    }
}

#[tokio::test]
async fn another_scope_or_an_invented_cursor_leads_nowhere() {
    for (arm, store) in both_arms() {
        let cursor = save(&store, b"one").await;
        for (scope, cursor) in [("tenant/other/*", cursor), (SCOPE, fresh())] {
            let loaded = store.load(scope, &cursor, Utc::now()).await;
            assert_eq!(
                loaded.expect("answers"),
                Loaded::Unknown,
                "{arm} {scope} {cursor}"
            );
        }
    }
}

#[tokio::test]
async fn a_cursor_past_its_time_reads_as_expired() {
    for (arm, store) in both_arms() {
        let now = Utc::now();
        let expires_at = now + TimeDelta::milliseconds(200);
        let cursor = fresh();
        let saved = store.save(SCOPE, &cursor, b"short", expires_at, now).await;
        saved.expect("saved");
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut loaded = load(&store, &cursor).await.expect("answers");
        while loaded == Loaded::State(b"short".to_vec()) && Instant::now() < deadline {
            tokio::task::yield_now().await;
            loaded = load(&store, &cursor).await.expect("answers");
        }
        assert_eq!(loaded, Loaded::Expired, "{arm}");
    }
}

#[tokio::test]
async fn a_state_saved_too_late_is_expired_at_once() {
    for (arm, store) in both_arms() {
        let now = Utc::now();
        let cursor = fresh();
        let saved = store
            .save(SCOPE, &cursor, b"late", now - TimeDelta::seconds(1), now)
            .await;
        saved.expect("saved");
        let loaded = load(&store, &cursor).await.expect("answers");
        assert_eq!(loaded, Loaded::Expired, "{arm}");
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_kept() {
    let (expires_at, now) = in_minutes(15);
    for (arm, store) in both_arms() {
        let state = vec![b'x'; 48 * 1024];
        let cursor = save(&store, &state).await;
        let loaded = load(&store, &cursor).await.expect("answers");
        assert_eq!(loaded, Loaded::State(state), "{arm}");
        let refused = store
            .save(SCOPE, &cursor, &vec![0; 48 * 1024 + 1], expires_at, now)
            .await;
        assert!(
            matches!(refused, Err(ContinuationError::TooLarge(_))),
            "{arm}"
        );
        for scope in [String::new(), "s".repeat(2_049)] {
            let refused = store.save(&scope, &cursor, b"", expires_at, now).await;
            assert!(matches!(refused, Err(ContinuationError::Scope(_))), "{arm}");
            let refused = store.load(&scope, &cursor, now).await;
            assert!(matches!(refused, Err(ContinuationError::Scope(_))), "{arm}");
        }
    }
}

#[tokio::test]
async fn the_embedded_store_holds_its_last_1024_cursors() {
    let store = Continuations::memory(ring(&["k1"]));
    let mut cursors = Vec::new();
    for _ in 0..1_025 {
        cursors.push(save(&store, b"state").await);
    }
    assert_eq!(
        load(&store, &cursors[0]).await.expect("answers"),
        Loaded::Unknown
    );
    for cursor in &cursors[1..] {
        let loaded = load(&store, cursor).await.expect("answers");
        assert_eq!(loaded, Loaded::State(b"state".to_vec()));
    }
}

#[tokio::test]
async fn c040_another_replica_reads_what_this_one_saved() {
    let prefix = prefix();
    let replica = |kids: &[&str]| replica(&prefix, kids);
    let cursor = save(&replica(&["k1"]), b"step 2").await;
    let same_ring = load(&replica(&["k1"]), &cursor).await.expect("answers");
    assert_eq!(same_ring, Loaded::State(b"step 2".to_vec()));
    let rotated = load(&replica(&["k3", "k2", "k1"]), &cursor).await;
    assert_eq!(rotated.expect("answers"), Loaded::State(b"step 2".to_vec()));
    let dropped = load(&replica(&["k2"]), &cursor).await.expect("answers");
    assert_eq!(dropped, Loaded::Unknown);
}

#[tokio::test]
async fn redis_holds_neither_the_cursor_nor_the_state_nor_whose_it_is() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]);
    let cursor = save(&store, b"plain words").await;
    let mut behind = Behind::new(&shared_redis_url(), &prefix);
    let keys = behind.keys();
    assert_eq!(keys.len(), 4, "state, marker, index and sums: {keys:?}");
    for key in &keys {
        // In a form that shows whatever type of value it is.
        let dump: Vec<u8> = behind.ask(redis::cmd("DUMP").arg(key));
        let dump = format!("{key} {}", String::from_utf8_lossy(&dump));
        for secret in [cursor.as_str(), "plain", "tenant", "principal"] {
            assert!(!dump.contains(secret), "{secret} in {dump}");
        }
    }
    let states = behind.states();
    let [state] = states.as_slice() else {
        panic!("one state: {states:?}");
    };
    assert!(
        state.starts_with(&format!("{prefix}cairn:ms:k1:")),
        "{state}"
    );
    let mut lives = Vec::new();
    for key in [state, &format!("{state}:expired")] {
        let (value, life): (Vec<u8>, i64) = (
            behind.ask(redis::cmd("GET").arg(key)),
            behind.ask(redis::cmd("PTTL").arg(key)),
        );
        lives.push((value.is_empty(), (life + 30_000) / 60_000));
    }
    assert_eq!(
        lives,
        [(false, 15), (true, 30)],
        "state, then its marker, in minutes"
    );
}

#[tokio::test]
async fn c041_redis_hangs_and_comes_back() {
    let redis = PrivateRedis::start();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    let cursor = save(&store, b"state").await;
    redis.pause();
    for _ in 0..2 {
        assert_unavailable_soon(&store, &cursor).await;
    }
    redis.resume();
    let first = load(&store, &cursor).await.expect("the first call works");
    assert_eq!(first, Loaded::State(b"state".to_vec()));
}

#[tokio::test]
async fn c041_redis_is_killed_and_the_first_call_after_its_return_works() {
    let mut redis = PrivateRedis::start();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    let cursor = save(&store, b"state").await;

    redis.kill();
    redis.restart();
    // Nobody called while it was away: the connection broke unseen.
    let first = load(&store, &cursor).await.expect("the first call works");
    assert_eq!(first, Loaded::Unknown, "Redis lost everything, as it may");

    redis.kill();
    for _ in 0..3 {
        assert_unavailable_soon(&store, &cursor).await;
    }
    redis.restart();
    let first = save(&store, b"again").await;
    let loaded = load(&store, &first).await.expect("answers");
    assert_eq!(loaded, Loaded::State(b"again".to_vec()));
}

/// Many calls meet a Redis that hangs. Each ends in its own time, not behind the others, and once
/// Redis is known to hang nothing of them is left to it.
#[tokio::test]
async fn c041_calls_do_not_pile_up_before_a_redis_that_hangs() {
    let redis = PrivateRedis::start();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    let cursor = save(&store, b"state").await;
    let keys = redis.keys();
    redis.pause();
    assert!(store.ping().await.is_err());
    let calls = (0..200).map(|n| {
        let (store, cursor) = (store.clone(), cursor.clone());
        tokio::spawn(async move {
            if n % 2 == 0 {
                return load(&store, &cursor).await.map(|_| ());
            }
            let (expires_at, now) = in_minutes(15);
            let state = [7; 40_000];
            store.save(SCOPE, &fresh(), &state, expires_at, now).await
        })
    });
    let calls: Vec<_> = calls.collect();
    let all = async {
        for call in calls {
            let answer = call.await.expect("no panic");
            assert!(matches!(answer, Err(ContinuationError::Unavailable(_))));
        }
    };
    // One after the other they would need minutes.
    let in_time = tokio::time::timeout(Duration::from_secs(20), all).await;
    in_time.expect("all at about the same time");
    redis.resume();
    let first = load(&store, &cursor).await.expect("the first call works");
    assert_eq!(first, Loaded::State(b"state".to_vec()));
    assert_eq!(redis.keys(), keys, "nothing that was refused is kept");
}

#[tokio::test]
async fn c041_redis_hangs_dies_and_comes_back() {
    let mut redis = PrivateRedis::start();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    store.ping().await.expect("it answers");
    redis.pause();
    for _ in 0..2 {
        assert!(store.ping().await.is_err());
    }
    redis.kill();
    redis.restart();
    store.ping().await.expect("the first call works");
}

#[tokio::test]
async fn c041_a_server_may_start_before_its_redis() {
    let mut redis = PrivateRedis::start();
    redis.kill();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    assert!(store.ping().await.is_err());
    redis.restart();
    store.ping().await.expect("the first call works");
}

/// Twice the promised two seconds, for machines that are busy with other tests.
async fn assert_unavailable_soon(store: &Continuations, cursor: &Cursor) {
    let started = Instant::now();
    let answer = load(store, cursor).await;
    assert!(
        matches!(answer, Err(ContinuationError::Unavailable(_))),
        "{answer:?}"
    );
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}
