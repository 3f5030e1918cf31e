//! The addresses and parameter names of an older service.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, Reply, TestApp, item};

fn is_plain(reply: &Reply) -> bool {
    reply.headers["content-type"] == "text/plain; charset=utf-8"
}

async fn fill(owner: &Caller) {
    let body = json!({"title": "pool leak", "files_modified": ["src/pool.rs"]});
    let mut event = item("observation", body);
    event["at"] = json!("2026-10-10T08:45:00.120Z");
    owner.events(vec![event]).await.ok();
    owner.remember("worker ports", "").await;
}

#[tokio::test]
async fn reads_answer_as_their_twins_do() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    fill(&owner).await;
    let ours = owner.get("/v1/search?query=pool&format=table").await;
    let theirs = owner.get("/api/search?query=pool&orderBy=relevance").await;
    assert!(
        is_plain(&theirs) && theirs.text.contains("| #1 |"),
        "{theirs:?}"
    );
    assert_eq!(theirs.text, ours.text);
    let ours = owner
        .get("/v1/search?query=pool&kind=observation")
        .await
        .ok();
    let theirs = "/api/search?query=pool&type=observations&format=json";
    assert_eq!(owner.get(theirs).await.ok(), ours);
    let evidence = owner.get("/api/search?query=pool&kind=tool_use").await;
    assert!(evidence.ok()["items"].is_array());

    let text = owner.get("/api/timeline?anchor=1&depth_after=0").await;
    let answer = owner.get("/v1/timeline?anchor=1&depth_after=0").await.ok();
    assert!(is_plain(&text));
    assert_eq!(text.text, answer["text"]);
    let json = owner
        .get("/api/timeline?anchor=1&depthAfter=0&format=json")
        .await;
    assert_eq!(json.ok(), answer);

    let body = json!({"ids": ["1", "2"], "orderBy": "date_desc"});
    let batch = owner.post("/api/observations/batch", body).await.ok();
    assert_eq!(batch["items"][0]["id"], "2");
    let body = json!({"ids": ["1", "2"], "orderBy": "loudest"});
    let refused = owner.post("/api/observations/batch", body).await;
    assert_eq!(refused.code(), "invalid_field");

    let ours = owner
        .get("/v1/observations/by-file?path=src/pool.rs")
        .await
        .ok();
    assert_eq!(ours["items"][0]["id"], "1");
    for theirs in [
        "path=src/pool.rs",
        "filePath=src/pool.rs",
        "files=other.rs,src/pool.rs&projects=alpha-app",
    ] {
        let found = owner
            .get(&format!("/api/observations/by-file?{theirs}"))
            .await;
        assert_eq!(found.ok(), ours, "{theirs}");
    }
    let search = json!({"query": "pool"});
    let found = owner.post("/api/mem-search", search).await.ok();
    assert_eq!(found["rows"][0]["id"], "1");
}

#[tokio::test]
async fn a_context_is_injected_for_the_project_that_is_known() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    fill(&owner).await;
    let ours = owner.get("/v1/context?format=full").await.text;
    let nowhere = owner.clone().nowhere();
    // A worktree stands behind its repository; nothing was written under its own name.
    for theirs in [
        "projects=alpha-app&platformSource=claude&full=true",
        "projects=alpha-app,alpha-app-worktree&full=1",
        "projects=nothing&projects=alpha-app&format=full",
    ] {
        let reply = nowhere.get(&format!("/api/context/inject?{theirs}")).await;
        assert!(is_plain(&reply), "{reply:?}");
        assert_eq!(rows(&reply.text), rows(&ours), "{theirs}");
    }
    for (query, code) in [
        ("projects=nothing,nowhere", "not_found"),
        ("projects=nothing", "not_found"),
        ("full=maybe", "invalid_field"),
        ("observations=x", "invalid_input"),
    ] {
        let refused = owner.get(&format!("/api/context/inject?{query}")).await;
        assert_eq!(refused.code(), code, "{query}");
    }
}

/// A context without the line that tells the hour.
fn rows(context: &str) -> Vec<&str> {
    let lines = context.lines();
    lines.filter(|line| !line.starts_with("# [")).collect()
}

#[tokio::test]
async fn lists_are_written_and_read_as_text() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let entry = json!({"list": "release", "fields": {"task": "docs", "status": "doing"},
        "action": "claim", "leaseMinutes": 5, "unknown": true});
    for path in ["/api/work-state/entries", "/api/work-state"] {
        let written = owner.post(path, entry.clone()).await;
        assert!(written.status == 201 && is_plain(&written), "{written:?}");
        let head = "Stored in \"release\" (alpha-app).";
        assert!(written.text.starts_with(head), "{written:?}");
        assert_eq!(member.post(path, entry.clone()).await.code(), "claimed");
    }
    let ours = owner.get("/v1/work-state").await.ok();
    let read = owner.get("/api/work-state?projects=alpha-app").await;
    assert!(is_plain(&read));
    assert_eq!(read.text, ours["text"]);
    let posted = owner.post("/api/work-state", json!({"list": "release"}));
    let posted = posted.await;
    assert_eq!((posted.status.as_u16(), posted.text), (200, read.text));
    let done = json!({"list": "release", "fields": {"task": "docs", "status": "done"}});
    owner.post("/api/work-state/entries", done).await;
    let read = owner.get("/api/work-state").await.text;
    assert_eq!(read, "No open work in alpha-app.");
    let all = owner.get("/api/work-state?includeClosed=true").await.text;
    let posted: Value = json!({"includeClosed": true});
    assert_eq!(owner.post("/api/work-state", posted).await.text, all);
    assert!(all.contains("docs"), "{all}");
}

#[tokio::test]
async fn a_memory_is_saved_once() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let id = uuid::Uuid::now_v7().to_string();
    for _ in 0..2 {
        let request = owner
            .request(Method::POST, "/api/memory/save")
            .header("Idempotency-Key", &id);
        let body = json!({"text": "Deploys run at noon", "title": "Deploys", "metadata": {}});
        let saved = owner.send(request.json(&body)).await;
        assert_eq!(saved.status, 201);
        let saved = saved.ok();
        assert_eq!(
            (&saved["id"], &saved["origin"]),
            (&json!("1"), &json!("manual"))
        );
    }
}
