//! The MCP door and what is no message, or several.

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Caller, Reply, TestApp};

async fn send(caller: &Caller, text: impl Into<reqwest::Body>, version: Option<&str>) -> Reply {
    let mut request = caller
        .request(Method::POST, "/mcp")
        .header("Content-Type", "application/json");
    if let Some(version) = version {
        request = request.header("MCP-Protocol-Version", version);
    }
    caller.send(request.body(text)).await
}

#[rstest]
#[case("not json", 400, -32700)]
#[case("", 400, -32700)]
#[case(r#"{"jsonrpc":"2.0","id":1"#, 400, -32700)]
#[case("{}", 400, -32600)]
#[case("5", 400, -32600)]
#[case(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, -32600)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, 400, -32600)]
#[case(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, 400, -32600)]
#[case(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, -32600)]
#[case(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600)]
#[case("[]", 400, -32600)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}"#, 200, -32602)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, -32602)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, 200, -32602)]
#[case(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mem_search","arguments":"x"}}"#,
    200,
    -32602
)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, 200, -32602)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}"#, 200, -32602)]
#[case(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, 200, -32601)]
#[tokio::test]
async fn what_is_no_request_gets_a_json_rpc_error(
    #[case] text: &'static str,
    #[case] status: u16,
    #[case] code: i32,
) {
    let app = TestApp::start().await;
    let reply = send(&app.owner().await, text, None).await;
    let body = reply.json();
    assert_eq!(
        (
            reply.status.as_u16(),
            &body["error"]["code"],
            &body["jsonrpc"]
        ),
        (status, &json!(code), &json!("2.0")),
        "{reply:?}"
    );
    let id = if status == 200 {
        json!(1)
    } else {
        body["id"].clone()
    };
    assert_eq!(body["id"], id);
    assert!(body["error"]["message"].is_string());
}

#[tokio::test]
async fn a_message_nested_too_deep_is_no_request() {
    let app = TestApp::start().await;
    let (open, close) = ("[".repeat(500), "]".repeat(500));
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{open}{close}}}}}"#);
    let reply = send(&app.owner().await, text, None).await;
    assert_eq!(reply.json()["error"]["code"], -32600);
}

#[tokio::test]
async fn an_unknown_version_is_told_the_known_ones() {
    let app = TestApp::start().await;
    let list = r#"{"jsonrpc":"2.0","id":"s1","method":"tools/list"}"#;
    let reply = send(&app.owner().await, list, Some("1999-01-01")).await;
    let body = reply.json();
    assert_eq!(
        (reply.status.as_u16(), &body["error"]["code"], &body["id"]),
        (400, &json!(-32022), &json!("s1"))
    );
    let supported = body["error"]["data"]["supported"]
        .as_array()
        .expect("a list");
    assert!(supported.contains(&json!("2026-07-28")));
    // The handshake negotiates instead.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "1999-01-01", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}});
    let reply = send(
        &app.owner().await,
        initialize.to_string(),
        Some("1999-01-01"),
    )
    .await;
    assert_eq!(reply.ok()["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_body_of_another_type_is_malformed() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let request = caller.request(Method::POST, "/mcp");
    let request = request.header("Content-Type", "text/plain").body("{}");
    assert_eq!(caller.send(request).await.code(), "malformed_body");
}

#[rstest]
#[case(None)]
#[case(Some("2025-03-26"))]
#[tokio::test]
async fn several_messages_are_answered_together(#[case] version: Option<&str>) {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
        7,
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "mem_search", "arguments": {"query": "x"}}}
    ]);
    let answers = send(&caller, batch.to_string(), version).await.ok();
    let answers = answers.as_array().expect("an array");
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!(2), &Value::Null, &json!(3)]);
    assert!(answers[0]["result"]["tools"].is_array());
    assert_eq!(answers[1]["error"]["code"], -32601);
    assert_eq!(answers[2]["error"]["code"], -32600);
    assert_eq!(
        answers[3]["result"]["structuredContent"]["reason"],
        "no_results"
    );
}

#[tokio::test]
async fn several_messages_within_bounds_only() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let many = |count: usize| json!(vec![note.clone(); count]).to_string();
    let reply = send(&caller, many(50), None).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (202, ""));
    let too_many = send(&caller, many(51), None).await;
    assert_eq!(too_many.json()["error"]["code"], -32600);
    let newer = send(&caller, many(2), Some("2025-06-18")).await;
    assert_eq!(newer.json()["error"]["code"], -32600);
}
