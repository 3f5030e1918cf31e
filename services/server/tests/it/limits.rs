//! How fast callers may go, what they are told of it, and who is let in while nobody can count.

use std::time::{Duration, Instant};

use cairn_server::rates::CallerRates;
use cairn_store::rates::{RateLimits, Rates};
use cairn_store::test_util::{PrivateRedis, shared_redis_url};
use serde_json::json;
use uuid::Uuid;

use crate::support::{Caller, Reply, TestApp, item};

/// A token in two seconds or more: hardly one comes back while a test runs.
const SLOW: RateLimits = RateLimits {
    requests: 30,
    events: 50,
    failed_sign_ins: 4,
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn in_redis(prefix: &str, limits: RateLimits, proxies: usize) -> CallerRates {
    let rates = Rates::connect_with_prefix(&shared_redis_url(), limits, prefix);
    let rates = rates.expect("an address").with_patience(PATIENCE);
    CallerRates::new(rates, proxies)
}

fn prefix() -> String {
    format!("test:{}:", Uuid::new_v4())
}

async fn limited(limits: RateLimits) -> TestApp {
    TestApp::limited(in_redis(&prefix(), limits, 0)).await
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let value = reply
        .headers
        .get(name)
        .unwrap_or_else(|| panic!("{name}: {reply:?}"));
    value.to_str().expect("text")
}

/// The refusal that a caller meets at last, and how many were let through before.
async fn until_refused(caller: &Caller) -> (u32, Reply) {
    for count in 0..1_000 {
        let reply = caller.get("/v1/me").await;
        if reply.status != 200 {
            return (count, reply);
        }
    }
    panic!("nothing is ever refused");
}

#[tokio::test]
async fn every_answer_of_a_verified_caller_says_what_is_left() {
    let app = limited(SLOW).await;
    let caller = app.owner().await;
    let first = caller.get("/v1/me").await;
    assert_eq!(first.status, 200);
    assert_eq!(header(&first, "ratelimit-policy"), r#""caller";q=30;w=60"#);
    assert_eq!(header(&first, "ratelimit"), r#""caller";r=5;t=2"#);
    // Refusals of other kinds too.
    let missing = caller.get("/v1/observations/41").await;
    assert_eq!(missing.status, 404);
    assert!(header(&missing, "ratelimit").starts_with(r#""caller";r="#));
    let stranger = app.anonymous().get("/v1/me").await;
    assert_eq!(stranger.status, 401);
    assert!(!stranger.headers.contains_key("ratelimit"));
}

#[tokio::test]
async fn who_comes_too_fast_is_told_when_to_come_again() {
    let app = limited(SLOW).await;
    let caller = app.owner().await;
    let (count, refused) = until_refused(&caller).await;
    assert!((6..20).contains(&count), "{count}");
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (429, "rate_limited")
    );
    let seconds: u64 = header(&refused, "retry-after").parse().expect("a number");
    assert!((1..=2).contains(&seconds), "{seconds}");
    assert_eq!(refused.json()["retry_after"], seconds);
    assert_eq!(refused.json()["detail"], "at most 30 requests a minute");
    assert!(header(&refused, "ratelimit").starts_with(r#""caller";r=0;t="#));
    // A member of the same team goes on, and so does another team.
    assert_eq!(app.member().await.get("/v1/me").await.status, 200);
    assert_eq!(app.stranger().await.get("/v1/me").await.status, 200);
    // A large body that is not read hides no answer.
    let large = json!({"items": [], "filler": "x".repeat(1_900_000)});
    assert_eq!(
        caller.post("/v1/events", large).await.code(),
        "rate_limited"
    );
    // Tools have the same door.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(caller.post("/mcp", list).await.status, 429);
    // Whoever waits is let in.
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    assert_eq!(caller.get("/v1/me").await.status, 200);
    assert!(app.app.guards.rate_refused.count() >= 1);
}

#[tokio::test]
async fn a_batch_that_is_more_than_what_is_left_is_refused_whole() {
    let limits = RateLimits {
        requests: 1_000_000,
        ..SLOW
    };
    let app = limited(limits).await;
    let (caller, member) = (app.owner().await, app.member().await);
    let batch = |count: usize| -> Vec<_> {
        (0..count)
            .map(|n| item("observation", json!({"title": format!("n{n}")})))
            .collect()
    };
    assert_eq!(caller.events(batch(6)).await.status, 200);
    let late = batch(9);
    let refused = caller.events(late.clone()).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (429, "rate_limited")
    );
    assert!(
        header(&refused, "retry-after")
            .parse::<u64>()
            .expect("a number")
            >= 1
    );
    assert!(header(&refused, "ratelimit").starts_with(r#""caller";r="#));
    let ids: Vec<_> = late.iter().map(|item| item["event_id"].clone()).collect();
    let checked = caller
        .post("/v1/events/check", json!({"event_ids": ids}))
        .await
        .ok();
    for item in checked["items"].as_array().expect("items") {
        assert_eq!(item["status"], "unknown");
    }
    // Single writes take one each, through every door.
    for _ in 0..10 {
        if member
            .post("/v1/observations", json!({"title": "x"}))
            .await
            .status
            == 429
        {
            break;
        }
    }
    let refused = member.post("/v1/observations", json!({"title": "x"})).await;
    assert_eq!(refused.code(), "rate_limited");
    assert_eq!(
        member.work("docs", json!({"task": "x"})).await.code(),
        "rate_limited"
    );
    let (text, is_error) = member.tool("save_memory", json!({"text": "x"})).await;
    assert!(is_error && text.starts_with("rate_limited - "), "{text}");
    // Reads go on.
    assert_eq!(member.get("/v1/context").await.status, 200);
}

#[tokio::test]
async fn a_limit_holds_over_all_replicas() {
    let prefix = prefix();
    let app = TestApp::limited(in_redis(&prefix, SLOW, 0)).await;
    let beside = app.limited_beside(in_redis(&prefix, SLOW, 0)).await;
    let caller = app.owner().await;
    let (first, _) = until_refused(&caller).await;
    let (second, _) = until_refused(&caller.clone().at(&beside)).await;
    // Not the six that another one would have let through.
    assert!(second < 6, "{first} {second}");
}

#[tokio::test]
async fn failed_sign_ins_are_bounded_by_address_over_all_replicas() {
    let prefix = prefix();
    let limits = RateLimits {
        requests: 1_000_000,
        ..SLOW
    };
    let app = TestApp::limited(in_redis(&prefix, limits, 0)).await;
    let beside = app.limited_beside(in_redis(&prefix, limits, 0)).await;
    let (caller, late) = (app.owner().await, app.member().await);
    let guess = |n: u32| format!("cairn_abcdefghijkl_{n:043}");
    let wrong = |n: u32| Caller::new([&app.base, &beside][n as usize % 2], Some(&guess(n)));
    // A right key works while there were not too many, and takes nothing.
    for n in 0..3 {
        assert_eq!(wrong(n).get("/v1/me").await.code(), "unauthenticated");
        assert_eq!(caller.get("/v1/me").await.status, 200);
    }
    let mut n = 3;
    let refused = loop {
        let reply = wrong(n).get("/v1/me").await;
        if reply.status != 401 {
            break reply;
        }
        n += 1;
        assert!(n < 50, "nothing is ever refused");
    };
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (429, "rate_limited")
    );
    assert!(
        header(&refused, "retry-after")
            .parse::<u64>()
            .expect("a number")
            >= 1
    );
    // One that was good a moment ago is not locked out by others of its address; one that was
    // never seen waits like any guess. Who presents nothing guesses nothing.
    assert_eq!(caller.get("/v1/me").await.status, 200);
    assert_eq!(late.get("/v1/me").await.status, 429);
    assert_eq!(app.anonymous().get("/v1/me").await.status, 401);
    assert!(app.app.guards.sign_in_refused.count() >= 1);
}

/// A call that came through a proxy, which saw this address and was told of another one.
async fn via_proxy(caller: &Caller, address: &str) -> Reply {
    let request = caller.request(reqwest::Method::GET, "/v1/me");
    let claimed = format!("198.51.100.1, {address}");
    caller
        .send(request.header("X-Forwarded-For", claimed))
        .await
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_address_that_it_saw_counts() {
    let limits = RateLimits {
        requests: 1_000_000,
        ..SLOW
    };
    for (proxies, locked_out) in [(1, false), (0, true)] {
        let app = TestApp::limited(in_redis(&prefix(), limits, proxies)).await;
        let late = app.owner().await;
        let wrong = Caller::new(&app.base, Some(&format!("cairn_abcdefghijkl_{:043}", 7)));
        for _ in 0..20 {
            via_proxy(&wrong, "203.0.113.7").await;
        }
        assert_eq!(via_proxy(&wrong, "203.0.113.7").await.status, 429);
        let status = via_proxy(&late, "203.0.113.8").await.status;
        assert_eq!(status == 429, locked_out, "{proxies} {status}");
    }
}

#[tokio::test]
async fn guard_rate_limit_is_open_and_counted_while_redis_is_away() {
    let mut redis = PrivateRedis::start();
    let rates = Rates::connect(&redis.url(), SLOW).expect("an address");
    let app = TestApp::limited(CallerRates::new(rates, 0)).await;
    let caller = app.owner().await;
    redis.pause();
    for n in 0..40 {
        let reply = caller
            .remember(&format!("written while it hangs {n}"), "")
            .await;
        assert!(!reply.is_empty());
    }
    assert!(app.app.guards.rate_open.count() > 0);
    redis.resume();
    redis.kill();
    for _ in 0..40 {
        let reply = caller.get("/v1/context").await;
        assert_eq!(reply.status, 200);
        assert!(header(&reply, "ratelimit").starts_with(r#""caller";r="#));
    }
    redis.restart();
    // It counts again by itself.
    let began = Instant::now();
    while caller.get("/v1/me").await.status != 429 {
        assert!(began.elapsed() < PATIENCE, "it never counted again");
    }
}
