//! Reading and writing across a merge: either name covers both, each record keeps its own project,
//! and a credential that is limited to one of them goes on seeing what it did.

use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item, redis_continuations};

const OLD: &str = "name:old";
const NEW: &str = "name:new";

/// Two projects with a record and a list each, merged.
struct Pair {
    app: TestApp,
    old: Caller,
    new: Caller,
}

impl Pair {
    async fn filled() -> Self {
        let app = TestApp::start().await;
        let owner = app.owner().await;
        let (old, new) = (owner.clone().in_project(OLD), owner.in_project(NEW));
        for (caller, name) in [(&old, "old"), (&new, "new")] {
            let seen = json!({"title": format!("pool note of {name}"),
                "files_read": ["src/pool.rs"]});
            let call = json!({"tool": "Bash", "input": "{}",
                "output": format!("\"pool output of {name}\"")});
            let items = vec![item("observation", seen), item("tool_use", call)];
            caller.events(items).await.ok();
            let fields = json!({"task": format!("task of {name}"), "status": "todo"});
            assert_eq!(caller.work("release", fields).await.status, 201);
        }
        Self { app, old, new }
    }

    async fn merge(&self) {
        let found = self.old.post("/v1/projects/resolve", json!({"key": OLD}));
        let found = found.await.ok();
        let path = format!("/v1/projects/{}", found["id"].as_str().expect("an id"));
        self.new.patch(&path, json!({"merge_into": NEW})).await.ok();
    }

    async fn start() -> Self {
        let pair = Self::filled().await;
        pair.merge().await;
        pair
    }
}

/// Every way to read a project, as one text.
async fn everything(caller: &Caller) -> String {
    let mut all = String::new();
    for path in [
        "/v1/observations",
        "/v1/observations/by-file?path=src/pool.rs",
        "/v1/search?query=pool",
        "/v1/timeline?query=pool",
        "/v1/context",
        "/v1/context?format=overview",
        "/v1/context?format=table",
        "/v1/work-state",
        "/v1/work-state/history",
        "/v1/sessions",
    ] {
        let reply = caller.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        all.push_str(&reply.text);
        all.push('\n');
    }
    let evidence = caller
        .search(&[("query", "pool"), ("kind", "tool_use")])
        .await;
    assert_eq!(evidence.status, 200, "{evidence:?}");
    all + &evidence.text
}

