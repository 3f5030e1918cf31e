//! The edge: callers who send slowly, too much, or what another server might read otherwise.

use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Caller, TestApp, item};

/// Sends bytes as they are and reads to the end of the connection.
async fn exchange(app: &TestApp, head: &str) -> String {
    let mut stream = connect(app).await;
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    answer
}

async fn connect(app: &TestApp) -> TcpStream {
    let address = app.base.strip_prefix("http://").expect("an address");
    TcpStream::connect(address).await.expect("connected")
}

fn head(caller: &Caller, line: &str, headers: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {}\r\n{headers}\r\n",
        caller.key()
    )
}

fn problem(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).unwrap_or_else(|_| panic!("no problem: {answer}"))
}

#[rstest]
#[case("Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n", "host_not_allowed")]
#[case("Host: 127.0.0.1\r\nHost: evil.example\r\n", "host_not_allowed")]
#[case("Host: evil@127.0.0.1\r\n", "host_not_allowed")]
#[case(
    "Host: 127.0.0.1\r\nOrigin: https://memory.example.com\r\nOrigin: https://evil.example\r\n",
    "origin_not_allowed"
)]
#[tokio::test]
async fn c048_a_name_that_can_be_read_in_two_ways_is_refused(
    #[case] headers: &str,
    #[case] code: &str,
) {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let answer = exchange(&app, &head(&caller, "GET /v1/me", headers)).await;
    assert_eq!(problem(&answer)["code"], code);
}

#[tokio::test]
async fn a_request_id_is_never_the_callers() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let request = caller
        .request(reqwest::Method::GET, "/v1/nothing")
        .header("X-Request-Id", "forged");
    let reply = caller.send(request).await;
    assert!(!reply.text.contains("forged"), "{reply:?}");
    let ids: Vec<_> = reply.headers.get_all("x-request-id").iter().collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(reply.json()["instance"].as_str(), ids[0].to_str().ok());
    assert_ne!(ids[0], "forged");
}

#[tokio::test]
async fn a_long_address_is_a_problem() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let fits = caller.get(&format!("/v1/me?x={}", "x".repeat(8_000))).await;
    assert_eq!(fits.status, 200);
    let reply = caller.get(&format!("/v1/me?x={}", "x".repeat(8_200))).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (414, "uri_too_long")
    );
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_waited_for() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let headers = "Host: 127.0.0.1\r\nContent-Length: 2097153\r\n";
    let mut stream = connect(&app).await;
    let head = head(&caller, "POST /v1/events", headers);
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn who_sends_too_much_reads_why() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    for path in ["/v1/events", "/mcp"] {
        let reply = caller.post_text(path, "x".repeat(8 << 20)).await;
        assert_eq!(reply.code(), "body_too_large", "{path}");
    }
}

#[tokio::test]
async fn encodings_have_names_without_case() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, br#"{"query": "x"}"#).expect("packed");
    let packed = packed.finish().expect("packed");
    for name in ["gzip", "GZIP"] {
        let request = caller
            .request(reqwest::Method::POST, "/v1/mem-search")
            .header("Content-Type", "application/json")
            .header("Content-Encoding", name)
            .body(packed.clone());
        assert_eq!(caller.send(request).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn no_answer_has_an_empty_allow() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for path in ["/mcp", "/v1/me", "/livez", "/nowhere"] {
        let reply = caller.post(path, list.clone()).await;
        assert_ne!(
            reply.headers.get("allow").map(|a| a.as_bytes()),
            Some(&b""[..]),
            "{path}"
        );
        assert!(reply.status == 200 || !reply.code().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_body_too_slowly_is_at_fault() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let headers = "Host: 127.0.0.1\r\nContent-Length: 10\r\n";
    let started = Instant::now();
    let answer = exchange(&app, &(head(&caller, "POST /v1/events", headers) + "{")).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(
        problem(&answer)["detail"],
        "the body did not arrive in time"
    );
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_head_is_not_kept_for_ever() {
    let app = TestApp::start().await;
    let half = exchange(&app, "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    let silent = exchange(&app, "");
    let limit = Duration::from_secs(40);
    let both = tokio::time::timeout(limit, async { tokio::join!(half, silent) });
    both.await.expect("both connections are closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writers_of_one_tenant_leave_connections_to_another() {
    let app = TestApp::start().await;
    let (owner, stranger) = (app.owner().await, app.stranger().await);
    let mut admin = app.db.admin().await;
    let mut blocker = sqlx::Connection::begin(&mut admin).await.expect("begin");
    sqlx::query("select * from tenant_counters where tenant_id = $1 for update")
        .bind(app.db.twins.0.tenant.key())
        .fetch_all(&mut *blocker)
        .await
        .expect("locked");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..20 {
        let owner = owner.clone();
        writers.spawn(async move {
            let event = item("observation", json!({"title": format!("{writer}")}));
            owner.events(vec![event]).await
        });
    }
    crate::shutdown::until_blocked(&app).await;
    // A write that had to wait for theirs would be refused.
    stranger.remember("not held up", "").await;
    // Whoever waits too long is told to come again, not that the store is away.
    let mut codes = std::collections::BTreeSet::new();
    while let Some(reply) = writers.join_next().await {
        let reply = reply.expect("answered");
        assert_eq!(reply.status, 503);
        assert!(reply.headers.contains_key("retry-after"));
        codes.insert(reply.code());
    }
    assert!(codes.contains("overloaded"), "{codes:?}");
}
