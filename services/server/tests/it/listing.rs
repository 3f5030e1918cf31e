//! Lists of observations over HTTP: pages, filters, files.

use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

/// Stores observations of one batch, all at one instant.
async fn remember(caller: &Caller, count: usize) {
    let mut items = Vec::new();
    for n in 0..count {
        let mut one = item("observation", json!({"title": format!("note {n}")}));
        one["at"] = json!("2026-10-10T08:45:00.120Z");
        items.push(one);
    }
    caller.events(items).await.ok();
}

async fn page(caller: &Caller, query: &str) -> Value {
    caller.get(&format!("/v1/observations?{query}")).await.ok()
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("items").iter();
    let id = |item: &Value| item["id"].as_str().expect("an id").to_owned();
    items.map(id).collect()
}

#[tokio::test]
async fn c039_a_walk_over_all_pages_repeats_and_skips_nothing() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    remember(&owner, 25).await;
    let (mut seen, mut query) = (Vec::new(), "limit=10".to_owned());
    for round in 0..3 {
        let page = page(&owner, &query).await;
        seen.extend(ids(&page));
        if round == 0 {
            remember(&owner, 10).await;
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("limit=10&cursor={cursor}"),
            None => assert_eq!(round, 2),
        }
    }
    let wanted: Vec<String> = (1..=25).rev().map(|n| n.to_string()).collect();
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_list_alone() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let stranger = app.stranger().await;
    remember(&owner, 3).await;
    remember(&stranger, 3).await;
    let first = page(&owner, "limit=1&type=discovery,bugfix").await;
    let cursor = first["next_cursor"]
        .as_str()
        .expect("another page")
        .to_owned();
    // Said in other words, it is the same list; how long a page is does not matter.
    let other = app.owner().await.in_project("name:other");
    let same = format!("type=discovery&type=bugfix&limit=2&project=alpha-app&cursor={cursor}");
    for caller in [&owner, &other] {
        assert_eq!(ids(&page(caller, &same).await), ["2", "1"]);
    }
    for (caller, query) in [
        (&owner, format!("cursor={cursor}")),
        (&owner, format!("type=bugfix&cursor={cursor}")),
        (
            &owner,
            format!("type=discovery,bugfix&author=me&cursor={cursor}"),
        ),
        (
            &owner,
            format!("type=discovery,bugfix&project=*&cursor={cursor}"),
        ),
        (&member, format!("type=discovery,bugfix&cursor={cursor}")),
        (&stranger, format!("type=discovery,bugfix&cursor={cursor}")),
        (&owner, "cursor=WyIxIl0".to_owned()),
        (&owner, format!("type=discovery,bugfix&cursor={cursor}x")),
    ] {
        let refused = caller.get(&format!("/v1/observations?{query}")).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (422, "invalid_cursor"),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_list_says_what_there_is_and_what_it_costs() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let body = json!({"type": "bugfix", "title": "pool leak", "subtitle": "s",
        "concepts": ["gotcha"], "files_read": ["a.rs"], "files_modified": ["src/pool.rs"]});
    let mut event = item("observation", body);
    event["at"] = json!("2026-10-10T20:45:00.120Z");
    owner.events(vec![event]).await.ok();
    member.remember("theirs", "").await;
    let all = page(&owner, "").await;
    assert_eq!(
        (ids(&all), &all["next_cursor"]),
        (vec!["2".to_owned(), "1".to_owned()], &Value::Null)
    );
    assert_eq!(
        all["items"][1],
        json!({"id": "1", "kind": "observation", "title": "pool leak", "subtitle": "s",
            "type": "bugfix", "concepts": ["gotcha"], "project": "name:alpha-app",
            "session": "s-1", "author": "ada", "at": "2026-10-10T20:45:00.120Z",
            "visibility": "team", "read_tokens": 4, "files": ["src/pool.rs", "a.rs"]})
    );
    for (query, sees) in [
        ("author=me", &["1"][..]),
        ("author=ben", &["2"]),
        ("concept=gotcha&concept=pattern", &["1"]),
        ("file=pool.rs", &["1"]),
        ("from=2026-10-10&to=2026-10-10", &["1"]),
        ("from=2026-10-11&to=2026-10-11&tz=Asia/Shanghai", &["1"]),
        ("from=2026-10-11&to=2026-10-11", &[]),
        ("to=2026-10-10T20:45:00.120Z", &["1"]),
        ("to=2026-10-10T20:45:00.119Z", &[]),
        ("session=s-1&type=bugfix", &["1"]),
    ] {
        assert_eq!(ids(&page(&owner, query).await), sees, "{query}");
    }
    for (query, code) in [
        ("limit=0", "invalid_field"),
        ("limit=201", "invalid_field"),
        ("type=poem", "invalid_field"),
        ("from=soon", "invalid_field"),
        ("project=nowhere", "not_found"),
    ] {
        let refused = owner.get(&format!("/v1/observations?{query}")).await;
        assert_eq!(refused.code(), code, "{query}");
    }
    let refused = owner.clone().nowhere().get("/v1/observations").await;
    assert_eq!(refused.code(), "project_required");
    let unborn = owner.clone().in_project("name:not-yet");
    assert_eq!(ids(&page(&unborn, "").await), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_known_of_files_comes_newest_first() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    for (at, files) in [
        ("08:45:00.120Z", json!(["caf\u{e9}.rs"])),
        ("09:45:00.120Z", json!(["b.rs"])),
    ] {
        let body = json!({"title": "about it", "files_modified": files, "files_read": ["c.rs"]});
        let mut event = item("observation", body);
        event["at"] = json!(format!("2026-10-10T{at}"));
        owner.events(vec![event]).await.ok();
    }
    let get = |query: &'static str| {
        let owner = owner.clone();
        async move {
            owner
                .get(&format!("/v1/observations/by-file?{query}"))
                .await
        }
    };
    // As another machine may spell it.
    let found = get("path=cafe%CC%81.rs&path=nothing.rs").await.ok();
    assert_eq!(
        found,
        json!({"newest_at": "2026-10-10T08:45:00.120Z", "items": [{"id": "1",
            "at": "2026-10-10T08:45:00.120Z", "type": "discovery", "title": "about it",
            "session": "s-1", "files_modified": ["caf\u{e9}.rs"], "files": 2}]})
    );
    let found = get("path=./c.rs&limit=1").await.ok();
    assert_eq!(
        (
            found["items"][0]["id"].as_str(),
            found["items"].as_array().map(Vec::len)
        ),
        (Some("2"), Some(1))
    );
    let nothing = get("path=other.rs").await.ok();
    assert_eq!(nothing, json!({"items": [], "newest_at": null}));
    for query in [
        "",
        "path=",
        "path=a&limit=41",
        "path=a&path=a&path=a&path=a&path=a&path=a&path=a&path=a&path=a&path=a&path=a",
    ] {
        assert_eq!(get(query).await.code(), "invalid_field", "{query}");
    }
}

