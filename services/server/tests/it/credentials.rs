//! Keys on their way in: the note of their last use, and the key of the first start.

use cairn_server::app::Clock;
use cairn_server::auth::key::ApiKey;
use cairn_server::{admin, embedded};
use cairn_store::test_util::TestDb;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use sqlx::{Connection, PgConnection};

use crate::support::TestApp;

#[tokio::test]
async fn a_note_that_cannot_be_made_holds_no_request_up() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut admin = app.db.admin().await;
    let mut blocker = admin.begin().await.expect("begin");
    sqlx::query("select * from credentials for update")
        .fetch_all(&mut *blocker)
        .await
        .expect("locked");
    assert_eq!(caller.get("/v1/me").await.status, 200);
    assert_eq!(caller.get("/v1/me").await.status, 200);
}

#[tokio::test]
async fn the_last_use_of_a_key_is_noted_once_an_hour() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let key = ApiKey::parse(caller.key()).expect("a key");
    let mut admin = app.db.admin().await;
    let before = Utc::now();
    assert_eq!(caller.get("/v1/me").await.status, 200);
    let noted = loop {
        if let Some(noted) = last_use(&mut admin, &key).await {
            break noted;
        }
    };
    let hour = |at: DateTime<Utc>| at.duration_trunc(TimeDelta::hours(1)).expect("an hour");
    assert!(noted == hour(before) || noted == hour(Utc::now()));
}

async fn last_use(admin: &mut PgConnection, key: &ApiKey) -> Option<DateTime<Utc>> {
    sqlx::query_scalar("select last_used_at from credentials where key_id = $1")
        .bind(key.id())
        .fetch_one(admin)
        .await
        .expect("the key's row")
}

#[tokio::test]
async fn the_first_start_makes_one_key_and_no_later_one_does() {
    let db = TestDb::new().await;
    let clock = Clock::system();
    let start = || embedded::first_start(&db.store, &clock);
    assert_eq!(start().await.expect("started"), None, "there are keys");
    sqlx::query("delete from credentials")
        .execute(&mut db.admin().await)
        .await
        .expect("emptied");
    let key = start().await.expect("started").expect("a key");
    let key = ApiKey::parse(&key).expect("the form of a key");
    let mut tx = db.store.system("test").await.expect("begin");
    let found = tx.find_credential(key.id()).await.expect("find");
    assert!(key.matches(&found.expect("stored").secret_hash));
    assert_eq!(start().await.expect("started"), None);
}

#[tokio::test]
async fn a_tenant_or_member_that_is_refused_leaves_no_key() {
    let db = TestDb::new().await;
    let clock = Clock::system();
    let before = keys(&db).await;
    let taken = admin::create_tenant(&db.store, &clock, "acme", "eve").await;
    assert!(taken.is_err());
    let role = cairn_domain::scope::Role::Member;
    let taken = admin::add_member(&db.store, &clock, "acme", "ben", role).await;
    assert!(taken.is_err());
    assert_eq!(keys(&db).await, before);
    let added = admin::add_member(&db.store, &clock, "acme", "eve", role).await;
    assert!(added.is_ok());
    assert_eq!(keys(&db).await, before + 1);
}

async fn keys(db: &TestDb) -> i64 {
    sqlx::query_scalar("select count(*) from credentials")
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a count")
}
