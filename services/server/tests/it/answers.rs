//! HTTP+SSE of 2024-11-05: questions go to any replica, answers to the one stream that they are
//! for, and to no other.

use std::sync::Arc;
use std::time::Duration;

use cairn_domain::scope::Scope;
use cairn_server::app::App;
use cairn_store::bus::Bus;
use cairn_store::test_util::{PrivateRedis, shared_redis_url};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::support::{Caller, Reply, TestApp, soon};

/// A stream of answers as its reader sees it.
struct Hearing {
    response: Response,
    text: String,
    /// Where to ask.
    endpoint: String,
}

impl Hearing {
    async fn open(caller: &Caller) -> Self {
        let response = caller
            .request(Method::GET, "/sse")
            .send()
            .await
            .expect("answered");
        assert_eq!(response.status(), 200);
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store, no-transform"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(response.headers()[name], value);
        }
        let mut hearing = Self {
            response,
            text: String::new(),
            endpoint: String::new(),
        };
        let (kind, endpoint) = soon(hearing.next()).await.expect("a first event");
        assert_eq!(kind, "endpoint");
        let sid = endpoint
            .strip_prefix("/messages?sid=")
            .expect("where to ask");
        assert_eq!(sid.len(), 24);
        hearing.endpoint = endpoint;
        hearing
    }

    /// The next event's kind and data, and none for a comment; none once the stream is closed.
    async fn said(&mut self) -> Option<Option<(String, String)>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if block.starts_with(':') {
                    return Some(None);
                }
                let line = |name: &str| {
                    let found = block.lines().find_map(|line| line.strip_prefix(name));
                    found.expect("a whole event").to_owned()
                };
                return Some(Some((line("event: "), line("data: "))));
            }
            let chunk = self.response.chunk().await.ok().flatten()?;
            let chunk = std::str::from_utf8(&chunk).expect("whole characters");
            self.text.push_str(chunk);
        }
    }

    /// The next event's kind and data; none once the stream is closed.
    async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(event) = self.said().await? {
                return Some(event);
            }
        }
    }

    /// The next message.
    async fn message(&mut self) -> Value {
        let (kind, data) = soon(self.next()).await.expect("still open");
        assert_eq!(kind, "message", "{data}");
        serde_json::from_str(&data).expect("JSON")
    }

    /// Reads on to the end; answers its code.
    async fn end(&mut self) -> String {
        while let Some((kind, data)) = soon(self.next()).await {
            if kind == "end" {
                let data: Value = serde_json::from_str(&data).expect("JSON");
                assert!(self.next().await.is_none(), "nothing comes after the end");
                return data["code"].as_str().expect("a code").to_owned();
            }
        }
        panic!("it broke off");
    }
}

fn search(id: impl Into<Value>, query: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
        "params": {"name": "mem_search", "arguments": {"query": query}}})
}

async fn ask(caller: &Caller, hearing: &Hearing, message: Value) -> Reply {
    caller.post(&hearing.endpoint, message).await
}

