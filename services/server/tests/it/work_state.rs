//! Work lists over REST and MCP: what is written, claimed, read and paged, to the character.

use cairn_domain::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Caller, PROJECT, TestApp, item};

/// A tool call that must succeed.
async fn told(caller: &Caller, name: &str, arguments: Value) -> String {
    let (text, is_error) = caller.tool(name, arguments).await;
    assert!(!is_error, "{text}");
    text
}

async fn refused(caller: &Caller, name: &str, arguments: Value) -> String {
    let (text, is_error) = caller.tool(name, arguments).await;
    assert!(is_error, "{text}");
    text
}

#[tokio::test]
async fn an_agent_keeps_a_list_by_its_two_tools() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    assert_eq!(
        told(&caller, "work_state_read", json!({})).await,
        "No open work in alpha-app."
    );
    assert_eq!(
        told(&caller, "work_state_read", json!({"includeClosed": "true"})).await,
        "No work lists in alpha-app."
    );
    let task = |task: &str, status: &str| json!({"list": "auth", "fields": {"task": task, "status": status}});
    told(&caller, "work_state_write", task("docs", "todo")).await;
    let written = told(&caller, "work_state_write", task("tests", "doing")).await;
    assert_eq!(
        written,
        "Stored in \"auth\" (alpha-app).\n\nOpen in it:\n- auth\n  \
         - [todo] docs, updated 1 minute ago\n  - [doing] tests, updated 1 minute ago"
    );
    // Fields as text, as some models send them.
    let closing = json!({"list": "auth", "fields": "{\"task\":\"docs\",\"status\":\"Done\"}"});
    told(&caller, "work_state_write", closing).await;
    let closed = told(&caller, "work_state_write", task("tests", "dropped")).await;
    assert_eq!(
        closed,
        "Stored in \"auth\" (alpha-app).\n\nNothing open in it."
    );
    let read = told(&caller, "work_state_read", json!({"includeClosed": true})).await;
    assert_eq!(
        read,
        "- auth\n  - [Done] docs, updated 1 minute ago by ada\n  \
         - [dropped] tests, updated 1 minute ago by ada"
    );
    assert_eq!(caller.open_work().await, "No open work in alpha-app.");
}

#[tokio::test]
async fn c067_twenty_tasks_in_a_loop_are_there_in_order() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let writes: Vec<_> = (0..20)
        .map(|n| json!({"list": "sprint", "fields": {"task": format!("t{n}"), "status": "todo"}}))
        .collect();
    for write in writes {
        told(&caller, "work_state_write", write).await;
    }
    let answer = caller.get("/v1/work-state?list=sprint").await.ok();
    let tasks = answer["lists"][0]["tasks"].as_array().expect("tasks");
    let names: Vec<_> = tasks.iter().map(|task| task["task"].as_str()).collect();
    let expected: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    assert_eq!(
        names,
        expected
            .iter()
            .map(|n| Some(n.as_str()))
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn nobody_holds_what_is_closed_and_whoever_tries_is_told() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let done = json!({"list": "auth", "fields": {"task": "docs", "status": "done"}});
    told(&owner, "work_state_write", done).await;
    let claim = json!({"list": "auth", "fields": {"task": "docs"}, "action": "claim"});
    assert_eq!(
        told(&owner, "work_state_write", claim).await,
        "Stored in \"auth\" (alpha-app).\ndocs is closed, so nobody holds it.\n\nNothing open in it."
    );
}

#[tokio::test]
async fn one_session_claims_a_task_and_another_is_told_who_and_until_when() {
    let app = TestApp::start().await;
    let one = app.owner().await.in_session("claude-code/s-1");
    let two = app.owner().await.in_session("claude-code/s-2");
    let claim = json!({"list": "auth", "fields": {"task": "docs", "status": "doing"},
        "action": "claim", "leaseMinutes": "30"});
    let won = told(&one, "work_state_write", claim.clone()).await;
    let holder = won.split("held by ").nth(1).expect("a holder");
    let holder = holder.split(',').next().expect("its end").to_owned();
    assert!(holder.starts_with("ada#") && holder.len() == 8, "{won}");

    let lost = refused(&two, "work_state_write", claim.clone()).await;
    assert!(
        lost.starts_with(&format!("claimed - docs is held by {holder} until "))
            && lost.ends_with(" UTC."),
        "{lost}"
    );
    let lost = two
        .post(
            "/v1/work-state/entries",
            json!({"list": "auth", "fields": {"task": "docs", "n": 1}, "action": "claim"}),
        )
        .await;
    assert_eq!(
        (lost.status.as_u16(), lost.code().as_str()),
        (409, "claimed")
    );
    assert_eq!(lost.json()["holder"], holder.as_str());
    assert!(lost.json()["until"].is_string());
    assert!(
        !one.open_work().await.contains("n=1"),
        "nothing of a lost claim is written"
    );

    // A plain write by another is accepted, and names the holder.
    let plain = json!({"list": "auth", "fields": {"task": "docs", "note": "x"}});
    let plain = told(&two, "work_state_write", plain).await;
    assert!(
        plain.contains(&format!("\ndocs is held by {holder} until ")),
        "{plain}"
    );

    let release = json!({"list": "auth", "fields": {"task": "docs"}, "action": "release"});
    // Another of the same tenant's admins may; a member may not.
    let member = app.member().await.in_session("claude-code/s-3");
    assert!(
        refused(&member, "work_state_write", release.clone())
            .await
            .starts_with("claimed")
    );
    told(&two, "work_state_write", release).await;
    assert!(!two.open_work().await.contains("held by"));
}

