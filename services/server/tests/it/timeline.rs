//! Timelines of one record: as a tool, and over HTTP.

use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

async fn remember(caller: &Caller, kind: &str, body: Value, at: &str, visibility: &str) {
    let mut event = item(kind, body);
    event["at"] = json!(at);
    event["visibility"] = json!(visibility);
    caller.events(vec![event]).await.ok();
}

/// Five records, one of them the owner's alone, and one elsewhere.
async fn fill(owner: &Caller) {
    let at = "2026-10-10T08:4";
    let observation = |title: &str| json!({"title": title, "type": "bugfix", "narrative": "n"});
    for (n, title, visibility) in [
        (1, "load test of the checkout", "team"),
        (2, "pool leak | caused 5xx", "team"),
        (3, "hidden", "private"),
    ] {
        let at = format!("{at}{n}:00Z");
        remember(owner, "observation", observation(title), &at, visibility).await;
    }
    let summary = json!({"request": "Fix 5xx errors"});
    remember(owner, "summary", summary, "2026-10-10T08:43:30Z", "team").await;
    let elsewhere = owner.clone().in_project("name:other");
    let body = observation("elsewhere");
    remember(
        &elsewhere,
        "observation",
        body,
        "2026-10-10T08:42:30Z",
        "team",
    )
    .await;
}

#[tokio::test]
async fn a_timeline_reads_as_the_contract_prints_it() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    fill(&owner).await;
    let (text, is_error) = owner.tool("timeline", json!({"anchor": "#2"})).await;
    assert!(!is_error);
    insta::assert_snapshot!(text, @r"
    Timeline around #2: 1 before, 2 after

    ### Oct 10, 2026

    | ID | Time | T | Title | Read |
    |---|---|---|---|---|
    | #1 | 8:41 AM | ● | load test of the checkout | ~8 |
    | #2 | 8:42 AM | ● | pool leak \| caused 5xx ◀ | ~7 |
    | #3 | 8:43 AM | ● | hidden | ~3 |
    | #S1 | ″ | 🎯 | Fix 5xx errors | - |
    ");
    let arguments = json!({"query": "pool leak", "depth_before": 0, "depth_after": "1"});
    let (text, _) = member.tool("timeline", arguments).await;
    assert!(
        text.starts_with("Timeline around #2: 0 before, 1 after"),
        "{text}"
    );
    assert!(text.contains("#S1") && !text.contains("hidden"), "{text}");
    let (text, is_error) = owner.tool("timeline", json!({"query": "quasar"})).await;
    assert_eq!(
        (text.as_str(), is_error),
        ("No results for \"quasar\".", false)
    );
    for (arguments, says) in [
        (
            json!({}),
            "invalid_input - anchor: either an anchor or a query.",
        ),
        (
            json!({"anchor": "2", "query": "x"}),
            "invalid_input - anchor: either an anchor or a query.",
        ),
        (json!({"anchor": "9"}), "not_found - not found"),
        (
            json!({"anchor": "2", "depth_before": 51}),
            "invalid_input - depth_before: a whole number from 0 to 50.",
        ),
    ] {
        let (text, is_error) = owner.tool("timeline", arguments).await;
        assert_eq!((text.as_str(), is_error), (says, true));
    }
    // What is private to another is no anchor, and looks like nothing.
    let (text, _) = member.tool("timeline", json!({"anchor": "3"})).await;
    assert_eq!(text, "not_found - not found");
}

#[tokio::test]
async fn a_timeline_over_http_has_its_rows() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    fill(&owner).await;
    let path = "/v1/timeline?anchor=2&depth_before=0&depth_after=2&tz=Asia/Shanghai";
    let answer = owner.get(path).await.ok();
    assert_eq!(answer["anchor"], "2");
    assert_eq!(
        answer["rows"][0],
        json!({"id": "2", "kind": "observation", "title": "pool leak | caused 5xx",
            "type": "bugfix", "project": "name:alpha-app", "author": "ada",
            "at": "2026-10-10T08:42:00.000Z", "read_tokens": 7})
    );
    assert_eq!(answer["rows"][2]["id"], "S1");
    assert_eq!(answer["rows"][2].get("read_tokens"), None);
    assert!(
        answer["text"]
            .as_str()
            .expect("a text")
            .contains("| #2 | 4:42 PM |")
    );
    let nothing = owner.get("/v1/timeline?query=quasar").await.ok();
    assert_eq!(
        (&nothing["anchor"], &nothing["rows"]),
        (&Value::Null, &json!([]))
    );
    // An id needs no project; but one that applies confines, and words need one.
    let nowhere = owner.clone().nowhere();
    let elsewhere = nowhere.get("/v1/timeline?anchor=4").await.ok();
    assert_eq!(elsewhere["rows"].as_array().map(Vec::len), Some(1));
    for (caller, query, code) in [
        (&owner, "anchor=4", "not_found"),
        (&owner, "anchor=2&project=other", "not_found"),
        (&nowhere, "query=pool", "project_required"),
        (&owner, "", "invalid_input"),
        (&owner, "anchor=2&query=x", "invalid_input"),
        (&owner, "anchor=x", "invalid_input"),
        (&owner, "anchor=2&depth_after=51", "invalid_input"),
    ] {
        let refused = caller.get(&format!("/v1/timeline?{query}")).await;
        assert_eq!(refused.code(), code, "{query}");
    }
}
