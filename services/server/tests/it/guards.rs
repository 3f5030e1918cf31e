//! Guards of contract 20.1, each with the very thing broken that it decides by.
//!
//! | guard | where |
//! |---|---|
//! | tenant wall | `store/tests/closed.rs` |
//! | authentication, claims | here, `degraded.rs` |
//! | mem_search | `redis_away.rs`, `auto.rs` |
//! | quotas | `quotas.rs`, `store/tests/usage.rs` |
//! | rate limit | `limits.rs`, `store/tests/rates.rs` |
//! | context cache | `context_cache.rs` |
//! | audit log | here, `tool_uses.rs`, `store/tests/tool_uses.rs` |
//! | start | here, `store/tests/closed.rs` |
//!
//! Gate and hooks are the client's, and so are the tests of them.

use std::time::Duration;

use cairn_domain::quota::Quota;
use cairn_domain::scope::Role;
use cairn_server::admin::{self, KeyTerms};
use cairn_server::app::Clock;
use cairn_store::test_util::TestDb;
use cairn_store::{Store, StoreOptions};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::support::frozen::Relay;
use crate::support::process::Replica;
use crate::support::{Caller, TestApp, redis_continuations};

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(admin)
        .await
        .expect("the superuser may");
}

#[tokio::test(flavor = "multi_thread")]
async fn guard_authentication_and_claims_are_closed_when_postgres_stops_answering() {
    let db = TestDb::new().await;
    let relay = Relay::to(&db).await;
    let options = StoreOptions {
        url: relay.url.clone(),
        pool: 1,
    };
    let store = Store::connect(&options).await.expect("connected");
    let app = TestApp::over(db, store, redis_continuations()).await;
    let (known, unseen) = (app.owner().await, app.member().await);
    assert_eq!(known.get("/v1/me").await.status, 200);
    let wrong = Caller::new(&app.base, Some(&format!("cairn_abcdefghijkl_{:043}", 7)));
    relay.freeze();
    // Who is known goes on to a store that does not answer; who is not is let in by nobody, and
    // told the same whether the key is right or wrong.
    let claim = json!({"list": "docs", "fields": {"task": "x"}, "action": "claim"});
    let (claimed, right, wrong) = tokio::join!(
        known.post("/v1/work-state/entries", claim),
        unseen.get("/v1/me"),
        wrong.get("/v1/me"),
    );
    for reply in [claimed, right, wrong] {
        assert_eq!(
            (reply.status.as_u16(), reply.code().as_str()),
            (503, "store_unavailable")
        );
        assert!(reply.headers.contains_key("retry-after"));
    }
}

/// Rows that acts of an administration leave.
async fn rows(admin: &mut PgConnection) -> Vec<i64> {
    sqlx::query_scalar(
        "select count(*) from members union all select count(*) from credentials
         union all select count(*) from credentials where revoked_at is not null
         union all select count(*) from tenants
         union all select count(*) from tenants where settings ? 'quotas'
         union all select count(*) from audit",
    )
    .fetch_all(admin)
    .await
    .expect("counts")
}

#[tokio::test]
async fn guard_audit_log_what_cannot_be_written_down_is_not_done() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut admin = app.db.admin().await;
    run(
        &mut admin,
        "alter table audit add constraint full_disk check (false) not valid",
    )
    .await;
    let before = rows(&mut admin).await;
    let (store, clock) = (&app.db.store, Clock::system());
    let created = admin::create_tenant(store, &clock, "delta", "eve").await;
    created.expect_err("a tenant");
    let added = admin::add_member(store, &clock, "acme", "eve", Role::Member).await;
    added.expect_err("a member");
    let terms = KeyTerms {
        name: "ci".to_owned(),
        ..KeyTerms::default()
    };
    let made = admin::create_key(store, &clock, "acme", &terms).await;
    made.expect_err("a key");
    let revoked = admin::revoke_key(store, &clock, "acme", owner.key_id()).await;
    revoked.expect_err("revoked");
    let set = admin::set_quota(store, &clock, "acme", Quota::Members, Some(1)).await;
    set.expect_err("a quota");
    assert_eq!(rows(&mut admin).await, before);
    assert_eq!(owner.get("/v1/me").await.status, 200);

    run(&mut admin, "alter table audit drop constraint full_disk").await;
    let set = admin::set_quota(store, &clock, "acme", Quota::Members, Some(1)).await;
    set.expect("both");
    let mut after = before;
    after[4] += 1;
    after[5] += 1;
    assert_eq!(rows(&mut admin).await, after);
}

#[tokio::test]
async fn guard_start_is_closed_and_says_why() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(&mut admin)
        .await
        .expect("a name");
    let refusal = |url: String, settings: &'static [(&str, &str)]| async move {
        let asked = tokio::task::spawn_blocking(move || Replica::refusal(&url, settings));
        let answered = tokio::time::timeout(Duration::from_secs(60), asked).await;
        answered.expect("it ends by itself").expect("it says why")
    };
    let why = refusal(db.admin_url.clone(), &[]).await;
    assert!(why.contains("superuser"), "{why}");
    // Roles belong to the whole server, so these carry the name of this test's database.
    for (role, options, grant, says) in [
        ("owns", "", "grant cairn_owner to", "owns tables"),
        ("passes", "bypassrls", "grant cairn_app to", "bypasses"),
    ] {
        let role = format!("{name}_{role}");
        run(&mut admin, &format!("create role {role} login {options}")).await;
        run(&mut admin, &format!("{grant} {role}")).await;
        let why = refusal(db.app_url.replace("cairn_app", &role), &[]).await;
        run(&mut admin, &format!("drop role {role}")).await;
        assert!(why.contains(says), "{role}: {why}");
    }
    let why = refusal(db.app_url.clone(), &[("CAIRN_CURSOR_KEYS", "")]).await;
    assert!(why.contains("CAIRN_CURSOR_KEYS"), "{why}");
    let why = refusal(db.app_url.clone(), &[("CAIRN_CURSOR_KEYS", "k1:short")]).await;
    assert!(why.contains("CAIRN_CURSOR_KEYS"), "{why}");
    run(
        &mut admin,
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'of a newer version', true, '', 0)",
    )
    .await;
    let why = refusal(db.app_url.clone(), &[]).await;
    assert!(why.contains("9999"), "{why}");
}
