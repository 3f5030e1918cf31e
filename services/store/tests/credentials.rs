//! Tenants, members and keys: made inside a tenant, found across tenants.

mod support;

use cairn_domain::scope::{Role, Scope};
use cairn_store::StoreError;
use cairn_store::credentials::KeyOwner;
use cairn_store::descent::Descent;
use cairn_store::test_util::{TestDb, first_key, moment};
use support::*;

#[tokio::test]
async fn a_key_is_found_across_tenants_with_whose_it_is() {
    let db = TestDb::new().await;
    let twin = db.twins.1;
    record(&db.store, &twin, twin.owner, &[observation("x")]).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let project = tx
        .find_projects("my-app")
        .await
        .expect("find")
        .remove(0)
        .project;
    let mut new = credential("abcdefgh2345", twin.member);
    new.project = Some(project.id);
    tx.insert_credential(&new).await.expect("a key");
    tx.commit().await.expect("commit");

    let mut system = db.store.system("test").await.expect("begin");
    assert_eq!(
        system.find_credential("nosuchkey").await.expect("find"),
        None
    );
    let found = system.find_credential("abcdefgh2345").await;
    let found = found.expect("find").expect("there");
    assert_eq!(found.tenant, twin.tenant);
    assert_eq!(found.principal, twin.member);
    assert_eq!(found.principal_name, "ben");
    assert_eq!((found.role, found.is_service), (Some(Role::Member), false));
    assert_eq!(found.secret_hash, [5; 32]);
    assert_eq!(found.scopes.names(), ["memory:read", "memory:write"]);
    assert_eq!(found.project, Some(project));
    assert_eq!(found.expires_at, minute(100_000));
    assert!(!found.revoked && !found.member_removed);
}

#[tokio::test]
async fn a_service_key_is_a_principal_of_its_own() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut new = credential("servicekey22", twin.owner);
    new.owner = KeyOwner::Service;
    new.scopes = [Scope::MemoryRead].into_iter().collect();
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_credential(&new).await.expect("a key");
    tx.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("servicekey22").await;
    let found = found.expect("find").expect("there");
    assert_eq!(found.principal_name, "key:servicekey22");
    assert_eq!((found.role, found.is_service), (None, true));
    // What it writes is its own.
    record(&db.store, &twin, found.principal, &[observation("x")]).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let read = tx.get_records(&ids(&["1"]), &reader(twin.owner)).await;
    assert_eq!(read.expect("read")[0].row.author, "key:servicekey22");
}

#[tokio::test]
async fn revoking_is_for_good_and_removal_shows() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_credential(&credential("abcdefgh2345", twin.member))
        .await
        .expect("a key");
    for _ in 0..2 {
        let revoked = tx.revoke_credential("abcdefgh2345", minute(1)).await;
        assert!(revoked.expect("answered"));
    }
    assert!(
        !tx.revoke_credential("nosuchkey", minute(1))
            .await
            .expect("answered")
    );
    tx.commit().await.expect("commit");
    let mut admin = db.admin().await;
    sqlx::query("update members set removed_at = now() where principal_id = $1")
        .bind(twin.member.key)
        .execute(&mut admin)
        .await
        .expect("removed");
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("abcdefgh2345").await;
    let found = found.expect("find").expect("there");
    assert!(found.revoked && found.member_removed);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    assert_eq!(tx.find_member("ben").await.expect("find"), None);
    // Written down once, with the change that it records.
    let actions: Vec<String> =
        sqlx::query_scalar("select action from audit where tenant_id = $1 order by audit_id")
            .bind(twin.tenant.key())
            .fetch_all(&mut admin)
            .await
            .expect("lines");
    assert_eq!(
        actions,
        [
            "tenant.create",
            "key.create",
            "member.add",
            "key.create",
            "key.revoke"
        ]
    );
}

#[tokio::test]
async fn a_key_that_is_being_made_with_one_that_is_revoked_ends_with_it() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut parent = credential("servicekey22", twin.owner);
    parent.owner = KeyOwner::Service;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_credential(&parent).await.expect("a key");
    tx.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("servicekey22").await;
    let uid = found.expect("find").expect("there").credential;
    drop(system);

    let mut making = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let descent = making.descent(uid, minute(0)).await.expect("told");
    assert_eq!(descent, Some(Descent::Bound));
    let mut child = credential("childkey2222", twin.member);
    child.parent = Some(uid);
    making.insert_credential(&child).await.expect("a key");
    let (store, tenant) = (db.store.clone(), twin.tenant);
    let revoking = tokio::spawn(async move {
        let mut tx = store.tenant(tenant, "test").await.expect("begin");
        let revoked = tx.revoke_credential("servicekey22", minute(1)).await;
        tx.commit().await.expect("commit");
        revoked.expect("answered")
    });
    // It waits for the one that makes a key, or it is done without.
    let mut admin = db.admin().await;
    let waits = "select exists (select from pg_locks where not granted)";
    let waits = async |admin: &mut sqlx::PgConnection| -> bool {
        let waits = sqlx::query_scalar(waits).fetch_one(admin).await;
        waits.expect("told")
    };
    while !waits(&mut admin).await && !revoking.is_finished() {
        tokio::task::yield_now().await;
    }
    making.commit().await.expect("commit");
    assert!(revoking.await.expect("revoked"));
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("childkey2222").await;
    assert!(found.expect("find").expect("there").revoked);
    drop(system);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    assert_eq!(tx.descent(uid, minute(1)).await.expect("told"), None);
}