/// Two replicas that hear of each other over a Redis.
async fn replicas(url: &str) -> (TestApp, [(Arc<App>, String); 2]) {
    let app = TestApp::start().await;
    let prefix = format!("test:{}:", Uuid::new_v4());
    let bus = || Bus::connect_with_prefix(url, &prefix).expect("an address");
    let pair = [app.replica(bus()).await, app.replica(bus()).await];
    (app, pair)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_on_its_stream_wherever_the_question_went() {
    let (app, [(_, one), (_, two)]) = replicas(&shared_redis_url()).await;
    let (owner, stranger) = (app.owner().await, app.stranger().await);
    owner.remember("pool leak of acme", "").await;
    stranger.remember("pool leak of umbra", "").await;
    let (here, there) = (owner.clone().at(&one), owner.clone().at(&two));
    let mut hearing = Hearing::open(&here).await;
    let mut theirs = Hearing::open(&stranger.clone().at(&two)).await;
    let initialize = json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}});
    assert_eq!(ask(&there, &hearing, initialize).await.status, 202);
    let hello = hearing.message().await;
    assert_eq!(hello["result"]["protocolVersion"], "2024-11-05");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(ask(&there, &hearing, note).await.status, 202);
    // The same ids at the same time, from two tenants, at both replicas.
    for round in 0..20 {
        let (asker, other) = match round % 2 {
            0 => (&here, stranger.clone().at(&one)),
            _ => (&there, stranger.clone().at(&two)),
        };
        let mine = ask(asker, &hearing, search(round, "leak"));
        let other = ask(&other, &theirs, search(round, "leak"));
        let (mine, other) = tokio::join!(mine, other);
        assert_eq!((mine.status.as_u16(), other.status.as_u16()), (202, 202));
        for (stream, title) in [(&mut hearing, "of acme"), (&mut theirs, "of umbra")] {
            let answer = stream.message().await;
            assert_eq!(answer["id"], round);
            let text = answer["result"]["content"][0]["text"]
                .as_str()
                .expect("a text");
            assert!(text.contains(title), "{text}");
        }
    }
    // A newer revision is served over this transport as well: it says itself what it is.
    let discover = json!({"jsonrpc": "2.0", "id": "d", "method": "server/discover", "params": {
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    ask(&there, &hearing, discover).await;
    assert_eq!(hearing.message().await["result"]["resultType"], "complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_opened_a_stream_may_ask_on_it() {
    let (app, [(first, one), (_, two)]) = replicas(&shared_redis_url()).await;
    let owner = app.owner().await;
    owner.remember("note", "").await;
    let mut hearing = Hearing::open(&owner.clone().at(&one)).await;
    let another = app.member().await;
    let stranger = app.stranger().await;
    let limited = app.limited_to("name:alpha-app").await;
    for base in [&one, &two] {
        for caller in [&another, &stranger, &limited] {
            let reply = ask(&caller.clone().at(base), &hearing, search(1, "note")).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (404, "not_found".to_owned())
            );
        }
        let nobody = Caller::new(base, None);
        let reply = ask(&nobody, &hearing, search(1, "note")).await;
        assert_eq!(reply.code(), "unauthenticated");
        assert_eq!(nobody.get("/sse").await.code(), "unauthenticated");
        let unknown = format!("/messages?sid={}", "a".repeat(24));
        for path in [unknown.as_str(), "/messages?sid=x", "/messages"] {
            let reply = owner.clone().at(base).post(path, search(1, "note")).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (404, "not_found".to_owned())
            );
        }
    }
    // Another key of the same principal is the same principal.
    let again = app.owner().await.at(&two);
    assert_eq!(ask(&again, &hearing, search(7, "note")).await.status, 202);
    assert_eq!(hearing.message().await["id"], 7);
    // A closed one is none, on every replica.
    let endpoint = hearing.endpoint.clone();
    drop(hearing);
    for base in [&one, &two] {
        soon(async {
            while owner
                .clone()
                .at(base)
                .post(&endpoint, search(1, "note"))
                .await
                .status
                != 404
            {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    soon(async {
        while !first.streams.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_said_on_both_connections() {
    let app = TestApp::start().await;
    let writer = app.owner_with(&[Scope::MemoryWrite]).await;
    let mut hearing = Hearing::open(&writer).await;
    let reply = ask(&writer, &hearing, search(3, "x")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code()),
        (403, "insufficient_scope".to_owned())
    );
    assert!(
        reply.headers["www-authenticate"]
            .to_str()
            .expect("a text")
            .contains("/sse")
    );
    let told = hearing.message().await;
    assert_eq!(
        (&told["id"], &told["result"]["isError"]),
        (&json!(3), &json!(true))
    );
    // What is no message has an answer on the connection that it came by.
    let reply = writer.post_text(&hearing.endpoint, "not json").await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["error"]["code"]),
        (400, &json!(-32700))
    );
    let unknown = json!({"jsonrpc": "2.0", "id": 4, "method": "no/such"});
    assert_eq!(ask(&writer, &hearing, unknown).await.status, 202);
    assert_eq!(hearing.message().await["error"]["code"], -32601);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_has_eight_of_them_and_each_place_comes_back() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(Hearing::open(&owner).await);
    }
    assert_eq!(owner.get("/sse").await.code(), "rate_limited");
    let _other = Hearing::open(&app.member().await).await;
    open.pop();
    soon(async {
        while owner
            .request(Method::GET, "/sse")
            .send()
            .await
            .expect("answered")
            .status()
            != 200
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_a_replica_goes_on_alone_and_the_others_say_so() {
    let mut redis = PrivateRedis::start();
    let (app, [(_, one), (_, two)]) = replicas(&redis.url()).await;
    let owner = app.owner().await;
    let (here, there) = (owner.clone().at(&one), owner.clone().at(&two));
    let mut hearing = Hearing::open(&here).await;
    redis.kill();
    assert_eq!(ask(&here, &hearing, search(1, "x")).await.status, 202);
    assert_eq!(hearing.message().await["id"], 1);
    let reply = ask(&there, &hearing, search(2, "x")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code()),
        (503, "store_unavailable".to_owned())
    );
    // A new one that starts empty is told of the stream again.
    redis.restart();
    soon(async {
        while ask(&there, &hearing, search(3, "x")).await.status != 202 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(hearing.message().await["id"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_replica_and_with_its_credential() {
    let mut app = TestApp::start().await;
    let owner = app.owner().await;
    let member = app.member().await;
    let mut theirs = Hearing::open(&member).await;
    let path = format!("/v1/keys/{}", member.key_id());
    assert_eq!(owner.delete(&path).await.status, 204);
    assert_eq!(theirs.end().await, "credential_revoked");
    let mut hearing = Hearing::open(&owner).await;
    app.tell_to_stop();
    assert_eq!(hearing.end().await, "shutdown");
    app.stopped().await;
}

/// A proxy that gives up on a connection over which nothing has come from behind for a time.
async fn proxy(to: String, limit: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    let to = to.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&to).await.expect("the service");
            tokio::spawn(carry(near, far, limit));
        }
    });
    base
}

async fn carry(near: TcpStream, far: TcpStream, limit: Duration) {
    let (mut near_in, mut near_out) = near.into_split();
    let (mut far_in, mut far_out) = far.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut near_in, &mut far_out).await });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(limit, far_in.read(&mut buffer)).await {
        if near_out.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// The proxy's limit is that of the contract, 25 s, which is closer than the 60 s of the case; the
/// stream stays quiet for longer than that.
#[tokio::test(flavor = "multi_thread")]
async fn c047_a_quiet_stream_outlives_a_proxy_that_gives_up_on_silence() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let through = owner
        .clone()
        .at(&proxy(app.base.clone(), Duration::from_secs(25)).await);
    let mut hearing = Hearing::open(&through).await;
    for _ in 0..2 {
        let comment = tokio::time::timeout(Duration::from_secs(60), hearing.said()).await;
        assert_eq!(
            comment.expect("in time"),
            Some(None),
            "a comment, and the stream open"
        );
    }
    // Asked past the proxy; the answer still comes through it.
    assert_eq!(ask(&owner, &hearing, search(1, "x")).await.status, 202);
    assert_eq!(hearing.message().await["id"], 1);
}
