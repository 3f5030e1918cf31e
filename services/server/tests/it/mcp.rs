//! The MCP door, through a real client and as raw messages.

use std::collections::HashMap;

use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ServiceExt, model::CallToolResult};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Caller, PROJECT, RING, TestApp, continuations_under};

async fn client(caller: &Caller) -> RunningService<RoleClient, ()> {
    let project = HeaderValue::from_str(PROJECT).expect("plain");
    let headers = HashMap::from([(HeaderName::from_static("cairn-project"), project)]);
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", caller.base()))
        .auth_header(caller.key())
        .custom_headers(headers);
    ().serve(StreamableHttpClientTransport::from_config(config))
        .await
        .expect("a handshake")
}

async fn tool(
    client: &RunningService<RoleClient, ()>,
    name: &'static str,
    arguments: Value,
) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        unreachable!("tests give objects")
    };
    client
        .call_tool(CallToolRequestParams::new(name).with_arguments(arguments))
        .await
        .expect("a result")
}

fn text(result: &CallToolResult) -> String {
    let block = serde_json::to_value(&result.content[0]).expect("serialises");
    block["text"].as_str().expect("a text").to_owned()
}

fn cursor(text: &str) -> &str {
    text.lines()
        .find_map(|line| line.strip_prefix("Continue with: "))
        .expect("a cursor")
}

#[tokio::test]
async fn an_agent_walks_the_three_steps_by_the_texts_alone() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    caller
        .remember("pool leak", "connections were not released")
        .await;
    let client = client(&caller).await;
    let tools = client.list_all_tools().await.expect("tools");
    assert_eq!(tools[0].name, "mem_search");
    let index = text(&tool(&client, "mem_search", json!({"query": "pool leak"})).await);
    assert!(
        index.starts_with("mem-search step 1 of 3 — index"),
        "{index}"
    );
    let call = json!({"continuation": cursor(&index), "selectedIds": ["1"], "mode": "guided"});
    let around = text(&tool(&client, "mem_search", call).await);
    assert!(
        around.starts_with("mem-search step 2 of 3 — context"),
        "{around}"
    );
    let call = json!({"continuation": cursor(&around), "selectedIds": "[\"1\"]"});
    let details = text(&tool(&client, "mem_search", call).await);
    assert!(
        details.contains("Narrative: connections were not released"),
        "{details}"
    );
    let by_id = text(&tool(&client, "get_observations", json!({"ids": [1, "S9"]})).await);
    assert!(
        by_id.contains("### [1] pool leak") && by_id.contains("Not found: S9."),
        "{by_id}"
    );
}

#[tokio::test]
async fn what_a_model_can_correct_it_reads() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let client = client(&caller).await;
    for (name, arguments, says) in [
        (
            "mem_search",
            json!({"query": ""}),
            "invalid_input - query: ",
        ),
        (
            "mem_search",
            json!({"continuation": "ms_x", "selectedIds": []}),
            "invalid_continuation - ",
        ),
        (
            "mem_search",
            json!({"query": "x", "project": "nope"}),
            "not_found - ",
        ),
        (
            "get_observations",
            json!({"ids": "[41"}),
            "invalid_input - ids: ",
        ),
        (
            "get_observations",
            json!({"ids": []}),
            "invalid_input - ids: ",
        ),
        (
            "get_observations",
            json!({"ids": ["1"], "project": 5}),
            "invalid_input - project: ",
        ),
    ] {
        let result = tool(&client, name, arguments).await;
        assert_eq!(result.is_error, Some(true));
        assert!(text(&result).starts_with(says), "{}", text(&result));
    }
    let unknown = client
        .call_tool(CallToolRequestParams::new("no_such_tool"))
        .await;
    assert!(unknown.expect_err("refused").to_string().contains("-32602"));
}

#[tokio::test]
async fn the_data_of_a_step_is_no_way_around_its_caps() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    for n in 0..5 {
        caller
            .remember(&format!("big {n}\n# x <private>"), &"word ".repeat(13_000))
            .await;
    }
    let client = client(&caller).await;
    let mut arguments = json!({"query": "big", "maxDetails": 5});
    for _ in 0..3 {
        let result = tool(&client, "mem_search", arguments).await;
        let data = result.structured_content.clone().expect("data");
        assert!(data.to_string().len() < 16 * 1024 && text(&result).len() <= 64 * 1024);
        assert!(!data.to_string().contains("\n") && !data.to_string().contains("<private>"));
        let ids = json!(["1", "2", "3", "4", "5"]);
        arguments = json!({"continuation": data["continuation"], "selectedIds": ids});
    }
}

#[tokio::test]
async fn a_lacking_scope_is_an_http_refusal() {
    let app = TestApp::start().await;
    let writer = app
        .owner_with(&[cairn_domain::scope::Scope::MemoryWrite])
        .await;
    for name in ["mem_search", "get_observations"] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": {"query": "x", "ids": ["1"]}}});
        let reply = raw(&writer, call, &[]).await;
        assert_eq!(
            (reply.status.as_u16(), reply.code().as_str()),
            (403, "insufficient_scope")
        );
    }
}