#[tokio::test]
async fn a_write_is_repeatable_by_its_event_id() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let id = Uuid::now_v7();
    let write = json!({"list": "l", "fields": {"n": 1}});
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = caller.request(Method::POST, "/v1/work-state/entries");
        let request = request
            .header("Idempotency-Key", id.to_string())
            .json(&write);
        answers.push(caller.send(request).await.ok());
    }
    assert_eq!(answers[0], answers[1]);
    // Sent again with other content, or from another project, it is still that entry.
    for caller in [&caller, &caller.clone().in_project("name:never-born")] {
        let other = json!({"list": "other", "fields": {"task": "x"}, "event_id": id});
        let again = caller.post("/v1/work-state/entries", other).await.ok();
        assert_eq!(
            (&again["list"], &again["event_id_reused"]),
            (&json!("l"), &json!(true))
        );
        let text = again["text"].as_str().expect("a text");
        assert!(
            text.starts_with("Stored in \"l\" (alpha-app).\nThis event id was stored before"),
            "{text}"
        );
    }
    // An id that made something else made no entry.
    let record = item("observation", json!({"title": "x"}));
    let taken = record["event_id"].clone();
    caller.events(vec![record]).await.ok();
    let body = json!({"list": "l", "fields": {"n": 1}, "event_id": taken});
    let reply = caller.post("/v1/work-state/entries", body).await;
    assert_eq!(reply.code(), "event_id_reused");
    let history = caller.get("/v1/work-state/history").await.ok();
    assert_eq!(history["items"].as_array().expect("items").len(), 1);
    // The same id from a spool is the same entry.
    let mut spooled = item("work_entry", write.clone());
    spooled["event_id"] = json!(id);
    let again = caller.events(vec![spooled]).await.ok();
    assert_eq!(again["items"][0]["status"], "duplicate");
    assert_eq!(again["items"][0]["event_id_reused"], Value::Null);
    // Another author's use of it is refused and tells nothing.
    let theirs = app.member().await;
    let mut body = write;
    body["event_id"] = json!(id);
    let reply = theirs.post("/v1/work-state/entries", body).await;
    assert_eq!(reply.code(), "event_id_reused");
    let request = caller.request(Method::POST, "/v1/work-state/entries");
    let request = request
        .header("Idempotency-Key", "7")
        .json(&json!({"list": "l", "fields": {"n": 1}}));
    assert_eq!(caller.send(request).await.code(), "invalid_field");
}

#[tokio::test]
async fn the_meta_member_of_a_call_gives_its_write_the_event_id() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let id = Uuid::now_v7();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "work_state_write", "arguments": {"list": "l", "fields": {"n": 1}},
        "_meta": {"dev.cairn/eventId": id}}});
    for _ in 0..2 {
        caller.post("/mcp", call.clone()).await.ok();
    }
    let history = caller.get("/v1/work-state/history").await.ok();
    let items = history["items"].as_array().expect("items");
    assert_eq!((items.len(), &items[0]["event_id"]), (1, &json!(id)));
    // The header names one event, so two writes of one request are not the same.
    let write = |n: u32| {
        json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {
            "name": "work_state_write", "arguments": {"list": "l", "fields": {"n": n}}}})
    };
    let request = caller.request(Method::POST, "/mcp");
    let request = request.header("Idempotency-Key", Uuid::now_v7().to_string());
    caller
        .send(request.json(&json!([write(2), write(3)])))
        .await
        .ok();
    let history = caller.get("/v1/work-state/history").await.ok();
    assert_eq!(history["items"].as_array().expect("items").len(), 3);
}

