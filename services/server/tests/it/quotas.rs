//! What a team may have, and what its members used.

use std::time::{Duration, Instant};

use cairn_domain::quota::Quota;
use cairn_domain::scope::{Role, Scope};
use cairn_server::admin;
use cairn_server::app::Clock;
use cairn_store::test_util::TestDb;
use serde_json::{Value, json};

use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, TestApp, item, new_owner_key};

async fn set(app: &TestApp, quota: Quota, limit: Option<i64>) {
    let set = admin::set_quota(&app.db.store, &app.app.clock, "acme", quota, limit);
    set.await.expect("set");
}

fn observations(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| item("observation", json!({"title": format!("n{n}")})))
        .collect()
}

#[tokio::test]
async fn over_quota_writes_wait_item_by_item_and_reads_go_on() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let first = observations(2);
    caller.events(first.clone()).await.ok();
    set(&app, Quota::EventsADay, Some(3)).await;
    let mut batch = observations(2);
    batch.insert(1, first[0].clone());
    let answer = caller.events(batch.clone()).await;
    assert_eq!(answer.status, 207);
    let answer = answer.json();
    let status = |n: usize| answer["items"][n]["status"].as_str().expect("a status");
    assert_eq!([0, 1, 2].map(status), ["refused", "duplicate", "refused"]);
    let refused = &answer["items"][2];
    assert_eq!(
        (&refused["code"], &refused["retry"]),
        (&json!("quota_exceeded"), &json!(true))
    );
    let detail = refused["detail"].as_str().expect("a detail");
    assert!(detail.contains("events_a_day of 3"), "{detail}");

    // What fits is stored; then single writes are refused, through every door.
    assert_eq!(caller.events(batch[..1].to_vec()).await.status, 200);
    let refused = caller.post("/v1/observations", json!({"title": "x"})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (403, "quota_exceeded")
    );
    assert_eq!(
        refused.json()["quota"],
        json!({"name": "events_a_day", "limit": 3})
    );
    assert_eq!(
        caller.work("docs", json!({"task": "x"})).await.code(),
        "quota_exceeded"
    );
    let (text, is_error) = caller.tool("save_memory", json!({"text": "x"})).await;
    assert!(is_error && text.starts_with("quota_exceeded - "), "{text}");
    assert!(app.app.guards.quota_refused.count() >= 4);

    // Reads, repeats and deletions go on; so does another team.
    assert_eq!(caller.get("/v1/observations/1").await.status, 200);
    assert_eq!(caller.get("/v1/context").await.status, 200);
    assert_eq!(caller.events(first).await.status, 200);
    assert_eq!(caller.delete("/v1/observations/1").await.status, 204);
    assert_eq!(
        app.stranger().await.events(observations(9)).await.status,
        200
    );

    set(&app, Quota::EventsADay, None).await;
    assert_eq!(caller.events(batch).await.status, 200);
}

#[tokio::test]
async fn guard_quotas_are_closed_for_writes_and_open_for_reads_when_settings_are_unreadable() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let id = caller.remember("stored before", "").await;
    sqlx::query("update tenants set settings = '{\"quotas\": {\"stored_bytes\": \"lots\"}}'")
        .execute(&mut app.db.admin().await)
        .await
        .expect("set");
    let answer = caller.events(observations(1)).await;
    assert_eq!(answer.status, 207);
    let item = &answer.json()["items"][0];
    assert_eq!(
        (&item["code"], &item["retry"]),
        (&json!("quota_exceeded"), &json!(true))
    );
    let refused = caller.post("/v1/observations", json!({"title": "x"})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (403, "quota_exceeded")
    );
    assert_eq!(refused.json()["quota"], json!({"name": "stored_bytes"}));
    assert_eq!(
        caller.get(&format!("/v1/observations/{id}")).await.status,
        200
    );
}

#[tokio::test]
async fn a_quota_of_members_bounds_the_operator_too() {
    let app = TestApp::start().await;
    set(&app, Quota::Members, Some(3)).await;
    let clock = Clock::system();
    let add = |handle| admin::add_member(&app.db.store, &clock, "acme", handle, Role::Member);
    add("cleo").await.expect("the third");
    let refused = add("dan").await.expect_err("the fourth");
    assert!(format!("{refused:#}").contains("members"), "{refused:#}");
}

/// The rows of usage, once a condition holds for them.
async fn usage_until(caller: &Caller, query: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = caller.get(&format!("/v1/usage{query}")).await.ok();
        let items = answer["items"].as_array().expect("items").clone();
        if holds(&items) {
            return items;
        }
        assert!(Instant::now() < end, "{items:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn usage_is_told_by_member_and_day() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    owner.events(observations(3)).await.ok();
    member.events(observations(2)).await.ok();
    for _ in 0..10 {
        member.get("/v1/context").await;
    }
    app.app.usage.hand_in(&app.app).await;
    let items = usage_until(&owner, "", |items| items.len() == 2).await;
    let today = app.app.clock.now().date_naive().to_string();
    let told: Vec<_> = items
        .iter()
        .map(|item| (item["member"].as_str().expect("a handle"), &item["events"]))
        .collect();
    assert_eq!(told, [("ada", &json!(3)), ("ben", &json!(2))]);
    assert_eq!(
        (&items[1]["day"], &items[1]["requests"]),
        (&json!(today), &json!(11))
    );
    assert_eq!(items[1]["bytes"], 4);
    // Page by page, and of other days nothing.
    let page = owner.get("/v1/usage?limit=1").await.ok();
    let cursor = page["next_cursor"].as_str().expect("another page");
    let next = owner
        .get(&format!("/v1/usage?limit=1&cursor={cursor}"))
        .await
        .ok();
    assert_eq!(next["items"][0]["member"], "ben");
    assert!(next["next_cursor"].is_null());
    let other = owner
        .get(&format!("/v1/usage?from=2020-01-01&cursor={cursor}"))
        .await;
    assert_eq!(other.code(), "invalid_cursor");
    let past = owner
        .get("/v1/usage?from=2020-01-01&to=2020-12-31")
        .await
        .ok();
    assert_eq!(past["items"], json!([]));
    assert_eq!(
        owner.get("/v1/usage?from=yesterday").await.code(),
        "invalid_field"
    );
    assert_eq!(
        app.stranger().await.get("/v1/usage").await.ok()["items"],
        json!([])
    );
    let few = app.owner_with(&[Scope::MemoryRead]).await;
    assert_eq!(few.get("/v1/usage").await.code(), "insufficient_scope");
}

#[tokio::test]
async fn a_replica_that_stops_hands_in_what_it_counted() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let mut first = Replica::shared(&db);
    let caller = Caller::new(&first.base, Some(&key)).in_project(PROJECT);
    for _ in 0..7 {
        assert_eq!(caller.get("/v1/me").await.status, 200);
    }
    assert_eq!(first.terminate(), Some(0));
    let second = Replica::shared(&db);
    let caller = caller.at(&second.base);
    let items = caller.get("/v1/usage").await.ok();
    assert_eq!(items["items"][0]["requests"], 7, "{items}");
}
