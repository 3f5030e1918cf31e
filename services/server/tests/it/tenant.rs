//! The tenant's settings: what can be set, and that who may read prompts and evidence follows at
//! once, wherever they are read.

use cairn_domain::scope::Scope;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item, redis_continuations};

async fn set(caller: &Caller, patch: Value) -> Value {
    caller.patch("/v1/tenant", patch).await.ok()
}

#[tokio::test]
async fn settings_are_read_patched_and_taken_back() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let defaults = owner.get("/v1/tenant").await.ok();
    let wanted = json!({
        "prompt_visibility": "private", "tools": "core", "evidence_visibility": "team",
        "observer": "extractive", "observer_tokens": 0, "observer_fallback": true,
        "retention_days": {"tool_uses": 30, "prompts": 180, "observations": 0, "summaries": 0,
            "work_entries": 0, "audit": 400},
        "quotas": {"stored_bytes": null, "events_a_day": null, "members": null,
            "blob_bytes": null, "observer_tokens_a_month": null},
        "oidc_default_role": "reader"});
    assert_eq!(defaults, wanted);
    let patch = json!({"tools": "mem_search", "retention_days": {"audit": 10},
        "quotas": {"blob_bytes": 7}, "observer_tokens": 5});
    let changed = set(&owner, patch).await;
    assert_eq!(changed["retention_days"]["audit"], 10);
    assert_eq!(changed["retention_days"]["prompts"], 180);
    assert_eq!(changed, owner.get("/v1/tenant").await.ok());
    assert_eq!(owner.listed_tools(None).await, ["mem_search"]);
    assert_eq!(app.stranger().await.get("/v1/tenant").await.ok(), wanted);
    for (patch, at) in [
        (json!({"colour": "red"}), "/colour"),
        (
            json!({"retention_days": {"audit": 3651}}),
            "/retention_days/audit",
        ),
        (
            json!({"retention_days": {"poems": 1}}),
            "/retention_days/poems",
        ),
        (json!({"quotas": {"members": -1}}), "/quotas/members"),
        (json!({"oidc_default_role": "owner"}), "/oidc_default_role"),
        (json!({"tools": "core", "observer": 7}), "/observer"),
    ] {
        let refused = owner.patch("/v1/tenant", patch.clone()).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (422, "invalid_field")
        );
        assert_eq!(refused.json()["errors"][0]["pointer"], at, "{patch}");
    }
    let back = json!({"tools": null, "retention_days": null, "quotas": null,
        "observer_tokens": null});
    assert_eq!(set(&owner, back).await, wanted);
    let lines = owner.get("/v1/audit?action=tenant.change").await.ok();
    let lines: Vec<&Value> = lines["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|line| &line["detail"]["changed"])
        .collect();
    assert_eq!(
        lines,
        [
            &json!(["observer_tokens", "quotas", "retention_days", "tools"]),
            &json!([
                "observer_tokens",
                "quotas.blob_bytes",
                "retention_days.audit",
                "tools"
            ]),
        ]
    );
}

#[tokio::test]
async fn what_two_set_at_once_is_all_set() {
    let app = TestApp::start().await;
    let there = app.beside(redis_continuations()).await;
    let owner = app.owner().await;
    let other = owner.clone().at(&there);
    let (one, two) = tokio::join!(
        set(&owner, json!({"tools": "legacy"})),
        set(&other, json!({"observer_tokens": 9})),
    );
    assert!(one["tools"] == "legacy" && two["observer_tokens"] == 9);
    let both = owner.get("/v1/tenant").await.ok();
    assert_eq!(
        (&both["tools"], &both["observer_tokens"]),
        (&json!("legacy"), &json!(9))
    );
    let revision: i64 = sqlx::query_scalar("select settings_revision from tenants where name = $1")
        .bind("acme")
        .fetch_one(&mut app.db.admin().await)
        .await
        .expect("a revision");
    assert_eq!(revision, 2);
    // To set what is set changes nothing.
    set(&owner, json!({"tools": "legacy"})).await;
    let lines = owner.get("/v1/audit?action=tenant.change").await.ok();
    assert_eq!(lines["items"].as_array().expect("items").len(), 2);
}

