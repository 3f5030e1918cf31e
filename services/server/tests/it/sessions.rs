//! Sessions over REST: of the current project, with counts of what the caller may read.

use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

fn in_session(id: &str, mut item: Value, at: &str) -> Value {
    item["session"] = json!({"host": "claude-code", "id": id});
    item["at"] = json!(at);
    item
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|session| session["session"].as_str().expect("an id"))
        .collect()
}

async fn fill(ada: &Caller, ben: &Caller) {
    let seen = || item("observation", json!({"title": "x"}));
    let start = item("session_start", json!({"source": "startup", "model": "m"}));
    let day = |n: u8| format!("2026-10-0{n}T08:00:00.000Z");
    let events = vec![
        in_session("s-1", start, &day(1)),
        in_session("s-1", seen(), &day(1)),
        in_session(
            "s-1",
            item("session_end", json!({"reason": "exit"})),
            &day(2),
        ),
        in_session("s-2", seen(), &day(3)),
    ];
    ada.events(events).await.ok();
    ben.events(vec![in_session("s-3", seen(), &day(4))])
        .await
        .ok();
    let elsewhere = ada.clone().in_project("name:beta-app");
    elsewhere
        .events(vec![in_session("s-4", seen(), &day(5))])
        .await
        .ok();
}

#[tokio::test]
async fn sessions_are_listed_newest_first_and_found_by_their_names() {
    let app = TestApp::start().await;
    let (ada, ben) = (app.owner().await, app.member().await);
    fill(&ada, &ben).await;
    let all = ada.get("/v1/sessions").await.ok();
    assert_eq!(names(&all), ["s-3", "s-2", "s-1"]);
    let oldest = &all["items"][2];
    assert_eq!(oldest["key"], "claude-code/s-1");
    assert_eq!(
        oldest["counts"],
        json!({"observations": 1, "summaries": 0, "prompts": 0,
        "tool_uses": 0})
    );
    assert_eq!(
        (
            &oldest["started_at"],
            &oldest["ended_at"],
            &oldest["end_reason"],
            &oldest["model"]
        ),
        (
            &json!("2026-10-01T08:00:00.000Z"),
            &json!("2026-10-02T08:00:00.000Z"),
            &json!("exit"),
            &json!("m")
        )
    );
    for (filter, wanted) in [
        ("author=me", vec!["s-2", "s-1"]),
        ("author=ben", vec!["s-3"]),
        ("author=nobody", vec![]),
        ("from=2026-10-03", vec!["s-3", "s-2"]),
        ("to=2026-10-03", vec!["s-2", "s-1"]),
        ("project=*", vec!["s-4", "s-3", "s-2", "s-1"]),
        ("project=beta-app", vec!["s-4"]),
    ] {
        let found = ada.get(&format!("/v1/sessions?{filter}")).await.ok();
        assert_eq!(names(&found), wanted, "{filter}");
    }
    let first = ada.get("/v1/sessions?limit=2").await.ok();
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    let next = format!("/v1/sessions?limit=2&cursor={cursor}");
    assert_eq!(names(&ada.get(&next).await.ok()), ["s-1"]);
    assert_eq!(ben.get(&next).await.code(), "invalid_cursor");
    let id = oldest["id"].as_str().expect("an id");
    for name in [id, "s-1", "claude-code%2Fs-1"] {
        let one = ada.get(&format!("/v1/sessions/{name}")).await.ok();
        assert_eq!(one, *oldest, "{name}");
    }
    // By its id no project is needed, but one that applies confines.
    assert_eq!(
        ada.clone().nowhere().get("/v1/sessions/s-4").await.status,
        200
    );
    for (caller, name) in [
        (ada.clone(), "s-4"),
        (ada.clone(), "s-9"),
        (app.stranger().await, id),
        (app.limited_to("beta-app").await, id),
    ] {
        let reply = caller.get(&format!("/v1/sessions/{name}")).await;
        assert_eq!(reply.code(), "not_found", "{name}");
    }
    assert_eq!(
        ada.nowhere().get("/v1/sessions").await.code(),
        "project_required"
    );
}

#[tokio::test]
async fn a_session_that_was_captured_in_private_is_its_authors_alone() {
    let app = TestApp::start().await;
    let (ada, ben) = (app.owner().await, app.member().await);
    let mut hidden = item("observation", json!({"title": "x"}));
    hidden["visibility"] = json!("private");
    ben.events(vec![hidden]).await.ok();
    let mine = ben.get("/v1/sessions").await.ok();
    assert_eq!(names(&mine), ["s-1"]);
    assert_eq!(names(&ada.get("/v1/sessions").await.ok()), [] as [&str; 0]);
    let id = mine["items"][0]["id"].as_str().expect("an id");
    let reply = ada.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!(reply.code(), "not_found");
    ben.patch("/v1/observations/1", json!({"visibility": "team"}))
        .await
        .ok();
    assert_eq!(
        ada.get("/v1/sessions").await.ok()["items"][0]["counts"]["observations"],
        1
    );
}