#[tokio::test]
async fn c020_an_entry_of_ten_that_comes_at_twelve_does_not_reopen() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    caller
        .work("auth", json!({"task": "t", "status": "done"}))
        .await
        .ok();
    let late = json!({"list": "auth", "fields": {"task": "t", "status": "doing", "note": "late"},
        "at": "2026-01-01T10:00:00Z", "sent_at": "2026-01-01T12:00:00Z"});
    caller.post("/v1/work-state/entries", late).await.ok();
    assert_eq!(caller.open_work().await, "No open work in alpha-app.");
    let all = caller.get("/v1/work-state?include_closed=true").await.ok();
    let task = &all["lists"][0]["tasks"][0];
    assert_eq!(task["fields"], json!({"status": "done", "note": "late"}));
}

#[tokio::test]
async fn a_clock_that_is_wrong_by_ages_breaks_neither_order_nor_limits() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let odd = json!({"list": "l", "fields": {"task": "odd"}, "at": "1970-01-01T00:00:00Z",
        "sent_at": "+262142-12-31T23:59:59Z"});
    let odd = caller.post("/v1/work-state/entries", odd).await.ok();
    assert_eq!(odd["hlc"], "0.0");
    caller.work("l", json!({"task": "now"})).await.ok();
    let page = caller.get("/v1/work-state/history?limit=1").await.ok();
    let cursor = page["next_cursor"].as_str().expect("a cursor");
    let next = caller
        .get(&format!("/v1/work-state/history?cursor={cursor}"))
        .await
        .ok();
    assert_eq!(next["items"].as_array().expect("items").len(), 1);
    // What names no time was made just now, whatever the sender's clock says.
    let ahead = json!({"list": "m", "fields": {"task": "t", "status": "todo"},
        "sent_at": chrono::Utc::now() + chrono::TimeDelta::hours(1)});
    caller.post("/v1/work-state/entries", ahead).await.ok();
    let mut earlier = item(
        "work_entry",
        json!({"list": "m", "fields": {"task": "t", "status": "done"}}),
    );
    earlier["at"] = json!(chrono::Utc::now() - chrono::TimeDelta::minutes(30));
    caller.events(vec![earlier]).await.ok();
    assert!(
        caller
            .open_work()
            .await
            .contains("[todo] t, updated 1 minute ago")
    );
}

#[tokio::test]
async fn sessions_whose_names_are_too_long_are_refused_and_not_one() {
    let app = TestApp::start().await;
    let caller = app
        .owner()
        .await
        .in_session(&format!("cc/{}", "x".repeat(257)));
    let claim = json!({"list": "l", "fields": {"task": "t"}, "action": "claim"});
    let reply = caller.post("/v1/work-state/entries", claim).await;
    assert_eq!(reply.code(), "invalid_field");
}

