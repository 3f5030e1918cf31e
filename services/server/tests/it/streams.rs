//! `GET /v1/stream`: in order, resumed anywhere, cheap while idle, dropped when it cannot keep up.

use std::time::Duration;

use cairn_server::admin::{KeyTerms, create_key};
use cairn_server::rates::CallerRates;
use cairn_store::bus::Bus;
use cairn_store::rates::{RateLimits, Rates};
use cairn_store::test_util::{PrivateRedis, TestDb};
use cairn_store::{Store, StoreOptions};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::limits::{SLOW, in_redis, prefix};
use crate::support::process::Replica;
use crate::support::stream::{Said, Stream};
use crate::support::{Caller, PROJECT, TestApp, item, new_owner_key, redis_continuations, soon};

#[tokio::test(flavor = "multi_thread")]
async fn it_tells_what_was_and_what_comes_in_order() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    owner.remember("before", "").await;
    let mut stream = Stream::open(&member, "/v1/stream").await;
    assert_eq!(stream.header("content-type"), "text/event-stream");
    assert_eq!(stream.header("cache-control"), "no-store, no-transform");
    assert_eq!(stream.header("x-accel-buffering"), "no");
    let epoch = stream.header("cairn-epoch").to_owned();
    assert_eq!(member.get("/v1/changes").await.ok()["epoch"], epoch);
    assert!(matches!(stream.next().await, Said::Comment), "at once");
    assert_eq!(soon(stream.line()).await.0, 1);
    assert_eq!(soon(stream.line()).await.1, "upsert observation 1");
    let id = owner.remember("now", "").await;
    let (position, item) = soon(stream.change()).await;
    assert_eq!((position, &item["id"]), (3, &json!(id)));
    assert_eq!(item["record"]["observation"]["title"], "now");
    // Equal to what the pages say.
    let page = member.get("/v1/changes?after=2").await.ok();
    assert_eq!(page["items"], json!([item]));
    owner.work("docs", json!({"task": "a"})).await;
    assert_eq!(soon(stream.change()).await.1["kind"], "work_entry");
    assert_eq!(owner.delete("/v1/observations/1").await.status, 204);
    assert_eq!(
        soon(stream.line()).await,
        (5, "delete observation 1".to_owned())
    );

    // Resumed by the header, which counts before the parameters, or by the parameter.
    let mut resumed = Stream::resume(&member, "/v1/stream?lastEventId=0&after=0", Some(3))
        .await
        .expect("open");
    assert_eq!(soon(resumed.line()).await.0, 4);
    let mut resumed = Stream::open(&member, "/v1/stream?lastEventId=4&after=0").await;
    assert_eq!(soon(resumed.line()).await.0, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_before_it_was_sent_is_not_sent() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut live = Stream::open(&owner, "/v1/stream").await;
    owner.remember("kept", "").await;
    assert_eq!(soon(live.line()).await.0, 1);
    let gone = owner.remember("gone", "").await;
    assert_eq!(
        owner
            .delete(&format!("/v1/observations/{gone}"))
            .await
            .status,
        204
    );
    // Whoever comes now, from whichever place, is told of the deletion alone; so the feed that
    // others follow, too.
    for after in 0..=3 {
        let mut stream = Stream::open(&owner, &format!("/v1/stream?after={after}")).await;
        loop {
            let (position, item) = soon(stream.change()).await;
            assert_ne!(item["record"]["observation"]["title"], "gone");
            if item["id"] == json!(gone) {
                assert_eq!((position, &item["op"]), (4, &json!("delete")));
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_on_a_project_that_is_not_yet_sees_it_come() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("elsewhere", "").await;
    let unborn = owner.clone().in_project("name:unborn");
    let mut stream = Stream::open(&unborn, "/v1/stream").await;
    unborn.remember("first of all", "").await;
    let (_, item) = soon(stream.change()).await;
    assert_eq!(
        (&item["kind"], &item["project"]),
        (&json!("project"), &json!("name:unborn"))
    );
    let (_, item) = soon(stream.change()).await;
    assert_eq!(item["record"]["observation"]["title"], "first of all");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_is_told_with_redis_and_finds_out_without() {
    let mut redis = PrivateRedis::start();
    let bus = || Bus::connect(&redis.url()).expect("an address");
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let (_one, first) = app.replica(bus()).await;
    let (_two, second) = app.replica(bus()).await;
    let (at_first, at_second) = (owner.clone().at(&first), owner.at(&second));
    let mut stream = Stream::open(&at_second, "/v1/stream").await;
    at_first.remember("told", "").await;
    assert_eq!(soon(stream.line()).await.0, 1);
    assert_eq!(soon(stream.line()).await.0, 2);
    redis.kill();
    at_first.remember("found", "").await;
    assert_eq!(soon(stream.line()).await.0, 3);
    redis.restart();
    at_first.remember("told again", "").await;
    assert_eq!(soon(stream.line()).await.0, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_says_that_it_is_there() {
    let app = TestApp::start().await;
    let mut stream = Stream::open(&app.owner().await, "/v1/stream").await;
    assert!(matches!(stream.next().await, Said::Comment));
    // Every 20 seconds, and never after more than 25.
    let second = tokio::time::timeout(Duration::from_secs(25), stream.next());
    assert!(matches!(second.await.expect("in time"), Said::Comment));
}

/// Asks until a stream opens.
async fn opens(caller: &Caller) {
    soon(async {
        let ask = || caller.request(Method::GET, "/v1/stream").send();
        while ask().await.expect("an answer").status() != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

const FAST: RateLimits = RateLimits {
    requests: 1_000_000,
    ..SLOW
};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_has_sixteen_streams_on_all_replicas_together() {
    let prefix = prefix();
    let app = TestApp::limited(in_redis(&prefix, FAST, 0)).await;
    let beside = app.limited_beside(in_redis(&prefix, FAST, 0)).await;
    let owner = app.owner().await;
    let there = owner.clone().at(&beside);
    let mut streams = Vec::new();
    for n in 0..16 {
        streams.push(Stream::open([&owner, &there][n % 2], "/v1/stream").await);
    }
    for caller in [&owner, &there] {
        // One that opens would be read for ever.
        let refused = soon(caller.get("/v1/stream")).await;
        assert_eq!(refused.code(), "rate_limited");
        assert!(refused.headers.contains_key("retry-after"));
    }
    let mut others = Stream::open(&app.member().await.at(&beside), "/v1/stream").await;
    assert!(matches!(others.next().await, Said::Comment));
    // What ends on one makes room on the other.
    drop(streams.pop());
    opens(&owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_each_replica_counts_its_streams_by_itself() {
    let mut redis = PrivateRedis::start();
    let rates = || {
        let rates = Rates::connect(&redis.url(), FAST).expect("an address");
        CallerRates::new(rates, 0)
    };
    let app = TestApp::limited(rates()).await;
    let beside = app.limited_beside(rates()).await;
    let owner = app.owner().await;
    redis.kill();
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(Stream::open(&owner, "/v1/stream").await);
    }
    let refused = soon(owner.get("/v1/stream")).await;
    assert_eq!(refused.code(), "rate_limited");
    let mut there = Stream::open(&owner.at(&beside), "/v1/stream").await;
    assert!(matches!(there.next().await, Said::Comment));
    assert!(app.app.guards.rate_open.count() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_has_sixteen_streams() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(Stream::open(&owner, "/v1/stream").await);
    }
    // By any key.
    let refused = app.owner().await.get("/v1/stream").await;
    assert_eq!(refused.code(), "rate_limited");
    assert!(refused.headers.contains_key("retry-after"));
    let mut others = Stream::open(&app.member().await, "/v1/stream").await;
    assert!(matches!(others.next().await, Said::Comment));
    streams.pop();
    opens(&owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_goes_away_says_so() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let mut replica = Replica::shared(&db);
    let caller = Caller::new(&replica.base, Some(&key)).in_project(PROJECT);
    caller.remember("note", "").await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = Stream::open(&caller, "/v1/stream").await;
        assert_eq!(stream.line().await.0, 1);
        streams.push(stream);
    }
    let ending = tokio::task::spawn_blocking(move || replica.terminate());
    for stream in &mut streams {
        assert_eq!(soon(stream.end()).await, "shutdown");
    }
    assert_eq!(ending.await.expect("ended"), Some(0));
}

/// A reader that opens a stream and takes nothing, over a connection with little room.
async fn slow_reader(caller: &Caller) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("set");
    let address = caller.base().strip_prefix("http://").expect("a base");
    let mut stream = socket
        .connect(address.parse().expect("an address"))
        .await
        .expect("connected");
    let head = format!(
        "GET /v1/stream?project=* HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
        caller.key()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_is_dropped_and_goes_on_where_it_was() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("first", "").await;
    let mut slow = slow_reader(&owner).await;
    let mut quick = Stream::open(&owner, "/v1/stream").await;
    assert_eq!(soon(quick.line()).await.0, 1);
    assert_eq!(soon(quick.line()).await.0, 2);
    let long = "x".repeat(60_000);
    let mut written = 2;
    while app.app.streams.count() == 2 {
        assert!(written < 1_000, "it takes for ever");
        let note = || item("observation", json!({"title": "long", "narrative": long}));
        owner.events((0..10).map(|_| note()).collect()).await.ok();
        // Who keeps up is told all of it.
        for _ in 0..10 {
            written += 1;
            assert_eq!(soon(quick.line()).await.0, written);
        }
    }
    let mut all = Vec::new();
    soon(slow.read_to_end(&mut all)).await.unwrap_or_default();
    let all = String::from_utf8_lossy(&all);
    assert!(
        all.contains("event: end\ndata: {\"code\":\"lagged\"}"),
        "it is told so"
    );
    let last = all
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back();
    let last: i64 = last.expect("some came").parse().expect("a position");
    assert!(last < written);
    let mut resumed = Stream::resume(&owner, "/v1/stream", Some(last))
        .await
        .expect("open");
    for position in last + 1..=written {
        assert_eq!(soon(resumed.line()).await.0, position);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c077_idle_streams_hold_no_connection() {
    let db = TestDb::new().await;
    let options = StoreOptions {
        url: db.app_url.clone(),
        pool: 10,
    };
    let store = Store::connect(&options).await.expect("connected");
    let app = TestApp::over(db, store, redis_continuations()).await;
    let owner = app.owner().await;
    owner.remember("note", "").await;
    let mut streams = Vec::new();
    for n in 0..200 {
        if n % 16 == 0 {
            let terms = KeyTerms {
                name: format!("reader {n}"),
                ..KeyTerms::default()
            };
            let key = create_key(&app.db.store, &app.app.clock, "acme", &terms)
                .await
                .expect("a key");
            let caller = Caller::new(&app.base, Some(&key.reveal())).in_project(PROJECT);
            streams.push((
                caller.clone(),
                Stream::open(&caller, "/v1/stream?after=2").await,
            ));
            continue;
        }
        let caller = streams.last().expect("one").0.clone();
        streams.push((
            caller.clone(),
            Stream::open(&caller, "/v1/stream?after=2").await,
        ));
    }
    let mut calls = JoinSet::new();
    for n in 0..100 {
        let owner = owner.clone();
        calls.spawn(async move {
            let reply = owner
                .get(["/v1/context", "/v1/changes", "/v1/me"][n % 3])
                .await;
            assert_eq!(reply.status, 200, "{reply:?}");
        });
    }
    while let Some(call) = calls.join_next().await {
        call.expect("answered");
    }
    // Clients that vanish in the middle of a write leave it whole or absent.
    let mut batches = Vec::new();
    for n in 0..50 {
        let items: Vec<Value> = (0..3)
            .map(|m| item("observation", json!({"title": format!("{n} {m}")})))
            .collect();
        let ids: Vec<Value> = items.iter().map(|item| item["event_id"].clone()).collect();
        let body = owner.batch(items).to_string();
        let request = format!(
            "POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            owner.key(),
            body.len()
        );
        let address = app.base.strip_prefix("http://").expect("a base");
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(request.as_bytes()).await.expect("sent");
        drop(stream);
        batches.push(ids);
    }
    owner.remember("last of all", "").await;
    for ids in batches {
        let checked = owner
            .post("/v1/events/check", json!({"event_ids": ids}))
            .await
            .ok();
        let items = checked["items"].as_array().expect("items");
        let first = &items[0]["status"];
        assert!(
            items.iter().all(|item| item["status"] == *first),
            "{checked}"
        );
    }
    for (_, stream) in &mut streams {
        while soon(stream.change()).await.1["record"]["observation"]["title"] != "last of all" {}
    }
    // At rest, none of the connections is in a transaction.
    let mut admin = app.db.admin().await;
    soon(async {
        loop {
            let busy: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity where datname = current_database()
                 and usename = 'cairn_app' and state <> 'idle'",
            )
            .fetch_one(&mut admin)
            .await
            .expect("a count");
            if busy == 0 {
                return;
            }
        }
    })
    .await;
    assert_eq!(app.app.streams.count(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_of_another_life_end_a_stream() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut stream = Stream::open(&owner, "/v1/stream").await;
    owner.remember("note", "").await;
    assert_eq!(soon(stream.line()).await.0, 1);
    let mut tx = app.db.store.system("test").await.expect("begin");
    tx.renew_epochs(app.app.clock.now()).await.expect("renewed");
    tx.commit().await.expect("commit");
    assert_eq!(soon(stream.end()).await, "position_unknown");
    let mut again = Stream::open(&owner, "/v1/stream").await;
    assert_eq!(soon(again.line()).await.0, 1);
}