/// Every way in which somebody may come across a prompt of another.
async fn prompt_is_seen(caller: &Caller) -> Vec<bool> {
    let mut seen = Vec::new();
    for path in [
        "/v1/prompts/P1",
        "/v1/search?query=quokka",
        "/v1/search?kind=prompt",
        "/v1/timeline?anchor=1",
        "/api/search?query=quokka",
    ] {
        seen.push(caller.get(path).await.text.contains("where is the quokka"));
    }
    let batch = json!({"ids": ["P1"]});
    let batch = caller.post("/v1/observations/batch", batch).await;
    seen.push(batch.text.contains("where is the quokka"));
    let index = caller.mem_search(json!({"query": "quokka"})).await;
    seen.push(index.text.contains("[P1]"));
    let sessions = caller.get("/v1/sessions").await.ok();
    seen.push(sessions["items"][0]["counts"]["prompts"] == 1);
    seen
}

#[tokio::test]
async fn prompts_are_the_teams_as_soon_as_and_as_long_as_it_is_set() {
    let app = TestApp::start().await;
    let (owner, ben) = (app.owner().await, app.member().await);
    let items = vec![
        item("prompt", json!({"text": "where is the quokka?"})),
        item("observation", json!({"title": "found it"})),
    ];
    owner.events(items).await.ok();
    assert_eq!(prompt_is_seen(&owner).await, [true; 8]);
    assert_eq!(prompt_is_seen(&ben).await, [false; 8]);
    set(&owner, json!({"prompt_visibility": "team"})).await;
    assert_eq!(prompt_is_seen(&ben).await, [true; 8]);
    assert_eq!(prompt_is_seen(&app.stranger().await).await, [false; 8]);
    set(&owner, json!({"prompt_visibility": "private"})).await;
    assert_eq!(prompt_is_seen(&ben).await, [false; 8]);
}

/// Every way in which somebody may come across a tool use of another.
async fn evidence_is_seen(caller: &Caller) -> Vec<bool> {
    let batch = json!({"ids": ["T1", "toolu_1"]});
    let batch = caller.post("/v1/tool-uses/batch", batch).await.ok();
    let found = caller
        .search(&[("query", "quokka"), ("kind", "tool_use")])
        .await
        .ok();
    let (text, _) = caller.tool("get_tool_uses", json!({"ids": ["T1"]})).await;
    let sessions = caller.get("/v1/sessions").await.ok();
    vec![
        !batch["items"].as_array().expect("items").is_empty(),
        !found["items"].as_array().expect("items").is_empty(),
        text.contains("quokka"),
        sessions["items"][0]["counts"]["tool_uses"] == 1,
    ]
}

#[tokio::test]
async fn tool_uses_are_their_authors_alone_where_it_is_set() {
    let app = TestApp::start().await;
    let (owner, ben) = (app.owner().await, app.member().await);
    let call = json!({"tool": "Bash", "host_tool_use_id": "toolu_1", "input": "{}",
        "output": "\"quokka\""});
    let seen = item("observation", json!({"title": "x"}));
    ben.events(vec![item("tool_use", call), seen]).await.ok();
    assert_eq!(evidence_is_seen(&owner).await, [true; 4]);
    set(&owner, json!({"evidence_visibility": "author"})).await;
    assert_eq!(evidence_is_seen(&owner).await, [false; 4]);
    assert_eq!(evidence_is_seen(&ben).await, [true; 4]);
    // Not even an admin deletes what they may not know of.
    assert_eq!(owner.delete("/v1/tool-uses/T1").await.code(), "not_found");
    set(&owner, json!({"evidence_visibility": "team"})).await;
    assert_eq!(evidence_is_seen(&owner).await, [true; 4]);
    let blind = app.owner_with(&[Scope::MemoryRead]).await;
    let sessions = blind.get("/v1/sessions").await.ok();
    assert!(sessions["items"][0]["counts"].get("tool_uses").is_none());
}
