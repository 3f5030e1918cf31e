//! When it cannot decide, the store is closed: no tenant, no rows; a wrong role or unknown
//! tables, no start.

mod support;

use cairn_store::test_util::TestDb;
use cairn_store::{Store, StoreError, StoreOptions};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::*;

#[tokio::test]
async fn guard_tenant_wall_is_closed_without_a_tenant() {
    let db = TestDb::new().await;
    fill(&db).await;
    let mut admin = db.admin().await;
    let mut app = PgConnection::connect(&db.app_url).await.expect("cairn_app");
    for table in tables(&mut admin).await {
        assert!(
            rows(&mut admin, &table).await > 0,
            "{table} has rows to hide"
        );
        assert_eq!(rows(&mut app, &table).await, 0, "{table} shows rows");
        for write in ["delete from", "update"] {
            let Some(sql) = statement(&mut admin, write, &table).await else {
                continue;
            };
            let done = sqlx::query(AssertSqlSafe(sql)).execute(&mut app).await;
            assert_eq!(done.expect("it runs").rows_affected(), 0, "{write} {table}");
        }
    }
}

#[tokio::test]
async fn nobody_writes_a_row_of_another_tenant() {
    let db = TestDb::new().await;
    fill(&db).await;
    let mut admin = db.admin().await;
    let mut app = PgConnection::connect(&db.app_url).await.expect("cairn_app");
    let other = db.twins.1.tenant.key();
    let mut tried = 0;
    for table in tables(&mut admin).await {
        if !may(&mut admin, "insert", &table).await {
            continue;
        }
        let row: Value = sqlx::query_scalar(AssertSqlSafe(format!(
            "select to_jsonb(t) from {table} t where tenant_id = {}",
            db.twins.0.tenant.key()
        )))
        .fetch_one(&mut admin)
        .await
        .expect("a row to copy");
        let insert = format!(
            "insert into {table} overriding system value
             select * from jsonb_populate_record(null::{table}, $1)"
        );
        // Once with no tenant set, once as the other.
        for tenant in ["".to_owned(), other.to_string()] {
            sqlx::query("select set_config('app.tenant', $1, false)")
                .bind(tenant)
                .execute(&mut app)
                .await
                .expect("set");
            let refused = sqlx::query(AssertSqlSafe(insert.clone()))
                .bind(&row)
                .execute(&mut app)
                .await
                .expect_err("the wall refuses it");
            let code = refused.as_database_error().and_then(|e| e.code());
            assert_eq!(code.as_deref(), Some("42501"), "{table}: {refused}");
        }
        tried += 1;
    }
    assert!(tried > 10);
}

#[tokio::test]
async fn a_search_without_a_tenant_is_refused() {
    let db = TestDb::new().await;
    let mut app = PgConnection::connect(&db.app_url).await.expect("cairn_app");
    for search in [
        "select * from search_record_ids('a', null, 1, null, 5, 5)",
        "select * from search_candidates('a', null, null, 1, null, null, null, null, null, null,
           null, null, null, null, '{a}', '{t}', '{a}', 1, 1, 1)",
        "select * from search_pool('a', null, null, 1, null, null, null, null, null, null, null,
           null, null, null, '{a}', '{t}', '{a}', 1, 1, 1)",
        "select * from search_places('a', null, null, 1, null, null, null, null, null, null, null,
           null, null, null, '{a}', '{t}', '{a}', 1, 1, 1)",
    ] {
        let refused = sqlx::query(search).fetch_all(&mut app).await;
        let refused = refused.expect_err("no tenant");
        let code = refused.as_database_error().and_then(|e| e.code());
        assert_eq!(code.as_deref(), Some("42501"), "{search}");
    }
}

#[tokio::test]
async fn no_tenant_leaks_to_the_next_borrower_of_a_connection() {
    let db = TestDb::new().await;
    fill(&db).await;
    let one = Store::connect(&options(&db.app_url, 1))
        .await
        .expect("open");
    let tx = one.tenant(db.twins.0.tenant, "test").await.expect("begin");
    drop(tx);
    let tx = one.tenant(db.twins.0.tenant, "test").await.expect("begin");
    tx.commit().await.expect("commit");
    let mut tx = one.tenant(db.twins.1.tenant, "test").await.expect("begin");
    let projects = tx.list_projects().await.expect("list");
    assert_eq!(projects.len(), 1);
    let owner = db.twins.1.owner;
    let records = tx.get_records(&ids(&["1"]), &reader(owner)).await;
    assert_eq!(records.expect("read")[0].row.author, "ada");
}

#[tokio::test]
async fn guard_start_is_closed_for_a_superuser() {
    let db = TestDb::new().await;
    let why = refusal(&db.admin_url).await;
    assert!(why.contains("superuser"), "{why}");
}

#[tokio::test]
async fn guard_start_is_closed_for_owners_their_members_and_who_bypasses_the_wall() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    // Roles belong to the whole server, so these carry the name of this test's database.
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(&mut admin)
        .await
        .expect("a name");
    for (role, options, grant, says) in [
        ("member", "", "grant cairn_owner to", "owns tables"),
        ("search", "", "grant cairn_search to", "is a member"),
        ("bypass", "bypassrls", "grant cairn_app to", "bypasses"),
    ] {
        let role = format!("{name}_{role}");
        run(&mut admin, &format!("create role {role} login {options}")).await;
        run(&mut admin, &format!("{grant} {role}")).await;
        let why = refusal(&db.app_url.replace("cairn_app", &role)).await;
        run(&mut admin, &format!("drop role {role}")).await;
        assert!(why.contains(says), "{role}: {why}");
    }
}