#[tokio::test]
async fn last_use_is_kept_to_the_hour() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_credential(&credential("abcdefgh2345", twin.owner))
        .await
        .expect("a key");
    tx.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("abcdefgh2345").await;
    let key = found.expect("find").expect("there").credential;
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("abcdefgh2345").await;
    assert_eq!(found.expect("find").expect("there").last_used_at, None);
    for (used, kept) in [(90, 60), (61, 60), (10, 60), (125, 120)] {
        let start = minute(0).timestamp() / 3_600 * 3_600;
        let hour = |minutes: i64| {
            chrono::DateTime::from_timestamp(start + minutes * 60, 0).expect("an instant")
        };
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        tx.touch_credential(key, hour(used)).await.expect("touched");
        tx.commit().await.expect("commit");
        let last: chrono::DateTime<chrono::Utc> =
            sqlx::query_scalar("select last_used_at from credentials where uid = $1")
                .bind(key)
                .fetch_one(&mut db.admin().await)
                .await
                .expect("a time");
        assert_eq!(last, hour(kept));
        let found = system.find_credential("abcdefgh2345").await;
        let found = found.expect("find").expect("there");
        assert_eq!(found.last_used_at, Some(hour(kept)));
    }
}

#[tokio::test]
async fn a_tenant_comes_with_a_key_or_not_at_all() {
    let db = TestDb::new().await;
    let mut system = db.store.system("test").await.expect("begin");
    assert!(system.has_credential().await.expect("answered"));
    // The id of a key that exists.
    let taken = system
        .create_tenant("third", "eve", first_key("acme"), moment())
        .await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let mut system = db.store.system("test").await.expect("begin");
    assert_eq!(system.find_tenant("third").await.expect("find"), None);

    let (tenant, owner) = system
        .create_tenant("third", "eve", first_key("thirdfirst"), moment())
        .await
        .expect("a tenant");
    let found = system.find_credential("thirdfirst").await;
    let found = found.expect("find").expect("there");
    assert_eq!((found.tenant, found.principal), (tenant, owner));
    assert_eq!(found.role, Some(Role::Owner));
    assert_eq!(found.scopes.names(), first_key("").scopes.names());
    assert_eq!(found.secret_hash, first_key("").secret_hash);
    assert_eq!(found.expires_at, first_key("").expires_at);
}

#[tokio::test]
async fn before_the_first_tenant_there_is_no_credential() {
    let db = TestDb::new().await;
    sqlx::query("delete from credentials")
        .execute(&mut db.admin().await)
        .await
        .expect("emptied");
    let mut system = db.store.system("test").await.expect("begin");
    assert!(!system.has_credential().await.expect("answered"));
}

#[tokio::test]
async fn a_name_is_one_tenants_and_a_handle_one_members() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut system = db.store.system("test").await.expect("begin");
    let taken = system
        .create_tenant("acme", "eve", first_key("other"), moment())
        .await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let mut system = db.store.system("test").await.expect("begin");
    assert_eq!(
        system.find_tenant("acme").await.expect("find"),
        Some(twin.tenant)
    );
    assert_eq!(system.find_tenant("nobody").await.expect("find"), None);

    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    assert_eq!(tx.find_member("ada").await.expect("find"), Some(twin.owner));
    let taken = tx.insert_member("ada", None, Role::Reader, minute(0)).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
}

#[tokio::test]
async fn the_scopes_in_force_end_with_the_key_its_time_and_its_member() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_credential(&credential("inforcekey22", twin.member))
        .await
        .expect("a key");
    tx.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    let found = system.find_credential("inforcekey22").await;
    let key = found.expect("find").expect("there").credential;
    let mut admin = db.admin().await;
    let now = async |at| {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let scopes = tx.scopes_in_force(key, minute(at)).await.expect("answered");
        scopes.map(|scopes| scopes.names())
    };
    let both = Some(vec!["memory:read", "memory:write"]);
    assert_eq!(now(1).await, both);
    assert_eq!(now(100_000).await, None, "it is over");
    for (change, left) in [
        (
            "update members set role = 'reader'",
            Some(vec!["memory:read"]),
        ),
        ("update members set removed_at = now()", None),
        (
            "update members set role = 'member', removed_at = null",
            both,
        ),
        ("update credentials set revoked_at = now()", None),
    ] {
        sqlx::query(change).execute(&mut admin).await.expect("done");
        assert_eq!(now(1).await, left, "{change}");
    }
}