#[tokio::test]
async fn nul_in_an_address_is_a_character_like_any() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    caller.remember("x", "").await;
    for path in [
        "/v1/work-state?list=%00",
        "/v1/work-state/history?list=a%00b",
        "/v1/context?format=table&path=%00",
        "/v1/context?format=overview&query=%00",
    ] {
        assert_eq!(caller.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn an_entry_that_is_too_much_for_its_task_holds_up_no_other() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let grow = |n: usize| {
        let fields = (0..60).map(|key| (format!("k{n}-{key}"), json!(key)));
        let mut fields: serde_json::Map<String, Value> = fields.collect();
        fields.insert("task".to_owned(), json!("t"));
        fields
    };
    let mut items: Vec<Value> = (0..12)
        .map(|n| item("work_entry", json!({"list": "l", "fields": grow(n)})))
        .collect();
    items.push(item(
        "work_entry",
        json!({"list": "l", "fields": {"task": "other"}}),
    ));
    items.push(item("observation", json!({"title": "beside it"})));
    let answer = caller.events(items).await.ok();
    let status = |n: usize| answer["items"][n]["status"].as_str().expect("a status");
    assert_eq!(
        (status(0), status(12), status(13)),
        ("stored", "stored", "stored")
    );
    let refused = &answer["items"][11];
    assert_eq!(refused["code"], "invalid_field");
    assert_eq!(refused["pointer"], "/items/11/body/fields");
    assert_eq!(refused["retry"], false);
    let more = json!({"list": "l", "fields": grow(20)});
    let reply = caller.post("/v1/work-state/entries", more).await;
    assert_eq!(reply.code(), "invalid_field");
}

#[tokio::test]
async fn a_history_pages_through_every_entry_once() {
    let app = TestApp::start().await;
    let caller = app.owner().await.in_session("claude-code/s-9");
    for n in 0..7 {
        caller.work(["a", "b"][n % 2], json!({"n": n})).await.ok();
    }
    let mut seen = Vec::new();
    let mut path = "/v1/work-state/history?limit=3".to_owned();
    loop {
        let page = caller.get(&path).await.ok();
        let items = page["items"].as_array().expect("items");
        seen.extend(items.iter().map(|item| item["fields"]["n"].clone()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/work-state/history?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(json!(seen), json!([0, 1, 2, 3, 4, 5, 6]));
    let one = caller.get("/v1/work-state/history?list=a").await.ok();
    assert_eq!(one["items"].as_array().expect("items").len(), 4);
    assert_eq!(
        (&one["items"][0]["author"], &one["items"][0]["session"]),
        (&json!("ada"), &json!("s-9"))
    );
    for (query, code) in [
        ("cursor=x", "invalid_cursor"),
        ("limit=201", "invalid_field"),
    ] {
        let reply = caller.get(&format!("/v1/work-state/history?{query}")).await;
        assert_eq!(reply.code(), code);
    }
}

#[tokio::test]
async fn what_breaks_a_rule_names_the_field() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    for (body, pointer) in [
        (json!({"fields": {"n": 1}}), "/list"),
        (json!({"list": "l", "fields": {}}), "/fields"),
        (json!({"list": "l", "fields": {"a": [1]}}), "/fields/a"),
        (
            json!({"list": "l", "fields": {"n": 1}, "action": "claim"}),
            "/fields/task",
        ),
        (
            json!({"list": "l", "fields": {"task": "t"}, "action": "take"}),
            "/action",
        ),
        (
            json!({"list": "l", "fields": {"task": "t"}, "lease_minutes": 0}),
            "/lease_minutes",
        ),
        (
            json!({"list": "l", "fields": {"n": 1}, "after": "now"}),
            "/after",
        ),
        (
            json!({"list": "l", "fields": {"n": 1}, "session": {"host": "", "id": "x"}}),
            "/session/host",
        ),
    ] {
        let reply = caller.post("/v1/work-state/entries", body).await;
        assert_eq!(reply.code(), "invalid_field");
        assert_eq!(reply.json()["errors"][0]["pointer"], pointer);
    }
    for (arguments, text) in [
        (
            json!({"list": "l"}),
            "invalid_field - /fields: 1 to 64 keys",
        ),
        (
            json!({"list": "l", "fields": "["}),
            "invalid_input - fields: an object of keys and values.",
        ),
        (
            json!({"list": "l", "fields": {"task": "t"}, "leaseMinutes": 2000}),
            "invalid_input - leaseMinutes: a whole number from 1 to 1440.",
        ),
        (
            json!({"list": "l", "fields": {"n": 1}, "when": 1}),
            "invalid_input - when: no argument of this tool.",
        ),
    ] {
        assert_eq!(refused(&caller, "work_state_write", arguments).await, text);
    }
    let anywhere = json!({"list": "l", "fields": {"n": 1}, "project": "*"});
    let reply = caller.post("/v1/work-state/entries", anywhere).await;
    assert_eq!(reply.code(), "project_required");
}

#[tokio::test]
async fn lists_of_other_projects_are_read_only_where_they_are_asked_for() {
    let app = TestApp::start().await;
    let here = app.owner().await;
    let there = here.clone().in_project("name:beta-app");
    here.work("plan", json!({"task": "a"})).await.ok();
    there.work("plan", json!({"task": "b"})).await.ok();
    assert!(!here.open_work().await.contains("] b"));
    let all = here.get("/v1/work-state?project=*").await.ok();
    let text = all["text"].as_str().expect("a text");
    assert!(
        text.contains("- plan [beta-app]\n  - b") && text.contains("- plan [alpha-app]\n  - a"),
        "{text}"
    );
    let limited = app.limited_to(PROJECT).await;
    let all = limited.get("/v1/work-state?project=*").await.ok();
    assert_eq!(all["lists"].as_array().expect("lists").len(), 1);
    let reply = limited
        .post(
            "/v1/work-state/entries",
            json!({"list": "l", "fields": {"n": 1}, "project": "beta-app"}),
        )
        .await;
    assert_eq!(reply.code(), "not_found");
}

#[tokio::test]
async fn whoever_may_only_write_is_shown_nothing() {
    let app = TestApp::start().await;
    app.owner()
        .await
        .work("plan", json!({"task": "secret"}))
        .await
        .ok();
    let writer = app.owner_with(&[Scope::WorkWrite]).await;
    let written = writer.work("plan", json!({"task": "mine"})).await;
    assert_eq!(written.status, 201);
    assert!(!written.text.contains("secret"), "{}", written.text);
    assert_eq!(written.json()["open"], json!([]));
    assert_eq!(written.json()["text"], "Stored in \"plan\" (alpha-app).");
}