/// Sends one message as a host of the given revision would.
async fn raw(caller: &Caller, message: Value, headers: &[(&str, &str)]) -> crate::support::Reply {
    let mut request = caller.request(Method::POST, "/mcp").json(&message);
    if !headers.iter().any(|(name, _)| *name == "Accept") {
        request = request.header("Accept", "application/json, text/event-stream");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    caller.send(request).await
}

#[tokio::test]
async fn c042_both_eras_are_served_without_a_session_and_an_unknown_one_is_ignored() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    caller.remember("pool leak", "").await;
    // A call before initialize, with a session id nobody made.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let reply = raw(&caller, list.clone(), &[("Mcp-Session-Id", "deadbeef")]).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(!reply.headers.contains_key("mcp-session-id"));
    let initialize = json!({"jsonrpc": "2.0", "id": "s1", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = raw(&caller, initialize, &[]).await.ok();
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    // The modern era: everything in the message, nothing before it.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "mem_search", "arguments": {"query": "pool"}, "_meta": meta.clone()}});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "mem_search"),
    ];
    let answer = raw(&caller, call, &headers).await.ok();
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"]["rows"][0]["id"], "1");
    let server_info = "io.modelcontextprotocol/serverInfo";
    assert_eq!(result["_meta"][server_info]["name"], "cairn");
    for method in ["server/discover", "tools/list"] {
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"_meta": meta}});
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        let result = raw(&caller, call, &headers).await.ok()["result"].clone();
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(300_000), &json!("private"))
        );
        assert_eq!(result["_meta"][server_info]["name"], "cairn", "{method}");
    }
}

#[tokio::test]
async fn c045_get_and_delete_are_not_allowed() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    for method in [Method::GET, Method::DELETE] {
        let request = caller
            .request(method, "/mcp")
            .header("Accept", "text/event-stream");
        let reply = caller.send(request).await;
        assert_eq!(reply.status, 405);
        assert_eq!(reply.headers["allow"], "POST");
    }
    assert_eq!(app.anonymous().get("/mcp").await.code(), "unauthenticated");
}

#[rstest]
#[case("*/*")]
#[case("application/json")]
#[case("text/event-stream")]
#[case("application/json;q=0.9, text/event-stream")]
#[tokio::test]
async fn c046_accept_in_other_forms(#[case] accept: &str) {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let reply = raw(&caller, list, &[("Accept", accept)]).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.text.contains("mem_search"));
}

#[tokio::test]
async fn c006_half_an_emoji_in_a_tool_call_is_no_error() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mem_search","arguments":{"query":"ok \ud83d \u0000 done"}}}"#;
    let request = caller
        .request(Method::POST, "/mcp")
        .header("Accept", "application/json, text/event-stream");
    let reply = caller
        .send(
            request
                .header("Content-Type", "application/json")
                .body(message),
        )
        .await;
    assert_eq!(
        reply.ok()["result"]["structuredContent"]["reason"],
        "no_results"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn c044_the_same_json_rpc_id_of_two_tenants_at_once() {
    let app = TestApp::start().await;
    let (owner, stranger) = (app.owner().await, app.stranger().await);
    owner.remember("alpha of acme", "").await;
    stranger.remember("alpha of umbra", "").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "mem_search", "arguments": {"query": "alpha"}}});
    let mut calls = tokio::task::JoinSet::new();
    for round in 0..200 {
        let (caller, own) = if round % 2 == 0 {
            (owner.clone(), "alpha of acme")
        } else {
            (stranger.clone(), "alpha of umbra")
        };
        let call = call.clone();
        calls.spawn(async move {
            let answer = raw(&caller, call, &[]).await.ok();
            let rows = &answer["result"]["structuredContent"]["rows"];
            assert_eq!(rows[0]["title"], own);
            assert_eq!(rows.as_array().map(Vec::len), Some(1));
        });
    }
    while let Some(done) = calls.join_next().await {
        done.expect("every answer is its caller's");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c043_strict_round_robin_over_two_replicas_without_stickiness() {
    let prefix = format!("test:{}:", uuid::Uuid::new_v4());
    let app = TestApp::with(continuations_under(&prefix, RING)).await;
    let other = app.beside(continuations_under(&prefix, RING)).await;
    let one = app.owner().await;
    one.remember("pool leak", "connections were not released")
        .await;
    let two = one.clone().at(&other);
    let mut turns = [&one, &two].into_iter().cycle();
    let mut next = async |message: Value| raw(turns.next().expect("endless"), message, &[]).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    assert_eq!(
        next(initialize).await.ok()["result"]["serverInfo"]["name"],
        "cairn"
    );
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(next(note).await.status, 202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = next(list.clone()).await.ok();
    assert_eq!(next(list).await.ok(), listed);
    let call = |id: i32, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "mem_search", "arguments": arguments}})
    };
    // Searches of three steps each, so that every step meets the other replica.
    let mut texts = Vec::new();
    let mut arguments = json!({"query": "pool leak"});
    for id in 3..53 {
        let answer = next(call(id, arguments.clone())).await.ok();
        let result = &answer["result"];
        assert_eq!(
            (&answer["id"], result["isError"] == true),
            (&json!(id), false),
            "{answer}"
        );
        let data = &result["structuredContent"];
        texts.push(data["rows"].to_string() + &data["details"].to_string());
        arguments = match data["continuation"].as_str() {
            Some(cursor) => json!({"continuation": cursor, "selectedIds": ["1"]}),
            None => json!({"query": "pool leak"}),
        };
    }
    for (step, text) in texts.iter().enumerate().skip(3) {
        assert_eq!(*text, texts[step % 3], "whichever replica answers");
    }
}
