//! Kept contexts: served while nothing changed, the same to the byte as a fresh one, gone with
//! the first write that shows, and never another reader's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cairn_domain::event::Visibility;
use cairn_domain::scope::Scope;
use cairn_server::actions::Failure;
use cairn_server::app::App;
use cairn_server::auth::Caller as Verified;
use cairn_server::contexts::{Contexts, Known, Rendered};
use cairn_store::StoreError;
use cairn_store::test_util::PrivateRedis;
use cairn_wire::context::ContextQuery;
use chrono::Utc;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, all_scopes, context_cache, item};

async fn fresh(caller: &Caller, path: &str) -> String {
    let request = caller
        .request(Method::GET, path)
        .header("Cache-Control", "no-cache");
    caller.send(request).await.text
}

/// Changes a title behind everybody's back: whoever still shows the old one did not look.
async fn retitle(app: &TestApp, from: &str, to: &str) {
    let changed = sqlx::query("update records set title = $2 where title = $1")
        .bind(from)
        .bind(to)
        .execute(&mut app.db.admin().await)
        .await
        .expect("changed");
    assert_eq!(changed.rows_affected(), 1);
}

#[tokio::test]
async fn a_write_makes_exactly_its_own_projects_next_read_miss() {
    let app = TestApp::start().await;
    let here = app.owner().await;
    let there = here.clone().in_project("name:beta-app");
    here.remember("first", "").await;
    there.remember("other", "").await;
    for caller in [&here, &there] {
        caller.get("/v1/context").await;
    }
    retitle(&app, "first", "changed").await;
    retitle(&app, "other", "changed too").await;
    assert!(here.get("/v1/context").await.text.contains("first"), "kept");
    // Prompts and tool uses change no context.
    let unseen = item("prompt", json!({"text": "why"}));
    here.events(vec![unseen]).await.ok();
    assert!(here.get("/v1/context").await.text.contains("first"), "kept");
    here.work("l", json!({"n": 1})).await.ok();
    assert!(here.get("/v1/context").await.text.contains("changed"));
    assert!(
        there.get("/v1/context").await.text.contains("other"),
        "still kept"
    );
    // Deleting shows at once; clearing drops everything of the tenant.
    assert_eq!(there.delete("/v1/observations/2").await.status, 204);
    assert!(!there.get("/v1/context").await.text.contains("other"));
    retitle(&app, "changed", "cleared").await;
    let cleared = here.post("/v1/cache/context/clear", json!({})).await;
    assert_eq!(cleared.status, 204);
    assert!(here.get("/v1/context").await.text.contains("cleared"));
    let unknown = here.post("/v1/cache/nothing/clear", json!({})).await;
    assert_eq!(unknown.code(), "not_found");
}

#[tokio::test]
async fn a_kept_context_and_a_fresh_one_are_the_same_bytes() {
    let app = TestApp::standing_still(None).await;
    let caller = app.owner().await.in_session("claude-code/s-1");
    caller.remember("修复连接池", "narrative").await;
    caller
        .work("plan", json!({"task": "docs", "status": "doing"}))
        .await
        .ok();
    let claim = json!({"list": "plan", "fields": {"task": "docs"}, "action": "claim"});
    caller.post("/v1/work-state/entries", claim).await.ok();
    for path in [
        "/v1/context?tz=Asia/Shanghai",
        "/v1/context?full_count=3&show_author=true",
        "/v1/context?format=table",
        "/v1/context?format=overview",
        "/v1/context?format=full",
    ] {
        let first = caller.get(path).await.text;
        let kept = caller.get(path).await.text;
        assert_eq!(first, kept, "{path}");
        assert_eq!(fresh(&caller, path).await, kept, "{path}");
    }
}

#[tokio::test]
async fn private_records_are_in_their_authors_context_alone() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    owner.remember("for all", "").await;
    let mut own = item("observation", json!({"title": "for me"}));
    own["visibility"] = json!("private");
    owner.events(vec![own]).await.ok();
    // In either order, kept or fresh.
    for _ in 0..2 {
        assert!(owner.get("/v1/context").await.text.contains("for me"));
        let theirs = member.get("/v1/context").await.text;
        assert!(
            theirs.contains("for all") && !theirs.contains("for me"),
            "{theirs}"
        );
    }
    assert!(!fresh(&member, "/v1/context").await.contains("for me"));
    // The twin tenant has a project of the same key, and nothing of this.
    app.stranger().await.remember("elsewhere", "").await;
    assert!(
        !app.stranger()
            .await
            .get("/v1/context")
            .await
            .text
            .contains("for all")
    );
}

#[tokio::test]
async fn a_name_that_comes_to_fit_two_projects_is_ambiguous_at_once() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let web = |key: &str| caller.clone().in_project(key);
    web("git:git.example.com/acme/web")
        .remember("one", "")
        .await;
    let by_name = caller.get("/v1/context?project=web").await;
    assert!(by_name.text.contains("one"));
    web("git:git.example.com/other/web")
        .remember("two", "")
        .await;
    let by_name = caller.get("/v1/context?project=web").await;
    assert_eq!(by_name.code(), "ambiguous_project");
}

