//! Rights that end between two steps of a search: the next step, on another replica, shows
//! nothing of what they covered. And cursors that make room, or outlive a change of the ring.

use cairn_domain::scope::Scope;
use cairn_store::continuations::Caps;
use chrono::Utc;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::support::{Caller, RING, TestApp, continuations_under, item};

/// Two replicas that share their stores, and the owner at the first.
struct Pair {
    app: TestApp,
    owner: Caller,
    second: String,
}

impl Pair {
    async fn start() -> Self {
        let prefix = format!("test:{}:", Uuid::new_v4());
        let app = TestApp::with(continuations_under(&prefix, RING)).await;
        let second = app.beside(continuations_under(&prefix, RING)).await;
        let owner = app.owner().await;
        Self { app, owner, second }
    }

    /// Three notes on pools by the owner, `1` to `3`; the index and the timeline of the second.
    async fn at_step_three(&self) -> (Value, Value) {
        for n in 1..=3 {
            let id = self
                .owner
                .remember(&format!("pool note {n}"), "a story")
                .await;
            assert_eq!(id, n.to_string());
        }
        let index = self
            .owner
            .mem_search(json!({"query": "pool note"}))
            .await
            .ok();
        let around = self.owner.mem_search(choose(&index, "2")).await.ok();
        assert_eq!(ids(&around["rows"]).len(), 3, "{around}");
        (index, around)
    }

    fn at_second(&self, caller: &Caller) -> Caller {
        caller.clone().at(&self.second)
    }

    async fn admin(&self) -> PgConnection {
        self.app.db.admin().await
    }
}

fn choose(answer: &Value, id: &str) -> Value {
    json!({"continuation": answer["continuation"], "selectedIds": [id]})
}

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let id = |row: &Value| row["id"].as_str().expect("an id").to_owned();
    rows.iter().map(id).collect()
}

/// A step that is taken, and has nothing to show.
fn assert_nothing(answer: &Value, reason: &str) {
    assert_eq!(
        (&answer["status"], &answer["reason"]),
        (&json!("complete"), &json!(reason)),
        "{answer}"
    );
    assert_eq!(
        (&answer["rows"], &answer["details"]),
        (&Value::Null, &Value::Null)
    );
    let text = answer["text"].as_str().expect("a text");
    assert!(!text.contains("pool note"), "{text}");
}

#[tokio::test]
async fn c040_a_revoked_key_or_a_removed_member_goes_no_further() {
    let pair = Pair::start().await;
    let (index, around) = pair.at_step_three().await;
    let other_key = pair.app.owner().await;
    let twin = pair.app.db.twins.0;
    let mut tx = pair
        .app
        .db
        .store
        .tenant(twin.tenant, "test")
        .await
        .expect("begin");
    let revoked = tx.revoke_credential(pair.owner.key_id(), Utc::now()).await;
    assert!(revoked.expect("answers"));
    tx.commit().await.expect("commit");
    for step in [&index, &around] {
        let refused = pair
            .at_second(&pair.owner)
            .mem_search(choose(step, "2"))
            .await;
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (401, "credential_revoked")
        );
        // The search is the member's: another key of theirs goes on with it.
        let goes_on = pair
            .at_second(&other_key)
            .mem_search(choose(step, "2"))
            .await;
        assert_eq!(goes_on.status, 200);
    }
    let last_key = pair.app.owner().await;
    sqlx::query("update members set removed_at = now()")
        .execute(&mut pair.admin().await)
        .await
        .expect("removed");
    for step in [&index, &around] {
        let refused = pair
            .at_second(&last_key)
            .mem_search(choose(step, "2"))
            .await;
        assert_eq!(refused.status, 401, "{refused:?}");
        assert!(!refused.text.contains("pool note"));
    }
}

#[tokio::test]
async fn c040_a_key_without_the_right_to_read_goes_no_further() {
    let pair = Pair::start().await;
    let (index, around) = pair.at_step_three().await;
    let writer = pair.app.owner_with(&[Scope::MemoryWrite]).await;
    for step in [&index, &around] {
        let refused = pair.at_second(&writer).mem_search(choose(step, "2")).await;
        assert_eq!(refused.code(), "insufficient_scope");
    }
}

#[tokio::test]
async fn c040_a_record_that_is_deleted_or_becomes_somebody_elses_is_left_out() {
    let pair = Pair::start().await;
    let (index, around) = pair.at_step_three().await;
    pair.owner.delete("/v1/observations/2").await;
    let at_second = pair.at_second(&pair.owner);
    let nothing = at_second.mem_search(choose(&index, "2")).await.ok();
    assert_nothing(&nothing, "context_not_found");
    let nothing = at_second.mem_search(choose(&around, "2")).await.ok();
    assert_nothing(&nothing, "details_not_found");

    // No call makes a record private, or somebody else's; the service does not count on it.
    sqlx::query(
        "update records r set private = true, author_id = p.principal_id
         from principals p
         where r.tenant_id = p.tenant_id and r.number = 3 and p.name = 'ben'",
    )
    .execute(&mut pair.admin().await)
    .await
    .expect("changed");
    let nothing = at_second.mem_search(choose(&index, "3")).await.ok();
    assert_nothing(&nothing, "context_not_found");
    let nothing = at_second.mem_search(choose(&around, "3")).await.ok();
    assert_nothing(&nothing, "details_not_found");
    // Nor do they stand beside what is left.
    let left = at_second.mem_search(choose(&index, "1")).await.ok();
    assert_eq!(ids(&left["rows"]), ["1"]);
}

