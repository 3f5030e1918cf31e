//! Roles and migrations where there is no superuser, and times that a migration must not touch.

mod support;

use cairn_store::test_util::{TestDb, first_key, moment};
use cairn_store::{Store, StoreOptions};
use sqlx::{AssertSqlSafe, PgConnection};
use support::*;

#[tokio::test]
async fn a_database_owner_without_superuser_prepares_and_migrates() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(&mut admin)
        .await
        .expect("a name");
    // Roles belong to the whole server: these carry the name of this test's database.
    let deployer = format!("{name}_deployer");
    let own = format!("{name}_own");
    run(
        &mut admin,
        &format!("create role {deployer} login createrole"),
    )
    .await;
    run(
        &mut admin,
        &format!("create database {own} owner {deployer}"),
    )
    .await;
    let as_deployer = db
        .app_url
        .replace(&name, &own)
        .replace("cairn_app", &deployer);
    cairn_store::prepare_database(&as_deployer)
        .await
        .expect("roles");
    cairn_store::migrate(&as_deployer)
        .await
        .expect("migrations");
    let store = Store::connect(&StoreOptions {
        url: db.app_url.replace(&name, &own),
        pool: 1,
    })
    .await
    .expect("the server starts");
    let mut system = store.system("test").await.expect("begin");
    system
        .create_tenant("acme", "ada", first_key("acmefirst"), moment())
        .await
        .expect("a tenant");
    system.commit().await.expect("commit");
    store.close().await;
    run(&mut admin, &format!("drop database {own} with (force)")).await;
    run(&mut admin, &format!("drop role {deployer}")).await;
}

#[tokio::test]
async fn c079_migrating_again_touches_no_time_id_or_order() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events: Vec<_> = (0..50)
        .flat_map(|n| [at(n, observation("old")), at(n, summary("old"))])
        .collect();
    record(&db.store, &twin, twin.owner, &events).await;
    let before = contents(&db).await;
    cairn_store::prepare_database(&db.admin_url)
        .await
        .expect("roles again");
    cairn_store::migrate(&db.admin_url)
        .await
        .expect("nothing to do");
    assert_eq!(contents(&db).await, before);
    assert_eq!(before.len(), 100);
}

async fn contents(db: &TestDb) -> Vec<String> {
    sqlx::query_scalar("select r::text from records r order by position")
        .fetch_all(&mut db.admin().await)
        .await
        .expect("rows")
}

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(admin)
        .await
        .expect("the superuser may");
}
