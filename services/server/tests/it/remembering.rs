//! Storing observations by hand, and letting the team read what was private.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Caller, Reply, TestApp, item};

async fn patch(caller: &Caller, path: &str, visibility: Value) -> Reply {
    let request = caller.request(Method::PATCH, path);
    caller
        .send(request.json(&json!({"visibility": visibility})))
        .await
}

#[tokio::test]
async fn an_observation_is_stored_whole_and_answered() {
    let app = TestApp::start().await;
    let owner = app.owner().await.in_session("claude-code/s-9");
    let body = json!({"type": "bugfix", "title": "pool leak", "narrative": "n",
        "facts": ["f"], "concepts": ["gotcha"], "files_modified": ["a.rs"],
        "at": "2026-10-10T08:45:00.120Z", "branch": "main", "tool_uses": ["T1"],
        "agent_id": "a-1", "agent_type": "explorer", "checkout": "~/my-app"});
    let reply = owner.post("/v1/observations", body).await;
    assert_eq!(reply.status, 201);
    let written = reply.ok();
    assert_eq!(written["id"], "1");
    assert_eq!(written["origin"], "api");
    assert_eq!(written["at"], "2026-10-10T08:45:00.120Z");
    assert_eq!(
        (&written["session"], &written["host"]),
        (&json!("s-9"), &json!("claude-code"))
    );
    assert_eq!(written["observation"]["type"], "bugfix");
    assert_eq!(written["observation"]["concepts"], json!(["gotcha"]));
    assert_eq!(
        (&written["agent_id"], &written["agent_type"]),
        (&json!("a-1"), &json!("explorer"))
    );
    assert_eq!(
        (&written["branch"], &written["checkout"]),
        (&json!("main"), &json!("~/my-app"))
    );
    assert_eq!(written, owner.get("/v1/observations/1").await.ok());
    // A text does as well.
    let text = json!({"text": "Deploys run at noon", "visibility": "private"});
    let written = owner.post("/v1/observations", text).await.ok();
    assert_eq!(written["observation"]["title"], "Deploys run at noon");
    assert_eq!(written["observation"]["narrative"], "Deploys run at noon");
    assert_eq!(written["observation"]["type"], "discovery");
    assert_eq!(
        (&written["origin"], &written["visibility"]),
        (&json!("manual"), &json!("private"))
    );
}

#[tokio::test]
async fn a_write_can_be_sent_again() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let id = Uuid::now_v7();
    let body = json!({"title": "one", "event_id": id});
    let first = owner.post("/v1/observations", body.clone()).await.ok();
    let again = owner.post("/v1/observations", body).await;
    assert_eq!(again.status, 201);
    assert_eq!(again.ok(), first);
    // By header, and with other content: nothing changes, and the answer says so.
    let request = owner
        .request(Method::POST, "/v1/observations")
        .header("Idempotency-Key", id.to_string());
    let other = owner
        .send(request.json(&json!({"title": "two"})))
        .await
        .ok();
    assert_eq!(other["event_id_reused"], true);
    assert_eq!(other["observation"]["title"], "one");
    // Another author learns nothing; a deleted one stays deleted.
    let body = json!({"title": "one", "event_id": id});
    let refused = member.post("/v1/observations", body.clone()).await;
    assert_eq!(refused.code(), "event_id_reused");
    assert_eq!(owner.delete("/v1/observations/1").await.status, 204);
    let refused = owner.post("/v1/observations", body).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (409, "conflict")
    );
    // An id that the caller used for something else.
    let work = json!({"list": "l", "fields": {"n": 1}, "event_id": Uuid::now_v7()});
    owner
        .post("/v1/work-state/entries", work.clone())
        .await
        .ok();
    let body = json!({"title": "x", "event_id": work["event_id"]});
    let refused = owner.post("/v1/observations", body).await;
    assert_eq!(refused.code(), "event_id_reused");
    assert_eq!(owner.get("/v1/observations/2").await.status, 404);
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_by_name() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    for (body, code) in [
        (json!({}), "empty_record"),
        (json!({"text": "<private>x</private>"}), "empty_record"),
        (json!({"title": "x", "type": "poem"}), "invalid_field"),
        (json!({"title": 5}), "invalid_field"),
        (json!({"title": "x", "project": "nowhere"}), "not_found"),
        (json!({"title": "x", "project": "*"}), "project_required"),
    ] {
        let refused = owner.post("/v1/observations", body.clone()).await;
        assert_eq!(refused.code(), code, "{body}");
    }
    let nowhere = owner.clone().nowhere();
    let refused = nowhere
        .post("/v1/observations", json!({"title": "x"}))
        .await;
    assert_eq!(refused.code(), "project_required");
    assert_eq!(owner.get("/v1/observations/1").await.status, 404);
}

