//! The index step against real rows: what is found, in which order, and that nothing breaks it.

mod support;

use cairn_domain::event::EventBody;
use cairn_domain::text::terms;
use cairn_store::test_util::{TestDb, Twin};
use support::*;

#[tokio::test]
async fn all_words_come_first_any_word_fills_up() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let titles = ["apple only", "pear only", "apple and pear", "neither"];
    store(&db, &twin, &titles).await;
    assert_eq!(
        find(&db, &twin, "apple pear", 20).await[0],
        "apple and pear"
    );
    assert_eq!(find(&db, &twin, "apple pear", 20).await.len(), 3);
    assert_eq!(find(&db, &twin, "apple pear", 2).await.len(), 2);
    assert_eq!(find(&db, &twin, "apple pear", 1).await, ["apple and pear"]);
}

#[tokio::test]
async fn newer_records_win_over_older_ones_of_equal_words() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let day = 24 * 60;
    let events = [
        at(0, observation("walnut old")),
        at(60 * day, observation("walnut new")),
        at(30 * day, observation("walnut mid")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let found = find(&db, &twin, "walnut", 20).await;
    assert_eq!(found, ["walnut new", "walnut mid", "walnut old"]);
}

#[tokio::test]
async fn c033_a_chinese_phrase_inside_a_sentence() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    store(&db, &twin, &["修复连接池泄漏导致的错误"]).await;
    for query in ["连接池", "泄漏", "连接池 错误"] {
        assert_eq!(find(&db, &twin, query, 20).await.len(), 1, "{query}");
    }
    assert!(find(&db, &twin, "数据库", 20).await.is_empty());
}

#[tokio::test]
async fn c034_no_query_is_an_error() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    store(
        &db,
        &twin,
        &["don't restart workers (max=5) with key:value"],
    )
    .await;
    for query in ["don't restart workers", "(max=5)", "key:value"] {
        assert_eq!(find(&db, &twin, query, 20).await.len(), 1, "{query}");
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
        "''",
        "\u{0}",
        "🦀",
    ] {
        find(&db, &twin, query, 20).await;
    }
    let long = "a".repeat(3_000);
    assert!(find(&db, &twin, &long, 20).await.is_empty());
}

#[tokio::test]
async fn c035_a_leading_hyphen_does_not_turn_the_search_upside_down() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut titles = vec!["commit with --no-verify skipped the hook".to_owned()];
    titles.extend((0..99).map(|n| format!("unrelated note {n}")));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    store(&db, &twin, &titles).await;
    assert_eq!(find(&db, &twin, "--no-verify", 20).await, titles[..1]);
    assert!(find(&db, &twin, "-Wall", 20).await.is_empty());
}

#[tokio::test]
async fn c036_c037_file_names_and_languages_find_their_records() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let titles = [
        "backoff lives in src/net/retry.ts now",
        "edited D:\\svc\\api\\server.py",
        "package @acme/kit, version 3.14.2",
        "ported the C++ parser",
        "C# bindings added",
        "plain C header",
        "moved to .NET 9",
    ];
    store(&db, &twin, &titles).await;
    for (query, nth) in [
        ("retry.ts", 0),
        ("net/retry.ts", 0),
        ("src/net/retry.ts", 0),
        ("backoff retry.ts", 0),
        ("server.py", 1),
        ("api\\server.py", 1),
        ("@acme/kit", 2),
        ("3.14.2", 2),
        ("C++", 3),
        ("C#", 4),
        (".NET", 6),
    ] {
        let found = find(&db, &twin, query, 20).await;
        assert_eq!(
            found.first().map(String::as_str),
            Some(titles[nth]),
            "{query}"
        );
    }
}

#[tokio::test]
async fn c038_each_project_finds_its_own_records_whatever_its_name() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let names = [
        "main",
        "ab-crm",
        "a:b",
        "我的项目",
        "00000000-0000-0000-0000-000000000001",
    ];
    let events: Vec<_> = names
        .iter()
        .map(|name| in_project(name, observation("alpha")))
        .collect();
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    for name in names {
        let projects = tx.find_projects(name).await.expect("find");
        assert_eq!(projects.len(), 1, "{name}");
        let reader = reader_of(twin.owner, &projects[0].members);
        let rows = search_index(&mut tx, &terms("alpha"), &reader, 20).await;
        let rows = rows.expect("search");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].project.name, name);
    }
}

#[tokio::test]
async fn c027_c028_a_text_with_too_many_or_too_long_words_is_stored_and_found_by_its_first() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let many: String = (0..40_000).map(|n| format!(" w{n}")).collect();
    let mut wide = prompt(&format!("alphafirst{many}"));
    let long = format!("{} needle", "a".repeat(3_000));
    record(&db.store, &twin, twin.owner, &[wide.clone(), prompt(&long)]).await;
    assert_eq!(find(&db, &twin, "alphafirst", 20).await.len(), 1);
    assert_eq!(find(&db, &twin, "needle", 20).await.len(), 1);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let read = tx.get_records(&ids(&["P1"]), &reader(twin.owner)).await;
    let EventBody::Prompt { text: Some(text) } = &mut wide.body else {
        panic!("a prompt")
    };
    let cairn_domain::record::RecordBody::Prompt { text: kept, .. } = &read.expect("read")[0].body
    else {
        panic!("a prompt")
    };
    assert_eq!(kept, text);
}

#[tokio::test]
async fn c063_two_spellings_of_one_name_are_found_by_either() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let (composed, decomposed) = ("src/caf\u{e9}.ts", "src/cafe\u{301}.ts");
    store(&db, &twin, &[composed, decomposed]).await;
    for query in [composed, decomposed, "caf\u{e9}", "cafe\u{301}.ts"] {
        assert_eq!(find(&db, &twin, query, 20).await.len(), 2, "{query}");
    }
    let named = [in_project("caf\u{e9}", observation("x"))];
    record(&db.store, &twin, twin.owner, &named).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = tx.find_projects("CAFE\u{301}").await.expect("find");
    assert_eq!(found.len(), 1);
}

async fn store(db: &TestDb, twin: &Twin, titles: &[&str]) {
    let events: Vec<_> = titles
        .iter()
        .map(|title| {
            let mut draft = observation(title);
            // Their other fields would answer too.
            if let EventBody::Observation(own) = &mut draft.body {
                own.narrative.clear();
                own.facts.clear();
                own.files_read.clear();
            }
            draft
        })
        .collect();
    record(&db.store, twin, twin.owner, &events).await;
}

/// Titles of what a query finds, best first.
async fn find(db: &TestDb, twin: &Twin, query: &str, limit: usize) -> Vec<String> {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let rows = search_index(&mut tx, &terms(query), &reader(twin.owner), limit)
        .await
        .unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.into_iter().map(|row| row.title).collect()
}
