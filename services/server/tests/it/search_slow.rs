//! A question that takes too long is asked of the newest records alone: whatever asks it, it has an
//! answer.

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::support::{Caller, TestApp};

/// Calls while the first statement that reads the projects' words takes longer than a search has.
async fn slowly<T: Send + 'static>(
    app: &TestApp,
    call: impl Future<Output = T> + Send + 'static,
) -> T {
    let (mut holder, mut watcher) = (app.db.admin().await, app.db.admin().await);
    let mut held = holder.begin().await.expect("begin");
    sqlx::query("lock table term_counts, observations in access exclusive mode")
        .execute(&mut *held)
        .await
        .expect("locked");
    let called = tokio::spawn(call);
    let first = waiting(&mut watcher, None).await;
    // The one that waits is another statement: the first was given up.
    waiting(&mut watcher, Some(first)).await;
    held.rollback().await.expect("released");
    called.await.expect("no panic")
}

/// When the statement began that waits for a lock, once there is one that began at another time.
async fn waiting(watcher: &mut PgConnection, other: Option<String>) -> String {
    loop {
        let began: Option<String> = sqlx::query_scalar(
            "select query_start::text from pg_stat_activity
             where wait_event_type = 'Lock' and datname = current_database()
               and query_start::text is distinct from $1 and query like '%search_%'",
        )
        .bind(&other)
        .fetch_optional(&mut *watcher)
        .await
        .expect("an answer");
        if let Some(began) = began {
            return began;
        }
    }
}

async fn stocked(app: &TestApp) -> Caller {
    let owner = app.owner().await;
    for n in 1..=3 {
        owner
            .remember(&format!("walnut {n}"), "in src/tree.rs")
            .await;
    }
    // Words are looked up among the counted ones.
    sqlx::query("update projects set counted_records = 1, records = 1000")
        .execute(&mut app.db.admin().await)
        .await
        .expect("counted");
    owner
}

#[tokio::test]
async fn a_search_that_takes_too_long_says_that_it_is_partial() {
    let app = TestApp::start().await;
    let owner = stocked(&app).await;
    for question in [
        json!({"query": "walnut", "limit": 2}),
        // Files are looked up in the records themselves.
        json!({"file": "tree.rs", "orderBy": "date_asc", "limit": 2}),
    ] {
        let (caller, asked) = (owner.clone(), question.clone());
        let call = async move { caller.post("/v1/search", asked).await.ok() };
        let first = slowly(&app, call).await;
        assert_eq!(first["partial"], true, "{first}");
        if question.get("query").is_none() {
            assert_eq!(first["total"], 0);
            continue;
        }
        assert_eq!(
            (&first["total"], first["items"].as_array().map(Vec::len)),
            (&json!(3), Some(2))
        );
        // What was begun so goes on so, and ends.
        let mut next = question;
        next["cursor"] = first["next_cursor"].clone();
        let second = owner.post("/v1/search", next).await.ok();
        assert_eq!(
            (&second["partial"], &second["next_cursor"]),
            (&json!(true), &Value::Null)
        );
        assert_eq!(second["items"].as_array().map(Vec::len), Some(1));
    }
    let whole = owner
        .post("/v1/search", json!({"query": "walnut"}))
        .await
        .ok();
    assert_eq!(whole.get("partial"), None);
}

#[tokio::test]
async fn what_else_searches_has_the_same_way_out() {
    let app = TestApp::start().await;
    let owner = stocked(&app).await;
    let caller = owner.clone();
    let call = async move { caller.mem_search(json!({"query": "walnut 2"})).await.ok() };
    let index = slowly(&app, call).await;
    assert_eq!(
        (&index["partial"], &index["rows"][0]["id"]),
        (&json!(true), &json!("2"))
    );
    let caller = owner.clone();
    let call = async move { caller.get("/v1/timeline?query=walnut%202").await.ok() };
    assert_eq!(slowly(&app, call).await["anchor"], "2");
    let caller = owner.clone();
    let call = async move { caller.get("/v1/context?format=overview&query=walnut").await };
    let overview = slowly(&app, call).await;
    assert!(
        overview.text.contains("# Memory: 3 observations"),
        "{overview:?}"
    );
}
