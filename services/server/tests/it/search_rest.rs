//! `/v1/search`: what is found by words and filters, and what is said of it.

use cairn_domain::scope::Scope;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

async fn find(caller: &Caller, question: &[(&str, &str)]) -> Value {
    caller.search(question).await.ok()
}

fn ids(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().expect("items").iter();
    items
        .map(|item| item["id"].as_str().expect("an id"))
        .collect()
}

async fn found(caller: &Caller, query: &str) -> Vec<String> {
    let answer = find(caller, &[("query", query)]).await;
    ids(&answer).into_iter().map(str::to_owned).collect()
}

/// Stores titles alone, in one batch.
async fn titles(caller: &Caller, titles: impl IntoIterator<Item = &str>) {
    let titles = titles.into_iter();
    let items = titles.map(|title| item("observation", json!({ "title": title })));
    caller.events(items.collect()).await.ok();
}

#[tokio::test]
async fn c033_a_chinese_phrase_inside_a_sentence() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    titles(&owner, ["修复连接池泄漏导致的错误", "other"]).await;
    for query in ["连接池", "泄漏", "连接池 错误", "池"] {
        assert_eq!(found(&owner, query).await, ["1"], "{query}");
    }
    assert!(found(&owner, "数据库").await.is_empty());
}

#[tokio::test]
async fn c034_quotes_operators_and_punctuation_are_no_language() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    titles(&owner, ["don't restart workers (max=5) with key:value"]).await;
    for query in ["don't restart workers", "(max=5)", "key:value"] {
        assert_eq!(found(&owner, query).await, ["1"], "{query}");
    }
    for query in [
        "\"unterminated",
        "a\"b",
        "key & | ! value",
        "workers:*",
        "restart <-> workers",
        "'\":*",
        "\\",
        "%",
        "workers'; drop table x; --",
        "blue-green AND workers",
        "\u{0}",
        "🦀",
        "the of and",
        "''",
        "\u{202e}rtl",
    ] {
        for order in ["relevance", "date_desc", "date_asc"] {
            let question = [("query", query), ("orderBy", order)];
            let answer = find(&owner, &question).await;
            let holds_one = [
                "key & | ! value",
                "workers:*",
                "restart <-> workers",
                "workers'; drop table x; --",
                "blue-green AND workers",
            ];
            let wanted: &[&str] = if holds_one.contains(&query) {
                &["1"]
            } else {
                &[]
            };
            assert_eq!(ids(&answer), wanted, "{query:?} {order}");
        }
        let posted = owner.post("/v1/search", json!({ "query": query })).await;
        assert_eq!(posted.status, 200, "{query:?}: {posted:?}");
    }
}

#[tokio::test]
async fn c035_a_leading_hyphen_does_not_turn_the_search_upside_down() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let others: Vec<String> = (0..99).map(|n| format!("unrelated note {n}")).collect();
    let others = others.iter().map(String::as_str);
    let flag = ["commit with --no-verify skipped the hook"];
    titles(&owner, flag.into_iter().chain(others)).await;
    for query in ["--no-verify", "\"--no-verify\"", "git commit --no-verify"] {
        assert_eq!(found(&owner, query).await, ["1"], "{query}");
    }
    assert!(found(&owner, "-Wall").await.is_empty());
}

#[tokio::test]
async fn c036_a_file_name_finds_the_path_that_holds_it() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let records = [
        "backoff lives in src/net/retry.ts now",
        "edited D:\\svc\\api\\server.py",
        "package @acme/kit, version 3.14.2",
    ];
    titles(&owner, records).await;
    for (query, id) in [
        ("retry.ts", "1"),
        ("net/retry.ts", "1"),
        ("src/net/retry.ts", "1"),
        ("server.py", "2"),
        ("api\\server.py", "2"),
        ("@acme/kit", "3"),
        ("3.14.2", "3"),
        ("backoff retry.ts", "1"),
    ] {
        assert_eq!(found(&owner, query).await, [id], "{query}");
    }
}

