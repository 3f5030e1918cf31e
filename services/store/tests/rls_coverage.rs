//! The tenant wall stands around every table, and nobody made a door in it.

use cairn_store::test_util::TestDb;
use sqlx::PgConnection;

/// Tables without a tenant. Each must be one that holds nothing of any tenant.
const WITHOUT_TENANT: [&str; 4] = [
    "_sqlx_migrations",
    "code_attempts",
    "device_requests",
    "oauth_clients",
];
/// Unique rules that must hold across tenants.
const ACROSS_TENANTS: [&str; 7] = [
    "authorizations_code_hash_key",
    "browser_sessions_session_hash_key",
    "credentials_key_id_key",
    "grants_uid_key",
    "sign_in_codes_code_hash_key",
    "tenants_name_key",
    "tenants_uid_key",
];
/// Functions that run as another role, and which.
const RAISED: &[&str] = &[
    "forget_stored_bytes cairn_system",
    "search_candidates cairn_search",
    "search_matches cairn_search",
    "search_places cairn_search",
    "search_pool cairn_search",
    "search_record_ids cairn_search",
    "system_add_device_request cairn_system",
    "system_begin_device cairn_system",
    "system_claim_expiry cairn_system",
    "system_clean_search_index cairn_owner",
    "system_clean_sign_in cairn_system",
    "system_context_revisions cairn_system",
    "system_count_attempt cairn_system",
    "system_create_tenant cairn_system",
    "system_decide_device_request cairn_system",
    "system_delete_tenant cairn_system",
    "system_drop_work_entries cairn_system",
    "system_expire_audit cairn_system",
    "system_find_client cairn_system",
    "system_find_code cairn_system",
    "system_find_credential cairn_system",
    "system_find_device_request cairn_system",
    "system_find_grant cairn_system",
    "system_find_members_by_email cairn_system",
    "system_find_memberships cairn_system",
    "system_find_only_tenant cairn_system",
    "system_find_outdated cairn_system",
    "system_find_stale cairn_system",
    "system_find_tenant cairn_system",
    "system_find_tenants cairn_system",
    "system_find_uncounted cairn_system",
    "system_forgive_attempt cairn_system",
    "system_has_credential cairn_system",
    "system_keep_client cairn_system",
    "system_poll_device_request cairn_system",
    "system_positions cairn_system",
    "system_put_client cairn_system",
    "system_renew_epochs cairn_system",
    "system_sweep_deleted cairn_system",
    "system_use_client cairn_system",
];

#[tokio::test]
async fn every_table_has_a_tenant_or_is_listed() {
    let db = TestDb::new().await;
    let bare = texts(
        &mut db.admin().await,
        "select c.relname::text from pg_class c
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'm', 'v', 'f')
           and not exists (select from pg_attribute a
             where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull
               and a.atttypid = 'int4'::regtype)
         order by 1",
    )
    .await;
    assert_eq!(bare, WITHOUT_TENANT);
}

#[tokio::test]
async fn every_tenant_table_forces_row_level_security() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let open = texts(
        &mut admin,
        "select c.relname::text from pg_class c
         join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
           and not (c.relrowsecurity and c.relforcerowsecurity)",
    )
    .await;
    assert_eq!(open, Vec::<String>::new());
    let guarded = texts(
        &mut admin,
        "select c.relname::text from pg_class c
         where c.relnamespace = 'public'::regnamespace and c.relrowsecurity",
    )
    .await;
    assert!(guarded.len() > 50, "{guarded:?}");
}

#[tokio::test]
async fn the_server_has_one_policy_on_each_table_and_it_names_the_tenant() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let wrong = texts(
        &mut admin,
        "select c.relname::text from pg_class c
         left join pg_policies p on p.tablename = c.relname and p.schemaname = 'public'
           and 'cairn_app' = any (p.roles)
         where c.relnamespace = 'public'::regnamespace and c.relrowsecurity
           and not c.relispartition
         group by c.relname
         having count(p.policyname) <> 1
           or bool_or(p.cmd <> 'ALL' or p.permissive <> 'PERMISSIVE'
             or p.qual is distinct from '(tenant_id = ( SELECT app_tenant() AS app_tenant))'
             or p.with_check is distinct from p.qual)",
    )
    .await;
    assert_eq!(wrong, Vec::<String>::new());
    let strangers = texts(
        &mut admin,
        "select distinct r::text from pg_policies p, unnest(p.roles) r order by 1",
    )
    .await;
    assert_eq!(strangers, ["cairn_app", "cairn_search", "cairn_system"]);
}

