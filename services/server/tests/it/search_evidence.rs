//! `/v1/search?kind=tool_use`: calls are found by what went in and came out, and not shown.

use cairn_domain::scope::Scope;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

fn call(tool: &str, input: &str, output: &str, session: &str) -> Value {
    let body = json!({"tool": tool, "input": input, "output": output, "files": ["src/db/pool.rs"]});
    let mut event = item("tool_use", body);
    event["session"]["id"] = json!(session);
    event["at"] = json!("2026-10-10T07:00:30.000Z");
    event
}

async fn stocked(owner: &Caller, member: &Caller) {
    let calls = vec![
        call(
            "Bash",
            r#"{"command":"cargo test pool_leak"}"#,
            r#""error[E0599]: no method\n修复连接池""#,
            "s-1",
        ),
        call(
            "Edit",
            r#"{"file_path":"src/net/retry.ts"}"#,
            r#"{"ok":true}"#,
            "s-1",
        ),
        call(
            "Bash",
            r#"{"command":"git commit --no-verify"}"#,
            r#""tab\tE0599 \u00e9t\u00e9""#,
            "s-2",
        ),
    ];
    owner.events(calls).await.ok();
    let mut private = call(
        "Read",
        r#"{"file_path":"secret.txt"}"#,
        r#""hidden E0599""#,
        "s-9",
    );
    private["visibility"] = json!("private");
    member.events(vec![private]).await.ok();
}

async fn find(caller: &Caller, question: &[(&str, &str)]) -> Value {
    let question = [&[("kind", "tool_use")], question].concat();
    caller.search(&question).await.ok()
}

fn ids(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().expect("items").iter();
    items
        .map(|item| item["id"].as_str().expect("an id"))
        .collect()
}

/// Who looked for what, in order.
async fn audited(app: &TestApp) -> Vec<String> {
    sqlx::query_scalar(
        "select p.name || ' ' || a.action || ' ' || (a.detail ->> 'query') from audit a
         join principals p on p.tenant_id = a.tenant_id and p.principal_id = a.actor_id
         where a.action like 'tool_use.%' order by a.audit_id",
    )
    .fetch_all(&mut app.db.admin().await)
    .await
    .expect("rows")
}

#[tokio::test]
async fn calls_are_found_by_what_they_hold() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    stocked(&owner, &member).await;
    for (query, says, wanted) in [
        ("pool leak", "all", &["T1"][..]),
        ("E0599", "all", &["T3", "T1"]),
        ("连接池", "all", &["T1"]),
        ("retry.ts", "all", &["T2"]),
        ("--no-verify", "all", &["T3"]),
        ("été", "all", &["T3"]),
        ("pool retry", "any", &["T2", "T1"]),
        ("nothing of it", "any", &[]),
        ("secret.txt", "any", &["T1"]),
        ("'\":*", "any", &[]),
    ] {
        let answer = find(&owner, &[("query", query)]).await;
        if query == "secret.txt" {
            // Another's own calls are not there.
            assert!(!answer.to_string().contains("T4"), "{answer}");
            continue;
        }
        assert_eq!(
            (ids(&answer).as_slice(), &answer["match"]),
            (wanted, &json!(says)),
            "{query}"
        );
        assert_eq!(
            (&answer["total"], answer.get("partial")),
            (&json!(wanted.len()), None)
        );
    }
    assert_eq!(ids(&find(&member, &[("query", "hidden")]).await), ["T4"]);
    let found = find(&owner, &[("query", "leak")]).await;
    assert_eq!(
        found["items"][0],
        json!({"id": "T1", "kind": "tool_use", "title": "Bash", "subtitle": "", "type": null,
            "concepts": [], "project": "name:alpha-app", "author": "ada",
            "at": "2026-10-10T07:00:30.000Z", "score": null, "read_tokens": null, "files": [],
            "session": "s-1"})
    );
}