#[tokio::test]
async fn c037_languages_that_end_in_signs_are_words_of_their_own() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let records = [
        "ported the C++ parser",
        "C# bindings added",
        "plain C header",
        "moved to .NET 9",
    ];
    titles(&owner, records).await;
    for (query, id) in [("C++", "1"), ("C#", "2"), (".NET", "4")] {
        assert_eq!(
            found(&owner, query).await.first().map(String::as_str),
            Some(id),
            "{query}"
        );
    }
    assert_eq!(found(&owner, "C").await, ["3"]);
}

#[tokio::test]
async fn c038_each_project_finds_its_own_records_whatever_its_name() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let names = [
        "main",
        "ab-crm",
        "a:b",
        "我的项目",
        "00000000-0000-0000-0000-000000000001",
    ];
    for name in names {
        let there = owner.clone().in_project(&format!("name:{name}"));
        titles(&there, ["alpha"]).await;
    }
    for (nth, name) in names.iter().enumerate() {
        let id = (nth + 1).to_string();
        let there = owner.clone().in_project(&format!("name:{name}"));
        assert_eq!(found(&there, "alpha").await, [id.as_str()], "{name}");
        let named = find(&owner, &[("query", "alpha"), ("project", name)]).await;
        assert_eq!(ids(&named), [id.as_str()], "{name}");
    }
    let two = [
        ("query", "alpha"),
        ("projects", "main,a:b"),
        ("orderBy", "date_asc"),
    ];
    assert_eq!(ids(&find(&owner, &two).await), ["1", "3"]);
    let all = [("query", "alpha"), ("project", "*"), ("project", "main")];
    assert_eq!(find(&owner, &all).await["total"], 5);
}

/// Records of each kind and by two authors, three of them about files.
async fn stocked(owner: &Caller, member: &Caller) {
    let records = [
        (
            owner,
            "observation",
            json!({"title": "pool leak", "subtitle": "in the driver",
            "type": "bugfix", "concepts": ["gotcha"], "files_read": ["a.rs"],
            "files_modified": ["src/db/pool.rs"]}),
            "10T20:45:00.120Z",
            "s-1",
            "team",
        ),
        (
            owner,
            "observation",
            json!({"title": "pool size", "type": "feature",
            "files_read": ["D:\\svc\\pool.rs"]}),
            "11T20:45:00Z",
            "s-2",
            "private",
        ),
        (
            owner,
            "summary",
            json!({"request": "pool trouble"}),
            "12T00:00:00Z",
            "s-1",
            "team",
        ),
        (
            owner,
            "prompt",
            json!({"text": "why does the pool leak?"}),
            "12T00:00:00Z",
            "s-1",
            "private",
        ),
        (
            member,
            "observation",
            json!({"title": "pool by another", "type": "bugfix",
            "narrative": "leak"}),
            "13T00:00:00Z",
            "s-9",
            "team",
        ),
    ];
    for (caller, kind, body, at, session, visibility) in records {
        let mut event = item(kind, body);
        event["at"] = json!(format!("2026-10-{at}"));
        event["session"]["id"] = json!(session);
        event["visibility"] = json!(visibility);
        caller.events(vec![event]).await.ok();
    }
}

#[tokio::test]
async fn an_item_says_what_there_is_and_what_it_costs() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    stocked(&owner, &member).await;
    let answer = find(&owner, &[("query", "pool leak"), ("concept", "gotcha")]).await;
    let score = answer["items"][0]["score"].as_f64().expect("a score");
    assert!(score > 0.0);
    assert_eq!(
        answer,
        json!({"match": "all", "next_cursor": null, "total": 1, "items": [{"id": "1",
            "kind": "observation", "title": "pool leak", "subtitle": "in the driver",
            "type": "bugfix", "concepts": ["gotcha"], "project": "name:alpha-app",
            "author": "ada", "at": "2026-10-10T20:45:00.120Z", "score": score,
            "read_tokens": 7, "files": ["src/db/pool.rs", "a.rs"]}]})
    );
    let summary = find(&owner, &[("query", "trouble")]).await["items"][0].clone();
    for (name, value) in [
        ("id", json!("S1")),
        ("type", json!(null)),
        ("read_tokens", json!(null)),
        ("files", json!([])),
        ("subtitle", json!("")),
    ] {
        assert_eq!(summary[name], value, "{name}");
    }
}

