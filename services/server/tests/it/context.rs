//! The session-start text over HTTP.

use cairn_domain::work_state::RULES;
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::support::{TestApp, item};

/// The index, which stands behind the work state.
fn index(text: &str) -> &str {
    let at = text.find("# [").expect("an index");
    &text[at..]
}

/// The index without its first line, which holds the time.
fn below_title(text: &str) -> &str {
    index(text).split_once('\n').expect("more than a title").1
}

#[tokio::test]
async fn the_golden_sample_is_served_to_the_character() {
    let app = TestApp::start().await;
    let caller = app.owner().await.in_project("name:my-app");
    let rows = [
        (
            "07:45",
            "decision",
            "选用 pgvector 做向量搜索",
            "数据量在百万行内，与业务表同库，少运维一个服务",
            "与 Postgres 一起备份",
            2000,
        ),
        (
            "08:45",
            "bugfix",
            "修复连接池泄漏导致的 5xx",
            "出错路径没有归还连接，改在 finally 里释放",
            "连接池上限 20",
            1800,
        ),
        (
            "09:45",
            "discovery",
            "Worker 端口按 uid 取模计算",
            "同一台机器上多个用户互不抢端口",
            "37700 + uid % 100",
            1500,
        ),
        (
            "10:45",
            "change",
            "JWT 验证改为异步",
            "验证不再阻塞请求线程",
            "签发仍是同步",
            1300,
        ),
    ];
    let mut items = Vec::new();
    for (time, kind, title, narrative, fact, work) in rows {
        let mut event = item(
            "observation",
            json!({"type": kind, "title": title,
            "narrative": narrative, "facts": [fact], "work_tokens": work}),
        );
        event["at"] = json!(format!("2026-10-10T{time}:00Z"));
        items.push(event);
    }
    let mut summary = item(
        "summary",
        json!({"request": "给 auth 模块加刷新令牌",
        "investigated": "现有 JWT 签发流程", "learned": "签发是同步的", "completed": "改为异步签发",
        "next_steps": "补刷新令牌接口测试"}),
    );
    summary["at"] = json!("2026-10-10T12:45:00Z");
    items.push(summary);
    caller.events(items).await.ok();
    let reply = caller.get("/v1/context?tz=Asia/Shanghai").await;
    assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
    let opening = format!("{RULES}\n\nNothing open yet.\n\n# [my-app] recent context, 20");
    assert!(reply.text.starts_with(&opening), "{}", reply.text);
    assert!(
        index(&reply.text)
            .lines()
            .next()
            .expect("a title")
            .ends_with("GMT+8")
    );
    insta::assert_snapshot!(below_title(&reply.text), @r"
    Mode: Code Development (code)

    Legend: 🎯session ●bugfix ◆feature ↻refactor ✓change ○discovery ⚖decision ⚠security_alert ⚷security_note ⊘sensitive
    Format: ID TIME TYPE TITLE
    Fetch details: get_observations([IDs]) | Search: mem-search skill

    Stats: 4 obs (54t read) | 6,600t work | 99% savings

    ### Oct 10, 2026
    1 3:45p ⚖ 选用 pgvector 做向量搜索
    2 4:45p ● 修复连接池泄漏导致的 5xx
    3 5:45p ○ Worker 端口按 uid 取模计算
    4 6:45p ✓ JWT 验证改为异步
    S1 给 auth 模块加刷新令牌 (Oct 10, 8:45 PM)
    **Investigated**: 现有 JWT 签发流程

    **Learned**: 签发是同步的

    **Completed**: 改为异步签发

    **Next Steps**: 补刷新令牌接口测试


    Access 7k tokens of past work via get_observations([IDs]) or mem-search skill.
    ");
}

#[tokio::test]
async fn a_project_without_memory_says_so() {
    let app = TestApp::start().await;
    let caller = app
        .owner()
        .await
        .in_project("git:git.example.com/acme/new-app");
    let reply = caller.get("/v1/context").await;
    assert!(
        index(&reply.text).starts_with("# [new-app] recent context, "),
        "{}",
        reply.text
    );
    assert!(
        reply.text.ends_with("\n\nNothing remembered here yet."),
        "{}",
        reply.text
    );
    // Asked for by an argument, an unknown project is not found.
    assert_eq!(
        caller.get("/v1/context?project=nope").await.code(),
        "not_found"
    );
}

#[tokio::test]
async fn c005_days_are_grouped_by_the_readers_clock() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut event = item("observation", json!({"title": "late fix"}));
    event["at"] = json!("2026-03-23T15:50:20Z");
    caller.events(vec![event]).await.ok();
    for (zone, day, row) in [
        ("Asia/Seoul", "### Mar 24, 2026", "1 12:50a ○ late fix"),
        (
            "America/Los_Angeles",
            "### Mar 23, 2026",
            "1 8:50a ○ late fix",
        ),
        ("No/Such_Zone", "### Mar 23, 2026", "1 3:50p ○ late fix"),
    ] {
        let text = caller.get(&format!("/v1/context?tz={zone}")).await.text;
        assert!(text.contains(&format!("{day}\n{row}")), "{zone}: {text}");
    }
}

#[tokio::test]
async fn the_json_form_counts_what_it_costs() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    caller.remember("修复连接池", "").await;
    let request = caller.request(reqwest::Method::GET, "/v1/context");
    let answer = caller
        .send(request.header("Accept", "application/json"))
        .await
        .ok();
    let text = answer["text"].as_str().expect("text");
    assert_eq!(answer["units"], json!(text.encode_utf16().count()));
    assert!(answer["est_tokens"].as_u64().expect("a number") > 10);
}

#[tokio::test]
async fn an_event_from_the_future_happened_when_it_arrived() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut event = item("observation", json!({"title": "clock ahead"}));
    event["at"] = json!("2999-01-01T00:00:00Z");
    caller.events(vec![event]).await.ok();
    let record = caller.get("/v1/observations/1").await.ok();
    let at: DateTime<Utc> = record["at"]
        .as_str()
        .expect("a time")
        .parse()
        .expect("a time");
    assert!(at <= Utc::now());
    assert_eq!(record["at"], record["arrived_at"]);
}