#[tokio::test]
async fn an_agent_saves_what_it_is_told() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let saved = owner.tool("save_memory", json!({"text": "Deploys run at noon"}));
    assert_eq!(
        saved.await,
        (
            "Stored as 1 (alpha-app): Deploys run at noon".to_owned(),
            false
        )
    );
    let arguments = json!({"title": "pool leak", "facts": "[\"f1\",\"f2\"]",
        "concepts": "gotcha", "visibility": "private"});
    for (number, name) in [(2, "observation_add"), (3, "memory_add")] {
        let (text, _) = owner.tool(name, arguments.clone()).await;
        let wanted = format!("Stored as {number} (alpha-app): pool leak\nOnly you can read it.");
        assert_eq!(text, wanted);
        let record = owner.get(&format!("/v1/observations/{number}")).await.ok();
        assert_eq!(record["observation"]["facts"], json!(["f1", "f2"]));
        assert_eq!(record["origin"], "api");
    }
    for (arguments, says) in [
        (json!({}), "invalid_input - text: what is to be remembered."),
        (
            json!({"text": "x", "facts": ["y"]}),
            "invalid_input - facts: ",
        ),
        (
            json!({"text": "x", "type": "poem"}),
            "invalid_field - /type: one of ",
        ),
    ] {
        let (text, is_error) = owner.tool("save_memory", arguments).await;
        assert!(is_error && text.starts_with(says), "{text}");
    }
    // The shim says for its setting what an agent leaves open; the agent may say otherwise.
    for (arguments, visibility) in [
        (json!({"text": "x"}), "private"),
        (json!({"text": "x", "visibility": "team"}), "team"),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "save_memory", "arguments": arguments}});
        let request = owner.request(Method::POST, "/mcp").json(&message);
        let request = request.header("Cairn-Visibility", "private");
        let answer = owner.send(request).await.ok();
        let data = &answer["result"]["structuredContent"];
        assert_eq!(data["visibility"], visibility, "{answer}");
    }
    let batch = owner.batch(vec![item("observation", json!({"title": "of a batch"}))]);
    let request = owner.request(Method::POST, "/v1/events").json(&batch);
    let request = request.header("Cairn-Visibility", "private");
    let stored = owner.send(request).await.ok();
    let id = stored["items"][0]["id"].as_str().expect("an id").to_owned();
    let record = owner.get(&format!("/v1/observations/{id}")).await.ok();
    assert_eq!(record["visibility"], "private");
    let request = owner.request(Method::GET, "/v1/me");
    let refused = owner.send(request.header("Cairn-Visibility", "all")).await;
    assert_eq!(refused.code(), "invalid_field");
}

#[tokio::test]
async fn a_tool_call_with_an_event_id_stores_once() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "save_memory", "arguments": {"text": "once"},
            "_meta": {"dev.cairn/eventId": Uuid::now_v7()}}});
    for _ in 0..2 {
        let answer = owner.post("/mcp", call.clone()).await.ok();
        assert_eq!(answer["result"]["structuredContent"]["id"], "1");
    }
    assert_eq!(owner.get("/v1/observations/2").await.status, 404);
}