#[rstest]
#[case::all_by_words(&[("query", "pool")], &["3", "P1", "S1", "2", "1"])]
#[case::by_kind(&[("query", "pool"), ("kind", "summary,prompt")], &["P1", "S1"])]
#[case::kinds_of_others(&[("type", "sessions,prompts")], &["P1", "S1"])]
#[case::by_type(&[("query", "pool"), ("type", "bugfix")], &["3", "1"])]
#[case::types_of_others(&[("obs_type", "feature,change")], &["2"])]
#[case::by_concept(&[("concepts", "gotcha,pattern")], &["1"])]
#[case::by_a_file(&[("file", "pool.rs")], &["2", "1"])]
#[case::by_a_file_and_words(&[("query", "leak"), ("filePath", "db/pool.rs")], &["1"])]
#[case::by_files(&[("files", "a.rs, svc/pool.rs")], &["2", "1"])]
#[case::by_a_folder(&[("file", "src\\db\\")], &["1"])]
#[case::by_part_of_a_name(&[("file", "ool.rs")], &[])]
#[case::by_no_file(&[("file", "%")], &[])]
#[case::by_me(&[("author", "me"), ("kind", "observation")], &["2", "1"])]
#[case::by_another(&[("author", "ben")], &["3"])]
#[case::by_nobody(&[("author", "nobody")], &[])]
#[case::by_session(&[("session", "s-2")], &["2"])]
#[case::by_session_and_host(&[("session", "claude-code/s-1")], &["P1", "S1", "1"])]
#[case::by_no_session(&[("session", "s-")], &[])]
#[case::from_a_day(&[("dateStart", "2026-10-12")], &["3", "P1", "S1"])]
#[case::to_a_day(&[("to", "2026-10-10")], &["1"])]
#[case::of_a_day_elsewhere(&[("from", "2026-10-11"), ("to", "2026-10-11"), ("tz", "Asia/Shanghai")], &["1"])]
#[case::to_the_millisecond(&[("to", "2026-10-10T20:45:00.119Z")], &[])]
#[case::by_project(&[("project", "alpha-app"), ("limit", "2")], &["3", "P1"])]
#[tokio::test]
async fn each_filter_narrows(#[case] question: &[(&str, &str)], #[case] sees: &[&str]) {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    stocked(&owner, &member).await;
    let newest = [question, &[("orderBy", "date_desc")]].concat();
    let mut wanted = sees.to_vec();
    let answer = find(&owner, &newest).await;
    assert_eq!(ids(&answer), wanted);
    assert!(
        answer["items"]
            .as_array()
            .expect("items")
            .iter()
            .all(|item| item["score"].is_null())
    );
    if !question.iter().any(|(name, _)| *name == "limit") {
        let oldest = [question, &[("orderBy", "date_asc")]].concat();
        wanted.reverse();
        assert_eq!(ids(&find(&owner, &oldest).await), wanted);
        let mut best = find(&owner, question).await;
        let items = best["items"].as_array_mut().expect("items");
        items.sort_by_key(|item| wanted.iter().position(|id| item["id"] == **id));
        assert_eq!(ids(&best), wanted, "the same by relevance");
        assert_eq!(best["total"], wanted.len());
    }
}

#[tokio::test]
async fn the_answer_says_what_of_the_query_it_holds() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    titles(
        &owner,
        ["apple pie", "pear tree", "the apple tree", "neither"],
    )
    .await;
    for (query, says, wanted) in [
        ("apple tree", "all", &["3"][..]),
        ("apple quince", "any", &["1", "3"]),
        ("the apple of an eye tree", "any", &["1", "2", "3"]),
        ("the", "all", &["3"]),
        ("quince", "any", &[]),
        ("!!", "all", &[]),
    ] {
        for order in ["relevance", "date_asc"] {
            let answer = find(&owner, &[("query", query), ("orderBy", order)]).await;
            let mut seen = ids(&answer);
            seen.sort_unstable();
            assert_eq!(
                (seen.as_slice(), &answer["match"]),
                (wanted, &json!(says)),
                "{query}"
            );
            assert_eq!(answer["total"], wanted.len());
        }
    }
    // The best first.
    assert_eq!(found(&owner, "the apple of an eye tree").await[0], "3");
}