#[tokio::test]
async fn guard_start_is_closed_for_unknown_and_missing_migrations() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    run(
        &mut admin,
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'of a newer version', true, '', 0)",
    )
    .await;
    let why = refusal(&db.app_url).await;
    assert!(why.contains("9999"), "{why}");
    // A server that already runs works on beside a newer one.
    db.store.ping().await.expect("expanded, not contracted");

    run(
        &mut admin,
        "delete from _sqlx_migrations where version in (3, 9999)",
    )
    .await;
    let why = refusal(&db.app_url).await;
    assert!(why.contains("lacks migration 3"), "{why}");
    assert!(matches!(db.store.ping().await, Err(StoreError::Refused(_))));
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let db = TestDb::new().await;
    run(
        &mut db.admin().await,
        "update _sqlx_migrations set checksum = '\\x00' where version = 2",
    )
    .await;
    let why = refusal(&db.app_url).await;
    assert!(why.contains("migration 2"), "{why}");
}

#[tokio::test]
async fn a_database_without_tables_is_refused() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    run(&mut admin, "drop table _sqlx_migrations").await;
    let why = refusal(&db.app_url).await;
    assert!(why.contains("cairn-server migrate"), "{why}");
}

#[tokio::test]
async fn a_statement_that_waits_too_long_is_a_timeout() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut admin = db.admin().await;
    run(&mut admin, "begin; lock table tenant_counters").await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let events = [observation("x")];
    let error = tx
        .record_events(&batch(twin.owner, &all(&prepared(&events))))
        .await
        .expect_err("the counter is held");
    assert!(matches!(error, StoreError::Timeout), "{error:?}");
    assert!(error.is_retryable());
    drop(tx);
    run(&mut admin, "rollback").await;
    // The same call works later.
    record(&db.store, &twin, twin.owner, &events).await;
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable() {
    // Port 9 of the loopback: nothing listens there.
    let away = options("postgres://cairn_app@127.0.0.1:9/cairn", 1);
    let error = Store::connect(&away).await.err().expect("nothing answers");
    assert!(matches!(error, StoreError::Unavailable), "{error:?}");
    assert!(error.is_retryable());
}

/// One of everything in both tenants.
async fn fill(db: &TestDb) {
    for twin in [db.twins.0, db.twins.1] {
        let events = [
            prompt("fix it"),
            tool_use("1"),
            observation("One"),
            observation("Two"),
            summary("Fix"),
            turn_end("done"),
            work_entry("auth", "m1", None),
        ];
        record(&db.store, &twin, twin.owner, &events).await;
        // Words that eight records hold are counted.
        let alike: Vec<_> = (0..8).map(|n| observation(&format!("Alike {n}"))).collect();
        record(&db.store, &twin, twin.owner, &alike).await;
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let project = tx.find_projects("my-app").await.expect("find").remove(0);
        assert!(tx.count_words(project.project.id).await.expect("counted"));
        tx.delete_record(ids(&["2"])[0], &reader(twin.owner), false, minute(1))
            .await
            .expect("deleted");
        let key_id = format!("key{}", twin.tenant.key());
        tx.insert_credential(&credential(&key_id, twin.owner))
            .await
            .expect("a key");
        sign_in_of_all_kinds(&mut tx, twin.owner, twin.tenant.key()).await;
        tx.commit().await.expect("commit");
        import(&db.store, &twin, "7", observation("Imported")).await;
    }
}

/// Tables that the server may read, without the list of migrations, which has no tenant.
async fn tables(admin: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar(
        "select relname::text from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and relname <> '_sqlx_migrations' and has_table_privilege('cairn_app', oid, 'select')
         order by 1",
    )
    .fetch_all(admin)
    .await
    .expect("tables")
}

async fn rows(connection: &mut PgConnection, table: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}")))
        .fetch_one(connection)
        .await
        .expect("a count")
}

async fn may(admin: &mut PgConnection, what: &str, table: &str) -> bool {
    sqlx::query_scalar("select has_table_privilege('cairn_app', $1, $2)")
        .bind(table)
        .bind(what)
        .fetch_one(admin)
        .await
        .expect("an answer")
}

/// A write that would hit every row, if the server may do it at all.
async fn statement(admin: &mut PgConnection, write: &str, table: &str) -> Option<String> {
    match write {
        "update" if may(admin, "update", table).await => {
            Some(format!("update {table} set tenant_id = tenant_id"))
        }
        "delete from" if may(admin, "delete", table).await => Some(format!("delete from {table}")),
        _ => None,
    }
}

async fn refusal(url: &str) -> String {
    match Store::connect(&options(url, 1)).await {
        Err(StoreError::Refused(why)) => why,
        Err(other) => panic!("another failure: {other:?}"),
        Ok(_) => panic!("{url} was accepted"),
    }
}

fn options(url: &str, pool: u32) -> StoreOptions {
    StoreOptions {
        url: url.to_owned(),
        pool,
    }
}

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(admin)
        .await
        .expect("the superuser may");
}
