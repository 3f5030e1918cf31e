//! Members: what removing one takes along, that an owner always stays, and that a handle given
//! anew is somebody else's.

mod support;

use cairn_domain::ids::PrincipalId;
use cairn_domain::scope::Role;
use cairn_store::StoreError;
use cairn_store::members::{Manager, MemberChange, MemberChanged};
use cairn_store::test_util::TestDb;
use support::*;

fn operator() -> Manager {
    Manager {
        actor: None,
        is_owner: true,
        now: minute(5),
    }
}

fn to(role: Role) -> MemberChange<'static> {
    MemberChange {
        role: Some(role),
        email: None,
    }
}

async fn add(db: &TestDb, handle: &str, role: Role) -> PrincipalId {
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let id = tx.insert_member(handle, None, role, minute(1)).await;
    tx.commit().await.expect("commit");
    id.expect("added")
}

async fn remove(db: &TestDb, handle: &str) -> MemberChanged {
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let removed = tx.remove_member(handle, &operator()).await;
    tx.commit().await.expect("commit");
    removed.expect("answered")
}

#[tokio::test]
async fn a_tenant_keeps_an_owner() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    assert_eq!(remove(&db, "ada").await, MemberChanged::LastOwner);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let demoted = tx.change_member("ada", &to(Role::Admin), &operator()).await;
    assert_eq!(demoted.expect("answered"), MemberChanged::LastOwner);
    let email = MemberChange {
        role: Some(Role::Owner),
        email: Some(Some("ada@example.com")),
    };
    let kept = tx.change_member("ada", &email, &operator()).await;
    match kept.expect("answered") {
        MemberChanged::Done(ada) => assert_eq!(ada.email.as_deref(), Some("ada@example.com")),
        other => panic!("{other:?}"),
    }
    let made = tx.change_member("ben", &to(Role::Owner), &operator()).await;
    assert!(matches!(made, Ok(MemberChanged::Done(_))), "{made:?}");
    let demoted = tx.change_member("ada", &to(Role::Admin), &operator()).await;
    assert!(matches!(demoted, Ok(MemberChanged::Done(_))), "{demoted:?}");
    tx.commit().await.expect("commit");
    assert_eq!(remove(&db, "ben").await, MemberChanged::LastOwner);
}

#[tokio::test]
async fn two_owners_who_remove_each_other_leave_one() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    add(&db, "cyd", Role::Owner).await;
    let mut first = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let removed = first.remove_member("ada", &operator()).await;
    assert!(matches!(removed, Ok(MemberChanged::Done(_))), "{removed:?}");
    let second = remove(&db, "cyd");
    let commit = async {
        wait_until_blocked(&db).await;
        first.commit().await.expect("commit");
    };
    let (second, ()) = tokio::join!(second, commit);
    assert_eq!(second, MemberChanged::LastOwner);
}

#[tokio::test]
async fn who_is_no_owner_touches_none() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    add(&db, "cyd", Role::Owner).await;
    let manager = Manager {
        actor: Some(twin.member),
        is_owner: false,
        ..operator()
    };
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let removed = tx.remove_member("cyd", &manager).await.expect("answered");
    assert_eq!(removed, MemberChanged::Forbidden);
    for (handle, role) in [("cyd", Role::Reader), ("ben", Role::Owner)] {
        let changed = tx.change_member(handle, &to(role), &manager).await;
        assert_eq!(
            changed.expect("answered"),
            MemberChanged::Forbidden,
            "{handle}"
        );
    }
    let changed = tx.change_member("ben", &to(Role::Admin), &manager).await;
    assert!(matches!(changed, Ok(MemberChanged::Done(_))), "{changed:?}");
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn a_removed_member_takes_their_keys_along_and_leaves_what_they_shared() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("shared"),
        private(observation("kept to myself")),
        tool_use("shared call"),
    ];
    record(&db.store, &twin, twin.member, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_credential(&credential("benskey", twin.member))
        .await
        .expect("a key");
    tx.commit().await.expect("commit");
    assert!(matches!(remove(&db, "ben").await, MemberChanged::Done(_)));
    assert_eq!(remove(&db, "ben").await, MemberChanged::NotFound);
    let mut system = db.store.system("test").await.expect("begin");
    let key = system.find_credential("benskey").await.expect("find");
    system.commit().await.expect("commit");
    let key = key.expect("still known");
    assert!(key.revoked && key.member_removed);

    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let seen = tx.get_records(&ids(&["1", "2"]), &reader(twin.owner)).await;
    let seen = seen.expect("read");
    assert_eq!((seen.len(), seen[0].row.author.as_str()), (1, "ben"));
    tx.commit().await.expect("commit");

    // Whoever gets the handle gets nothing else.
    let again = add(&db, "ben", Role::Member).await;
    assert_ne!(again.key, twin.member.key);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let seen = tx.get_records(&ids(&["1", "2"]), &reader(again)).await;
    let seen = seen.expect("read");
    assert_eq!((seen.len(), seen[0].row.author.as_str()), (1, "ben~1"));
    let member = tx.get_member("ben").await.expect("find").expect("there");
    assert_eq!(member.id, again);
    assert_eq!(tx.get_member("ben~1").await.expect("find"), None);
    tx.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    let key = system.find_credential("benskey").await.expect("find");
    assert!(key.expect("still known").revoked);
    system.commit().await.expect("commit");

    // And so on.
    assert!(matches!(remove(&db, "ben").await, MemberChanged::Done(_)));
    add(&db, "ben", Role::Reader).await;
    let names: Vec<String> = sqlx::query_scalar(
        "select name from principals where tenant_id = $1 and name like 'ben%' order by 1",
    )
    .bind(twin.tenant.key())
    .fetch_all(&mut db.admin().await)
    .await
    .expect("names");
    assert_eq!(names, ["ben", "ben~1", "ben~2"]);
}

#[tokio::test]
async fn an_address_names_one_member() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let email = Some("Lin@example.com");
    tx.insert_member("lin", email, Role::Member, minute(1))
        .await
        .expect("added");
    tx.commit().await.expect("commit");
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let email = Some("lin@EXAMPLE.com");
    let taken = tx
        .insert_member("dan", email, Role::Member, minute(1))
        .await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.remove_member("lin", &operator()).await.expect("removed");
    tx.insert_member("dan", email, Role::Member, minute(1))
        .await
        .expect("free again");
    tx.commit().await.expect("commit");
}