#[tokio::test]
async fn partitions_are_reached_through_their_parents_alone() {
    let db = TestDb::new().await;
    let reachable = texts(
        &mut db.admin().await,
        "select c.relname::text from pg_class c
         where c.relispartition and c.relkind = 'r'
           and (has_table_privilege('cairn_app', c.oid, 'select, insert, update, delete')
             or exists (select from pg_policy p where p.polrelid = c.oid))",
    )
    .await;
    assert_eq!(reachable, Vec::<String>::new());
}

#[tokio::test]
async fn keys_indexes_and_references_lead_with_the_tenant() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let indexes = texts(
        &mut admin,
        "select i.indexrelid::regclass::text from pg_index i
         join pg_class c on c.oid = i.indrelid
         join pg_attribute t on t.attrelid = c.oid and t.attname = 'tenant_id'
         where c.relnamespace = 'public'::regnamespace and i.indkey[0] <> t.attnum
         order by 1",
    )
    .await;
    assert_eq!(indexes, ACROSS_TENANTS);
    let keyless = texts(
        &mut admin,
        "select c.relname::text from pg_class c
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
           and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)",
    )
    .await;
    assert_eq!(keyless, Vec::<String>::new());
    let references = texts(
        &mut admin,
        "select k.conname::text from pg_constraint k
         join pg_attribute t on t.attrelid = k.conrelid and t.attname = 'tenant_id'
         join pg_attribute f on f.attrelid = k.confrelid and f.attname = 'tenant_id'
         where k.contype = 'f' and (k.conkey[1] <> t.attnum or k.confkey[1] <> f.attnum)",
    )
    .await;
    assert_eq!(references, Vec::<String>::new());
}

#[tokio::test]
async fn only_listed_functions_run_as_another_role() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let raised = texts(
        &mut admin,
        "select proname || ' ' || proowner::regrole from pg_proc
         where prosecdef and pronamespace = 'public'::regnamespace order by 1",
    )
    .await;
    assert_eq!(raised, RAISED);
    let careless = texts(
        &mut admin,
        "select proname::text from pg_proc
         where prosecdef and pronamespace = 'public'::regnamespace
           and (not 'search_path=pg_catalog, public, pg_temp' = any (proconfig)
             or exists (select from aclexplode(proacl) where grantee = 0))",
    )
    .await;
    assert_eq!(careless, Vec::<String>::new());
}

#[tokio::test]
async fn the_server_can_neither_make_tables_nor_rewrite_history() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    let can = |what: &str| format!("select {what}::text");
    for forbidden in [
        "has_schema_privilege('cairn_app', 'public', 'create')",
        "has_table_privilege('cairn_app', 'audit', 'update, delete, truncate')",
        "has_table_privilege('cairn_app', 'events', 'delete, truncate')",
        "has_table_privilege('cairn_app', 'tombstones', 'update, delete, truncate')",
        "has_table_privilege('cairn_app', 'work_entries', 'update, delete, truncate')",
        "has_table_privilege('cairn_app', 'tenants', 'insert, delete, truncate')",
        "has_column_privilege('cairn_app', 'tenants', 'tenant_id', 'update')",
        "has_table_privilege('cairn_app', '_sqlx_migrations', 'insert, update, delete')",
        "has_table_privilege('cairn_app', 'oauth_clients', 'select, insert, update, delete')",
        "has_table_privilege('cairn_app', 'device_requests', 'select, insert, update, delete')",
        "has_table_privilege('cairn_app', 'code_attempts', 'select, insert, update, delete')",
        "has_table_privilege('cairn_app', 'grants', 'delete, truncate')",
    ] {
        let answer = texts(&mut admin, &can(forbidden)).await;
        assert_eq!(answer, ["false"], "{forbidden}");
    }
}

async fn texts(admin: &mut PgConnection, sql: &str) -> Vec<String> {
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()))
        .fetch_all(admin)
        .await
        .expect("rows of the catalogue")
}