#[tokio::test]
async fn nobody_finds_what_is_not_theirs_to_read() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let stranger = app.stranger().await;
    stocked(&owner, &member).await;
    titles(&owner.clone().in_project("name:other"), ["pool elsewhere"]).await;
    for order in ["relevance", "date_desc"] {
        for (caller, query, sees) in [
            (&member, "pool", &["1", "3", "S1"][..]),
            (&stranger, "pool", &[]),
        ] {
            let answer = find(caller, &[("query", query), ("orderBy", order)]).await;
            let mut seen = ids(&answer);
            seen.sort_unstable();
            assert_eq!(
                (seen.as_slice(), &answer["total"]),
                (sees, &json!(sees.len()))
            );
        }
        // Not even by the author's own name, or with nothing but a filter.
        let by_them = [("author", "ada"), ("kind", "prompt"), ("orderBy", order)];
        assert!(ids(&find(&member, &by_them).await).is_empty());
        assert!(ids(&find(&stranger, &[("author", "ada"), ("orderBy", order)]).await).is_empty());
    }
    // A key of one project sees that one, whatever it asks for.
    let limited = app.limited_to("other").await;
    for question in [
        &[("query", "pool")][..],
        &[("query", "pool"), ("project", "*")],
    ] {
        assert_eq!(ids(&find(&limited, question).await), ["4"]);
    }
    let refused = limited
        .search(&[("query", "pool"), ("project", "alpha-app")])
        .await;
    assert_eq!(refused.code(), "not_found");
    let both = limited
        .search(&[("query", "pool"), ("projects", "other,alpha-app")])
        .await;
    assert_eq!(both.code(), "not_found");
    // What was deleted is found no more.
    owner.delete("/v1/observations/1").await;
    assert_eq!(found(&owner, "driver").await, Vec::<String>::new());
    let without = app.owner_with(&[Scope::MemoryWrite]).await;
    assert_eq!(
        without.search(&[("query", "x")]).await.code(),
        "insufficient_scope"
    );
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_by_name() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    titles(&owner, ["pool"]).await;
    let long = "x".repeat(501);
    for (question, code) in [
        (&[][..], "query_or_filter_required"),
        (
            &[("query", " "), ("limit", "5")],
            "query_or_filter_required",
        ),
        (&[("query", &long)], "invalid_field"),
        (&[("query", "x"), ("limit", "201")], "invalid_field"),
        (&[("query", "x"), ("type", "poem")], "invalid_field"),
        (&[("query", "x"), ("from", "soon")], "invalid_field"),
        (&[("query", "x"), ("offset", "10001")], "invalid_field"),
        (&[("query", "x"), ("cursor", "x")], "invalid_cursor"),
        (&[("query", "x"), ("project", "nowhere")], "not_found"),
    ] {
        let refused = owner.search(question).await;
        assert_eq!(
            (refused.status.is_client_error(), refused.code().as_str()),
            (true, code),
            "{question:?}"
        );
    }
    let whole = "x".repeat(500);
    assert_eq!(owner.search(&[("query", &whole)]).await.status, 200);
    let nowhere = owner.clone().nowhere();
    assert_eq!(
        nowhere.search(&[("query", "x")]).await.code(),
        "project_required"
    );
    let unborn = owner.clone().in_project("name:not-yet");
    assert_eq!(find(&unborn, &[("query", "pool")]).await["total"], 0);
    for body in [
        json!([]),
        json!({"query": ["a", {}]}),
        json!({"limit": "many", "query": "x"}),
    ] {
        assert_eq!(owner.post("/v1/search", body).await.code(), "invalid_field");
    }
    // An address has no room for this; a body has.
    let paths: Vec<String> = (0..9)
        .map(|n| format!("{n}/{}", "d/".repeat(500)))
        .collect();
    let question: Vec<_> = paths.iter().map(|path| ("file", path.as_str())).collect();
    assert_eq!(owner.search(&question).await.code(), "uri_too_long");
    let posted = owner.post("/v1/search", json!({ "files": paths })).await;
    assert_eq!(posted.ok()["total"], 0);
}