#[tokio::test]
async fn c040_a_project_limit_leaves_nothing_of_other_projects() {
    let pair = Pair::start().await;
    let owner = &pair.owner;
    owner.remember("pool note here", "").await;
    let there = owner.clone().in_project("name:beta");
    there.remember("pool note there", "").await;
    // The scope is the current project's; the argument asks for all that may be read.
    let query = json!({"query": "pool note", "project": "*"});
    let index = owner.mem_search(query).await.ok();
    assert_eq!(ids(&index["rows"]).len(), 2);
    let around = owner.mem_search(choose(&index, "2")).await.ok();
    assert_eq!(ids(&around["rows"]), ["2"]);

    let limited = pair.at_second(&pair.app.limited_to("alpha-app").await);
    let nothing = limited.mem_search(choose(&index, "2")).await.ok();
    assert_nothing(&nothing, "context_not_found");
    let nothing = limited.mem_search(choose(&around, "2")).await.ok();
    assert_nothing(&nothing, "details_not_found");
    let own = limited.mem_search(choose(&index, "1")).await.ok();
    assert_eq!(ids(&own["rows"]), ["1"]);
    // A limit to the other project is another scope.
    let elsewhere = pair.at_second(&pair.app.limited_to("beta").await);
    let refused = elsewhere.mem_search(choose(&index, "2")).await;
    assert_eq!(refused.code(), "invalid_continuation");
}

#[tokio::test]
async fn c040_a_private_record_is_shown_to_nobody_who_goes_on_with_anothers_cursor() {
    let pair = Pair::start().await;
    let member = pair.app.member().await;
    let mut secret = item("observation", json!({"title": "pool note of mine"}));
    secret["visibility"] = json!("private");
    member.events(vec![secret]).await.ok();
    let index = member.mem_search(json!({"query": "pool note"})).await.ok();
    assert_eq!(ids(&index["rows"]), ["1"]);
    let around = member.mem_search(choose(&index, "1")).await.ok();
    for step in [&index, &around] {
        for other in [&pair.owner, &pair.app.stranger().await] {
            let refused = pair.at_second(other).mem_search(choose(step, "1")).await;
            assert_eq!(refused.code(), "invalid_continuation");
            assert!(!refused.text.contains("pool note"));
        }
        let own = pair.at_second(&member).mem_search(choose(step, "1")).await;
        assert_eq!(own.status, 200);
    }
}

#[tokio::test]
async fn the_searches_of_one_tenant_make_room_for_each_other_and_for_no_other() {
    let prefix = format!("test:{}:", Uuid::new_v4());
    let caps = Caps {
        tenant_bytes: 2_000,
        ..Caps::default()
    };
    let app = TestApp::with(continuations_under(&prefix, RING).with_caps(caps)).await;
    let (owner, stranger) = (app.owner().await, app.stranger().await);
    for caller in [&owner, &stranger] {
        caller.remember("pool note", "").await;
    }
    let begin = |caller: &Caller| {
        let caller = caller.clone();
        async move { caller.mem_search(json!({"query": "pool note"})).await.ok() }
    };
    let others = begin(&stranger).await;
    let first = begin(&owner).await;
    let mut last = Value::Null;
    for _ in 0..8 {
        last = begin(&owner).await;
    }
    let evicted = owner.mem_search(choose(&first, "1")).await;
    assert_eq!(evicted.code(), "invalid_continuation");
    assert_eq!(owner.mem_search(choose(&last, "1")).await.status, 200);
    assert_eq!(stranger.mem_search(choose(&others, "1")).await.status, 200);
}

#[tokio::test]
async fn c040_a_search_outlives_a_change_of_the_ring_between_its_steps() {
    let prefix = format!("test:{}:", Uuid::new_v4());
    let new = RING.replacen("t1:", "t2:", 1).replace("LW9m", "LW5m");
    assert_ne!(new.split_once(':'), RING.split_once(':'));
    let app = TestApp::with(continuations_under(&prefix, RING)).await;
    let both = [format!("{RING},{new}"), format!("{new},{RING}")];
    let owner = app.owner().await;
    owner.remember("pool note", "").await;
    let index = owner.mem_search(json!({"query": "pool note"})).await.ok();
    // Restarted with the new key behind, then with it before the old one.
    let behind = app.beside(continuations_under(&prefix, &both[0])).await;
    let before = app.beside(continuations_under(&prefix, &both[1])).await;
    let around = owner
        .clone()
        .at(&before)
        .mem_search(choose(&index, "1"))
        .await
        .ok();
    let details = owner
        .at(&behind)
        .mem_search(choose(&around, "1"))
        .await
        .ok();
    assert_eq!(ids(&details["details"]), ["1"]);
}