#[tokio::test]
async fn what_was_private_is_shown_to_all_at_once_and_for_good() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let reader = app
        .owner_with(&[cairn_domain::scope::Scope::MemoryRead])
        .await;
    let mut events = vec![
        item("observation", json!({"title": "hidden one"})),
        item("summary", json!({"request": "hidden two"})),
        item("observation", json!({"title": "hidden three"})),
    ];
    for event in &mut events {
        event["visibility"] = json!("private");
    }
    owner.events(events).await.ok();
    let context = |who: &Caller| {
        let who = who.clone();
        async move { who.get("/v1/context").await.text }
    };
    // Both have a context kept by now.
    assert!(context(&owner).await.contains("hidden one"));
    assert!(!context(&member).await.contains("hidden"));
    for path in ["/v1/observations/1", "/v1/summaries/S1"] {
        let theirs = patch(&member, path, json!("team")).await;
        assert_eq!(theirs.code(), "not_found");
        // What is set already is no change.
        let same = patch(&owner, path, json!("private")).await.ok();
        assert_eq!(same["visibility"], "private");
        let refused = patch(&reader, path, json!("team")).await;
        assert_eq!(refused.code(), "insufficient_scope");
        for bad in [json!("all"), Value::Null] {
            assert_eq!(patch(&owner, path, bad).await.code(), "invalid_field");
        }
        let record = patch(&owner, path, json!("team")).await.ok();
        assert_eq!(record["visibility"], "team");
        assert_eq!(record, member.get(path).await.ok());
        for by in [&owner, &member] {
            let back = patch(by, path, json!("private")).await;
            assert_eq!(
                (back.status.as_u16(), back.code().as_str()),
                (409, "conflict")
            );
        }
        assert_eq!(patch(&member, path, json!("team")).await.code(), "conflict");
    }
    let shown = context(&member).await;
    assert!(
        shown.contains("hidden one") && shown.contains("hidden two"),
        "{shown}"
    );
    assert!(!shown.contains("hidden three"));
    assert!(context(&owner).await.contains("hidden three"));
    let found = member.mem_search(json!({"query": "hidden"})).await.ok();
    assert_eq!(found["rows"].as_array().map(Vec::len), Some(2));
    // Prompts are never promoted.
    let prompt = patch(&owner, "/v1/prompts/P1", json!("team")).await;
    assert_eq!(prompt.code(), "method_not_allowed");
}

#[tokio::test]
async fn a_key_of_one_project_writes_and_changes_nothing_beyond_it() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let elsewhere = owner.clone().in_project("name:other");
    let body = json!({"title": "theirs", "visibility": "private"});
    elsewhere.post("/v1/observations", body).await.ok();
    owner.remember("ours", "").await;
    let limited = app.limited_to("alpha-app").await;
    for body in [
        json!({"title": "x", "project": "other"}),
        json!({"title": "x", "project": "name:new"}),
    ] {
        let refused = limited.post("/v1/observations", body).await;
        assert_eq!(refused.code(), "not_found");
    }
    let strayed = limited.clone().in_project("name:new");
    let refused = strayed
        .post("/v1/observations", json!({"title": "x"}))
        .await;
    assert_eq!(refused.code(), "not_found");
    let refused = patch(&limited, "/v1/observations/1", json!("team")).await;
    assert_eq!(refused.code(), "not_found");
    for query in ["", "?project=*"] {
        let listed = limited.get(&format!("/v1/observations{query}")).await.ok();
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    }
    let timeline = limited.get("/v1/timeline?anchor=1").await;
    assert_eq!(timeline.code(), "not_found");
    let written = limited
        .post("/v1/observations", json!({"title": "x"}))
        .await;
    assert_eq!(written.ok()["project"], "name:alpha-app");
}