/// A verified caller of the first tenant and a project of theirs, as the actions see them.
async fn place(app: &TestApp) -> (Verified, Known) {
    let twin = app.db.twins.0;
    let mut tx = app
        .db
        .store
        .tenant(twin.tenant, "test")
        .await
        .expect("begin");
    let found = tx
        .find_projects("alpha-app")
        .await
        .expect("found")
        .remove(0);
    let reader = cairn_domain::project::Reader {
        principal: twin.owner,
        projects: cairn_domain::project::ProjectSet::All,
    };
    let (revision, is_own) = tx
        .context_revision(found.project.id, &found.members, &reader)
        .await
        .expect("a revision");
    tx.commit().await.expect("commit");
    let caller = Verified {
        tenant: twin.tenant,
        credential: uuid::Uuid::nil(),
        principal: twin.owner,
        name: "ada".to_owned(),
        role: None,
        scopes: all_scopes(),
        project_limit: None,
        expires_at: Utc::now(),
        current_project: Some(found.project.key.clone()),
        session: None,
        visibility: Visibility::Team,
    };
    let known = Known {
        family: found,
        revision,
        is_own,
    };
    (caller, known)
}

#[tokio::test]
async fn misses_that_come_together_await_one_render_and_a_failure_is_not_kept() {
    let app = TestApp::start().await;
    app.owner().await.remember("first", "").await;
    let (caller, known) = place(&app).await;
    let contexts = Contexts::new(app.db.store.clone(), None);
    let rendered = AtomicU32::new(0);
    let render = || async {
        tokio::task::yield_now().await;
        match rendered.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Failure::from(StoreError::Unavailable)),
            _ => Ok(Rendered::default()),
        }
    };
    let get = |zone: &str| {
        let query = ContextQuery {
            tz: Some(zone.to_owned()),
            ..ContextQuery::default()
        };
        let ask = query.parse().expect("a question");
        contexts.get_or_render(&caller, &known, ask, Utc::now(), render)
    };
    let (one, two) = tokio::join!(get("UTC"), get("UTC"));
    for failed in [one, two] {
        let failed = failed.expect_err("those who wait share the failure");
        assert!(
            matches!(failed, Failure::Store(StoreError::Unavailable)),
            "{failed:?}"
        );
    }
    let (one, two, three) = tokio::join!(get("UTC"), get("UTC"), get("UTC"));
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    get("UTC").await.expect("kept");
    assert_eq!(rendered.load(Ordering::Relaxed), 2);
    get("Asia/Seoul").await.expect("another question");
    assert_eq!(rendered.load(Ordering::Relaxed), 3);
}

async fn shown(app: &App, caller: &Verified) -> String {
    let query = ContextQuery::default();
    let filled = cairn_server::actions::context::render(app, caller, &query, false).await;
    filled.expect("rendered").text()
}

#[tokio::test]
async fn replicas_find_each_others_contexts_in_redis() {
    let redis = PrivateRedis::start();
    let shared = context_cache(&redis.url()).with_patience(Duration::from_secs(30));
    let app = TestApp::standing_still(Some(shared.clone())).await;
    app.owner().await.remember("first", "").await;
    let (caller, _) = place(&app).await;
    let before = shown(&app.app, &caller).await;
    // It is given away in the background.
    while redis.keys() == 0 {
        tokio::task::yield_now().await;
    }
    retitle(&app, "first", "changed").await;
    assert_eq!(shown(&app.twin_app(Some(shared)), &caller).await, before);
}

#[tokio::test]
async fn guard_context_cache_is_open_while_redis_is_away() {
    let mut redis = PrivateRedis::start();
    let shared = context_cache(&redis.url());
    let app = TestApp::standing_still(Some(shared.clone())).await;
    app.owner().await.remember("first", "").await;
    let (caller, _) = place(&app).await;
    let before = shown(&app.app, &caller).await;
    redis.pause();
    let other = app.twin_app(Some(context_cache(&redis.url())));
    let shown_meanwhile = tokio::time::timeout(Duration::from_secs(60), shown(&other, &caller));
    assert_eq!(shown_meanwhile.await.expect("holds nobody up"), before);
    redis.resume();
    redis.kill();
    let other = app.twin_app(Some(context_cache(&redis.url())));
    assert_eq!(shown(&other, &caller).await, before);
}

#[tokio::test]
async fn the_last_reply_is_its_readers_and_never_kept() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let turn = |reply: &str| {
        let mut events = vec![
            item("prompt", json!({"text": "why"})),
            item("turn_end", json!({"last_reply": reply})),
        ];
        for event in &mut events {
            event["session"] = json!({"host": "claude-code", "id": reply});
        }
        events
    };
    owner.remember("first", "").await;
    owner.events(turn("older")).await.ok();
    let path = "/v1/context?show_last_reply=true";
    let ends_with = |text: String, reply: &str| {
        assert!(
            text.contains(&format!("---\n\n**Previously**\n\nA: {reply}")),
            "{text}"
        );
    };
    ends_with(owner.get(path).await.text, "older");
    let mut newer = turn("newer");
    for event in &mut newer {
        event["at"] = Value::Null;
    }
    owner.events(newer).await.ok();
    ends_with(owner.get(path).await.text, "newer");
    let here = owner.clone().in_session("claude-code/newer");
    ends_with(here.get(path).await.text, "older");
    assert!(!member.get(path).await.text.contains("Previously"));
    assert!(!owner.get("/v1/context").await.text.contains("Previously"));
    let reader = app.owner_with(&[Scope::MemoryRead]).await;
    ends_with(reader.get(path).await.text, "newer");
}