#[tokio::test]
async fn reads_of_either_name_cover_both_and_records_keep_their_own() {
    let pair = Pair::filled().await;
    for (caller, other) in [(&pair.old, "of new"), (&pair.new, "of old")] {
        assert!(!everything(caller).await.contains(other));
    }
    pair.merge().await;
    for caller in [&pair.old, &pair.new] {
        let listed = caller.get("/v1/observations").await.ok();
        let listed: Vec<&Value> = listed["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|record| &record["project"])
            .collect();
        assert_eq!(listed, [NEW, OLD]);
        let context = caller.get("/v1/context").await.text;
        assert!(context.contains("# [new] recent context"), "{context}");
        for title in ["pool note of old", "pool note of new"] {
            assert!(context.contains(title), "{context}");
        }
        let found = caller.search(&[("query", "pool note")]).await.ok();
        assert_eq!(found["total"], 2, "{found}");
        let evidence = caller
            .search(&[("query", "pool"), ("kind", "tool_use")])
            .await;
        assert_eq!(evidence.ok()["items"].as_array().expect("items").len(), 2);
        let around = caller.get("/v1/timeline?anchor=1").await.ok();
        assert!(around.to_string().contains("pool note of new"), "{around}");
        let files = caller
            .get("/v1/observations/by-file?path=src/pool.rs")
            .await;
        assert_eq!(files.ok()["items"].as_array().expect("items").len(), 2);
        let sessions = caller.get("/v1/sessions").await.ok();
        assert_eq!(sessions["items"].as_array().expect("items").len(), 2);
        let index = caller.mem_search(json!({"query": "pool note"})).await.ok();
        let next = json!({"continuation": index["continuation"], "selectedIds": ["1"]});
        let step = caller.mem_search(next).await.ok();
        assert_eq!(step["rows"].as_array().expect("rows").len(), 2, "{step}");
    }
}

#[tokio::test]
async fn lists_of_one_name_stay_apart_and_each_is_written_where_it_is_named() {
    let pair = Pair::start().await;
    for caller in [&pair.old, &pair.new] {
        let text = caller.open_work().await;
        assert!(text.contains("- release\n  - [todo] task of new"), "{text}");
        assert!(
            text.contains("- release [old]\n  - [todo] task of old"),
            "{text}"
        );
    }
    // From a checkout that still has the old key, and by the name in brackets.
    let done = |task: &str| json!({"task": task, "status": "done"});
    let claim = json!({"list": "release", "fields": {"task": "task of old"}, "action": "claim"});
    let claimed = pair.old.post("/v1/work-state/entries", claim).await;
    assert_eq!(claimed.status, 201, "{claimed:?}");
    let text = pair.new.open_work().await;
    assert!(text.contains("task of old, held by ada"), "{text}");
    let body = json!({"list": "release", "fields": done("task of old"), "project": "old"});
    assert_eq!(
        pair.new.post("/v1/work-state/entries", body).await.status,
        201
    );
    let text = pair.new.open_work().await;
    assert!(
        !text.contains("[old]") && text.contains("task of new"),
        "{text}"
    );
    assert_eq!(
        pair.new.work("release", done("task of new")).await.status,
        201
    );
    assert!(pair.old.open_work().await.starts_with("No open work"));
}

#[tokio::test]
async fn what_arrives_under_the_old_key_is_read_under_both() {
    let pair = Pair::start().await;
    let context = || async { pair.new.get("/v1/context").await.text };
    assert!(!context().await.contains("late"));
    pair.old.remember("late event", "").await;
    let added = pair
        .old
        .post("/v1/observations", json!({"title": "late write"}));
    assert_eq!(added.await.ok()["project"], OLD);
    let shown = context().await;
    assert!(
        shown.contains("late event") && shown.contains("late write"),
        "{shown}"
    );
    // Promoted and deleted, it changes what is shown as well.
    let private = json!({"title": "late secret", "visibility": "private"});
    let private = pair.old.post("/v1/observations", private).await.ok();
    let path = format!(
        "/v1/observations/{}",
        private["id"].as_str().expect("an id")
    );
    let ben = pair.app.member().await.in_project(NEW);
    assert!(!ben.get("/v1/context").await.text.contains("late secret"));
    pair.old
        .patch(&path, json!({"visibility": "team"}))
        .await
        .ok();
    assert!(ben.get("/v1/context").await.text.contains("late secret"));
    assert_eq!(pair.old.delete(&path).await.status, 204);
    assert!(!ben.get("/v1/context").await.text.contains("late secret"));
}

#[tokio::test]
async fn no_replica_serves_a_context_of_before() {
    let pair = Pair::filled().await;
    let there = pair.app.beside(redis_continuations()).await;
    let callers = [&pair.old, &pair.new].map(|caller| [caller.clone(), caller.clone().at(&there)]);
    for caller in callers.iter().flatten() {
        assert_eq!(caller.get("/v1/context").await.status, 200);
    }
    pair.merge().await;
    for caller in callers.iter().flatten() {
        let context = caller.get("/v1/context").await.text;
        assert!(context.contains("# [new] recent context"), "{context}");
        assert!(
            context.contains("of old") && context.contains("of new"),
            "{context}"
        );
    }
}

#[tokio::test]
async fn a_limit_to_the_merged_one_sees_that_and_no_more() {
    let pair = Pair::filled().await;
    let limited = pair.app.limited_to(OLD).await;
    let before = everything(&limited).await;
    pair.merge().await;
    // With and without the header, and by either name.
    for caller in [limited.clone(), limited.clone().in_project(OLD)] {
        let after = everything(&caller).await;
        assert!(!after.contains("of new"), "{after}");
        assert!(before.contains("of old") && after.contains("of old"));
        assert!(
            caller
                .get("/v1/context")
                .await
                .text
                .contains("# [old] recent context")
        );
    }
    for path in [
        "/v1/observations?project=new",
        "/v1/observations/2",
        "/v1/search?query=pool&project=name:new",
    ] {
        assert_eq!(limited.get(path).await.code(), "not_found", "{path}");
    }
    let stars = limited.get("/v1/observations?project=*").await.ok();
    assert_eq!(stars["items"].as_array().expect("items").len(), 1);
    let seen = limited.get("/v1/projects").await;
    assert!(!seen.text.contains("new"), "{seen:?}");
    let me = limited
        .post("/v1/projects/resolve", json!({"key": OLD}))
        .await;
    assert!(me.status == 200 && !me.text.contains("new"), "{me:?}");
    // It writes where it did, and is shown it at once.
    let refused = limited.clone().in_project(NEW);
    let refused = refused
        .events(vec![item("observation", json!({"title": "x"}))])
        .await;
    assert_eq!(refused.json()["items"][0]["code"], "not_found");
    let here = limited.clone().in_project(OLD);
    here.remember("written by the limited one", "").await;
    assert!(
        here.get("/v1/context")
            .await
            .text
            .contains("written by the limited one")
    );
    assert!(
        pair.new
            .get("/v1/context")
            .await
            .text
            .contains("written by the limited one")
    );
}

#[tokio::test]
async fn a_limit_to_what_it_went_into_covers_it_and_its_key() {
    let pair = Pair::filled().await;
    let limited = pair.app.limited_to(NEW).await;
    assert!(!everything(&limited).await.contains("of old"));
    pair.merge().await;
    assert!(everything(&limited).await.contains("pool note of old"));
    // A checkout that still has the old key reports under it.
    let old = limited.clone().in_project(OLD);
    old.remember("under the old key", "").await;
    let context = limited.get("/v1/context").await.text;
    assert!(context.contains("under the old key"), "{context}");
    let elsewhere = limited.clone().in_project("name:third");
    let refused = elsewhere.events(vec![item("observation", json!({"title": "x"}))]);
    assert_eq!(refused.await.json()["items"][0]["code"], "not_found");
}

#[tokio::test]
async fn a_limit_keeps_what_was_merged_before_the_project_was() {
    let pair = Pair::start().await;
    let limited = pair.app.limited_to(NEW).await;
    let third = pair.new.clone().in_project("name:third");
    third.remember("pool note of third", "").await;
    let new = pair
        .new
        .post("/v1/projects/resolve", json!({"key": NEW}))
        .await
        .ok();
    let path = format!("/v1/projects/{}", new["id"].as_str().expect("an id"));
    pair.new
        .patch(&path, json!({"merge_into": "third"}))
        .await
        .ok();
    let seen = everything(&limited).await;
    assert!(seen.contains("of old") && seen.contains("of new"), "{seen}");
    assert!(!seen.contains("of third"), "{seen}");
    let all = everything(&pair.old).await;
    assert!(all.contains("of third") && all.contains("of new"));
    // What is written to the oldest of them is shown to the limit and to all.
    pair.old.remember("written late", "").await;
    for caller in [&limited, &third] {
        assert!(
            caller
                .get("/v1/context")
                .await
                .text
                .contains("written late")
        );
    }
}