#[tokio::test]
async fn each_filter_narrows_and_pages_meet() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    stocked(&owner, &member).await;
    for (question, wanted) in [
        (&[][..], &["T3", "T2", "T1"][..]),
        (&[("orderBy", "date_asc")], &["T1", "T2", "T3"]),
        (&[("author", "me"), ("session", "s-2")], &["T3"]),
        (&[("session", "claude-code/s-1")], &["T2", "T1"]),
        (&[("author", "ben")], &[]),
        (&[("file", "db/pool.rs"), ("query", "leak")], &["T1"]),
        (&[("file", "pool")], &[]),
        (&[("from", "2026-10-11")], &[]),
        (&[("to", "2026-10-10"), ("offset", "1")], &["T2", "T1"]),
        (&[("type", "bugfix")], &[]),
    ] {
        assert_eq!(ids(&find(&owner, question).await), wanted, "{question:?}");
    }
    for order in ["date_desc", "date_asc"] {
        for query in [None, Some("E0599 pool retry")] {
            let mut question = vec![("orderBy", order), ("limit", "1")];
            question.extend(query.map(|query| ("query", query)));
            let mut seen = Vec::new();
            let mut answer = find(&owner, &question).await;
            loop {
                assert_eq!(answer["total"], 3);
                seen.extend(ids(&answer).into_iter().map(str::to_owned));
                if seen.len() == 1 {
                    // Newer ones do not join.
                    let more = call("Bash", "{}", r#""E0599 pool retry""#, "s-3");
                    owner.events(vec![more]).await.ok();
                }
                let Some(cursor) = answer["next_cursor"].as_str() else {
                    break;
                };
                let next = [&question[..], &[("cursor", cursor)]].concat();
                answer = find(&owner, &next).await;
            }
            // Those that were stored meanwhile are gone again.
            let id =
                owner.get("/v1/search?kind=tool_use&limit=1").await.ok()["items"][0]["id"].clone();
            owner
                .delete(&format!("/v1/tool-uses/{}", id.as_str().expect("an id")))
                .await;
            let mut wanted = vec!["T3", "T2", "T1"];
            if order == "date_asc" {
                wanted.reverse();
            }
            assert_eq!(seen, wanted, "{order} {query:?}");
        }
    }
}

#[tokio::test]
async fn who_may_not_read_calls_finds_none_and_who_looks_is_noted() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let stranger = app.stranger().await;
    stocked(&owner, &member).await;
    for lacking in [Scope::EvidenceRead, Scope::MemoryRead] {
        let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(|s| *s != lacking).collect();
        let without = app.owner_with(&scopes).await;
        let refused = without
            .search(&[("kind", "tool_use"), ("query", "leak")])
            .await;
        assert_eq!(refused.code(), "insufficient_scope");
    }
    assert!(audited(&app).await.is_empty());
    assert!(ids(&find(&stranger, &[("query", "leak")]).await).is_empty());
    assert_eq!(ids(&find(&member, &[("query", "leak")]).await), ["T1"]);
    assert_eq!(
        audited(&app).await,
        ["ada tool_use.search leak", "ben tool_use.search leak"]
    );
    let limited = app.limited_to("alpha-app").await;
    assert_eq!(
        ids(&find(&limited, &[("query", "leak"), ("project", "*")]).await),
        ["T1"]
    );
    let other = owner.clone().in_project("name:elsewhere");
    assert!(ids(&find(&other, &[("query", "leak")]).await).is_empty());
    // Tools and texts have no such search, nor do records have such a kind beside theirs.
    for question in [
        [("kind", "tool_use"), ("format", "table")],
        [("kind", "tool_use,prompt"), ("query", "leak")],
    ] {
        assert_eq!(owner.search(&question).await.code(), "invalid_field");
    }
    sqlx::query("update tenants set settings = '{\"evidence_visibility\": \"author\"}'")
        .execute(&mut app.db.admin().await)
        .await
        .expect("the setting");
    assert!(ids(&find(&member, &[("query", "leak")]).await).is_empty());
    assert_eq!(ids(&find(&owner, &[("query", "leak")]).await), ["T1"]);
}

#[tokio::test]
async fn more_than_are_looked_through_is_said() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner
        .events(vec![call("Bash", r#"{"command":"oldest"}"#, "{}", "s-1")])
        .await
        .ok();
    for _ in 0..4 {
        let calls = (0..500).map(|_| call("Bash", r#"{"n":1}"#, "{}", "s-1"));
        owner.events(calls.collect()).await.ok();
    }
    let all = find(&owner, &[("limit", "1")]).await;
    assert_eq!(
        (&all["total"], &all["partial"]),
        (&json!("1000+"), &json!(true))
    );
    let oldest = find(&owner, &[("query", "oldest")]).await;
    assert_eq!(
        (&oldest["total"], &oldest["partial"]),
        (&json!(0), &json!(true))
    );
}
