//! How fast callers may go, what they are told of it, and who is let in while nobody can count.

use std::time::{Duration, Instant};

use cairn_server::rates::CallerRates;
use cairn_store::rates::{RateLimits, Rates};
use cairn_store::test_util::{PrivateRedis, TestDb, shared_redis_url};
use serde_json::json;
use sqlx::{Connection, Postgres, Transaction};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::oauth::{authorize_path, error, post_form};
use crate::support::{Caller, Reply, TestApp, item};

/// A token in two seconds or more: hardly one comes back while a test runs.
pub const SLOW: RateLimits = RateLimits {
    requests: 30,
    events: 50,
    failed_sign_ins: 4,
    strangers: 3,
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn in_redis(prefix: &str, limits: RateLimits, proxies: usize) -> CallerRates {
    let rates = Rates::connect_with_prefix(&shared_redis_url(), limits, prefix);
    let rates = rates.expect("an address").with_patience(PATIENCE);
    CallerRates::new(rates, proxies)
}

pub fn prefix() -> String {
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

/// Makes every look-up of a key wait until it is rolled back.
async fn hold_credentials(admin: &mut sqlx::PgConnection) -> Transaction<'_, Postgres> {
    let mut held = admin.begin().await.expect("begin");
    sqlx::query("lock table credentials in access exclusive mode")
        .execute(&mut *held)
        .await
        .expect("held");
    held
}

/// Waits until so many look-ups wait, or until somebody was answered without one.
async fn until_waiting(db: &TestDb, most: usize, asked: &JoinSet<Reply>, all: usize) {
    let mut admin = db.admin().await;
    let waiting = "select count(*) from pg_locks where not granted
                   and relation = 'credentials'::regclass";
    let began = Instant::now();
    loop {
        let count: i64 = sqlx::query_scalar(waiting)
            .fetch_one(&mut admin)
            .await
            .expect("a count");
        let answered = asked.len() < all;
        if usize::try_from(count).is_ok_and(|count| count >= most) || answered {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{count} wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_good_keys_may_come_at_once_and_guesses_may_not() {
    let limits = RateLimits {
        requests: 1_000_000,
        failed_sign_ins: 2,
        ..SLOW
    };
    let at_once = cairn_domain::limits::SIGN_INS_AT_ONCE;
    let app = TestApp::limited(in_redis(&prefix(), limits, 0)).await;
    let mut good = Vec::new();
    for _ in 0..3 * at_once {
        good.push(app.owner().await);
    }
    let guess = |n| Caller::new(&app.base, Some(&format!("cairn_abcdefghijkl_{n:043}")));
    let guesses: Vec<Caller> = (0..5 * at_once).map(guess).collect();
    let mut admin = app.db.admin().await;
    for (callers, are_good) in [(good, true), (guesses, false)] {
        let held = hold_credentials(&mut admin).await;
        let mut asked = JoinSet::new();
        let all = callers.len();
        for caller in callers {
            asked.spawn(async move { caller.get("/v1/me").await });
        }
        until_waiting(&app.db, at_once, &asked, all).await;
        held.rollback().await.expect("let go");
        let replies = asked.join_all().await;
        let with = |status: u16| replies.iter().filter(|it| it.status == status).count();
        if are_good {
            assert_eq!(with(200), all, "{replies:?}");
        } else {
            // Those that were under way, and no more than a token that came back meanwhile.
            assert!(with(401) <= at_once + 1, "{} were looked up", with(401));
            assert_eq!(with(401) + with(429), all, "{replies:?}");
        }
    }
}

#[tokio::test]
async fn what_strangers_begin_is_bounded_by_address_over_all_replicas() {
    let prefix = prefix();
    let app = TestApp::limited(in_redis(&prefix, SLOW, 0)).await;
    let beside = app.limited_beside(in_redis(&prefix, SLOW, 0)).await;
    let program = json!({"client_name": "Probe", "redirect_uris": ["http://127.0.0.1/cb"]});
    let device = |base: String| async move {
        let fields = [("client_id", "cairn")];
        post_form(&base, "/oauth/device_authorization", &fields).await
    };
    let known = app
        .anonymous()
        .post("/oauth/register", program.clone())
        .await;
    let known = known.ok()["client_id"].as_str().expect("an id").to_owned();
    assert_eq!(device(beside.clone()).await.status, 200);
    // What cannot be fetched was tried.
    let document = authorize_path("https://127.0.0.1/client.json", &[]);
    assert_eq!(app.anonymous().get(&document).await.status, 400);

    let there = app.anonymous().at(&beside);
    let page = there.get(&document).await;
    assert!(page.text.contains("too many programs"), "{}", page.text);
    let refused = [
        there.post("/oauth/register", program).await,
        device(app.base.clone()).await,
    ];
    for reply in &refused {
        assert_eq!(error(reply), "temporarily_unavailable");
        let told = reply.json()["error_description"].to_string();
        assert!(told.contains("too many programs and devices"), "{told}");
    }
    for reply in refused.iter().chain([&page]) {
        assert_eq!(reply.status, 429);
        let seconds: u64 = header(reply, "retry-after").parse().expect("a number");
        assert!((1..=20).contains(&seconds), "{seconds}");
    }
    assert!(app.app.guards.stranger_refused.count() >= 1);
    // Who is known already is asked for nothing.
    let path = authorize_path(&known, &[("redirect_uri", "http://127.0.0.1/cb")]);
    assert_eq!(app.anonymous().get(&path).await.status, 200);
}

#[tokio::test]
async fn only_so_many_devices_of_an_address_wait() {
    let limits = RateLimits {
        strangers: 1_000_000,
        ..SLOW
    };
    let app = TestApp::limited(in_redis(&prefix(), limits, 0)).await;
    let fields = [("client_id", "cairn")];
    let ask = async || post_form(&app.base, "/oauth/device_authorization", &fields).await;
    for _ in 0..cairn_domain::limits::WAITING_DEVICES {
        assert_eq!(ask().await.status, 200);
    }
    let refused = ask().await;
    assert_eq!(refused.status, 429);
    assert_eq!(error(&refused), "temporarily_unavailable");
    assert_eq!(header(&refused, "retry-after"), "60");
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

#[tokio::test]
async fn a_text_or_a_time_that_no_database_knows_is_the_callers_fault() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    for path in ["/v1/sessions/%00", "/v1/observations/by-file?path=a%00"] {
        let status = owner.get(path).await.status.as_u16();
        assert!((200..500).contains(&status), "{path}: {status}");
    }
    for path in ["/v1/keys/%00", "/v1/members/%00"] {
        let status = owner.delete(path).await.status.as_u16();
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let code = owner.post("/v1/members/%00/code", json!({})).await;
    assert!(
        (400..500).contains(&code.status.as_u16()),
        "{}",
        code.status
    );
    let nobody = Caller::new(&app.base, None);
    for path in [
        "/oauth/authorize?client_id=%00",
        "/oauth/authorize?client_id=cairn%00",
    ] {
        let status = nobody.get(path).await.status.as_u16();
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let body = json!({"client_name": "x", "redirect_uris": ["https://a.example/\u{0}"]});
    let status = nobody.post("/oauth/register", body).await.status.as_u16();
    assert!((400..500).contains(&status), "register: {status}");
    let long_ago = json!({"before": "-200000-01-01T00:00:00Z", "dry_run": true});
    let status = owner.post("/v1/purge", long_ago).await.status.as_u16();
    assert!((200..500).contains(&status), "purge: {status}");
}