#[tokio::test]
async fn a_batch_comes_in_the_order_that_is_wanted() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    for (title, at) in [("later", "2026-10-11"), ("sooner", "2026-10-10")] {
        let mut event = item("observation", json!({ "title": title }));
        event["at"] = json!(format!("{at}T00:00:00Z"));
        owner.events(vec![event]).await.ok();
    }
    for (order, sees) in [
        (json!(null), ["1", "2"]),
        (json!("date_asc"), ["2", "1"]),
        (json!("date_desc"), ["1", "2"]),
    ] {
        let body = json!({"ids": ["1", "2"], "order": order});
        let answer = owner.post("/v1/observations/batch", body).await.ok();
        assert_eq!(ids(&answer), sees, "{order}");
    }
    let body = json!({"ids": ["1"], "order": "loudest"});
    let refused = owner.post("/v1/observations/batch", body).await;
    assert_eq!(refused.code(), "invalid_field");
}

#[test]
fn what_clients_say_of_the_tools_is_what_they_are() {
    let kept = include_str!("../../../client/src/shim/tools.json");
    let kept: serde_json::Value = serde_json::from_str(kept).expect("JSON");
    assert_eq!(
        kept,
        cairn_server::mcp::copy(),
        "write it anew: ./dev openapi"
    );
}
