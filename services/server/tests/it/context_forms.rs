//! The forms and options of a context, and its limit over HTTP.

use cairn_domain::bounds::{est_tokens, units};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

async fn parts(caller: &Caller, path: &str) -> Value {
    let request = caller
        .request(Method::GET, path)
        .header("Accept", "application/json");
    caller.send(request).await.ok()
}

/// Fifty observations with long titles, ten summaries, twelve open tasks.
async fn fill(caller: &Caller) {
    let mut items: Vec<Value> = (0..50)
        .map(|n| {
            item(
                "observation",
                json!({"title": format!("{n}{}", "t".repeat(298)), "work_tokens": 900}),
            )
        })
        .collect();
    items.extend((0..10).map(|_| {
        item(
            "summary",
            json!({"request": "s".repeat(400), "learned": "s".repeat(600)}),
        )
    }));
    items.extend((0..12).map(|n| {
        item(
            "work_entry",
            json!({"list": "open", "fields": {"task": format!("task {n}"), "status": "todo"}}),
        )
    }));
    caller.events(items).await.ok();
}

#[tokio::test]
async fn c001_everything_together_stays_within_the_limit_and_nothing_is_cut() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    fill(&caller).await;
    for (path, limit) in [
        ("/v1/context?reserve=33", 10_000),
        ("/v1/context?budget=4000&reserve=33", 4_000),
        ("/v1/context?budget=7000&reserve=500", 7_000),
        ("/v1/context?full_count=5&reserve=33", 10_000),
    ] {
        let answer = parts(&caller, path).await;
        let text = answer["text"].as_str().expect("a text");
        let reserve: usize = path
            .rsplit('=')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a number");
        assert!(units(text) + reserve <= limit, "{path}: {}", units(text));
        assert_eq!(answer["units"], json!(units(text)));
        let [work, index] = answer["parts"].as_array().expect("parts").as_slice() else {
            panic!("{answer}")
        };
        assert_eq!(
            (&work["name"], &index["name"]),
            (&json!("work_state"), &json!("index"))
        );
        let index = index["text"].as_str().expect("a text");
        assert!(
            index.starts_with("# [alpha-app] recent context, "),
            "{index}"
        );
        assert!(index.ends_with("or mem-search skill."), "{index}");
        let rows: Vec<_> = index.lines().filter(|line| line.ends_with("ttt")).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.matches('t').count() == 298));
        assert!(
            rows.last().expect("rows").contains(" ○ 49t"),
            "the newest is kept"
        );
    }
}

#[tokio::test]
async fn c002_chinese_titles_are_characters_and_not_bytes() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let title = "修".repeat(200);
    let items = (0..45).map(|_| item("observation", json!({"title": title, "work_tokens": 900})));
    caller.events(items.collect()).await.ok();
    let text = caller.get("/v1/context?reserve=33").await.text;
    assert!(
        text.matches(&title).count() >= 40,
        "{}",
        text.matches(&title).count()
    );
    assert!(units(&text) + 33 <= 10_000);
    // A host that counts tokens instead: each of these characters is one.
    let text = caller.get("/v1/context?reserve=33&tokens=2400").await.text;
    assert!(est_tokens(&text) + 9 <= 2_400 && text.contains(&title));
}

#[tokio::test]
async fn rows_are_chosen_and_shown_as_asked() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut aside = item("observation", json!({"title": "by a subagent"}));
    aside["agent_id"] = json!("a-1");
    aside["agent_type"] = json!("explore");
    caller
        .events(vec![
            item("observation", json!({"title": "decided", "type": "decision", "work_tokens": 1200, "narrative": "because"})),
            item("observation", json!({"title": "found", "concepts": ["gotcha"]})),
            aside,
        ])
        .await
        .ok();
    let text = async |query: &str| caller.get(&format!("/v1/context?{query}")).await.text;
    let all = text("").await;
    assert!(all.contains("decided") && all.contains("found") && !all.contains("subagent"));
    assert!(
        text("main_agent_only=false")
            .await
            .contains("by a subagent")
    );
    assert!(!text("types=decision").await.contains("found"));
    assert!(!text("concepts=gotcha,pattern").await.contains("decided"));
    assert!(!text("observations=1").await.contains("decided"));
    let marked = text("show_author=true&show_read_tokens=true&show_work_tokens=true").await;
    assert!(
        marked.contains("⚖ decided ~") && marked.contains("⚖1200t @ada"),
        "{marked}"
    );
    assert!(
        text("show_savings_percent=false&show_savings_amount=true")
            .await
            .contains("t saved")
    );
    assert!(
        text("full_count=2")
            .await
            .contains("**decided**\nbecause\n")
    );
    for (query, pointer) in [
        ("budget=3999", "/budget"),
        ("format=x", "/format"),
        ("types=x", "/types"),
    ] {
        let reply = caller.get(&format!("/v1/context?{query}")).await;
        assert_eq!(reply.json()["errors"][0]["pointer"], pointer);
    }
    assert_eq!(
        caller.get("/v1/context?project=*").await.code(),
        "project_required"
    );
}

#[tokio::test]
async fn other_forms_tell_the_same_in_other_ways() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut one = item(
        "observation",
        json!({"title": "pool leak", "type": "bugfix",
        "narrative": "n".repeat(397), "files_modified": ["src/db/pool.ts"]}),
    );
    one["at"] = json!("2026-05-26T08:00:00Z");
    let mut two = item(
        "observation",
        json!({"title": "unrelated", "type": "feature",
        "files_read": ["docs/a.md"]}),
    );
    two["at"] = json!("2026-05-27T08:00:00Z");
    let summary = item(
        "summary",
        json!({"request": "fix it", "learned": "finally"}),
    );
    caller.events(vec![one, two, summary]).await.ok();
    let text = async |query: &str| caller.get(&format!("/v1/context?{query}")).await.text;
    assert_eq!(
        text("format=overview").await,
        "# Project: alpha-app\n# Memory: 2 observations across 1 session\n\
         # Token economics: 107 total, 54 avg per observation\n\n## Timeline\n\
         [2026-05-27] #2 unrelated [feature]\n[2026-05-26] #1 pool leak [bugfix]\n\n\
         ## Latest Summary\n- Request: fix it\n- Learned: finally"
    );
    let matching = text("format=overview&query=pool").await;
    assert!(matching.contains("1 observation across 1 session") && !matching.contains("unrelated"));
    let table = text("format=table&path=src/db/").await;
    assert!(
        table.starts_with(
            "# [alpha-app] src/db by file\n\n### May 26, 2026\n\n**src/db/pool.ts**\n| ID |"
        ),
        "{table}"
    );
    assert!(table.contains("| #1 | 8:00 AM | ● | pool leak | ~") && !table.contains("unrelated"));
    let whole = text("format=table").await;
    assert!(
        whole.contains("**docs/a.md**") && whole.contains("**src/db/pool.ts**"),
        "{whole}"
    );
    fill(&caller).await;
    assert!(units(&text("format=full").await) > 15_000);
}
