//! What callers without a credential leave in the store is bounded, and a crowd makes room for
//! others before they do for it; and what an e-mail address leads to.

use cairn_domain::limits;
use cairn_domain::scope::{Role, Scope};
use cairn_store::Store;
use cairn_store::before_sign_in::{Begun, DeviceRequest, KnownClient};
use cairn_store::test_util::{TestDb, moment};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tokio::task::JoinSet;

/// Lets a device of a network ask.
async fn begin(store: &Store, number: u32, source: &str, now: DateTime<Utc>) -> Begun {
    let hash = |kind: u8| {
        let mut hash = [kind; 32];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        hash
    };
    let mut tx = store.system("test").await.expect("begin");
    let begun = tx
        .add_device_request(&DeviceRequest {
            device_hash: hash(1),
            user_hash: hash(2),
            client_id: "cairn",
            client_name: "cairn",
            device: None,
            scopes: [Scope::MemoryRead].into_iter().collect(),
            resource: "https://memory.example.com",
            source,
            now,
        })
        .await;
    tx.commit().await.expect("commit");
    begun.expect("answered")
}

/// Devices that a network has waiting, each a second younger than the one before.
async fn devices(admin: &mut PgConnection, count: i32, source: &str) {
    sqlx::query(
        "insert into device_requests (device_hash, user_hash, client_id, client_name, scopes,
           resource, created_at, expires_at, pause, source)
         select sha256(convert_to($1 || n, 'UTF8')), sha256(convert_to($1 || n || 'u', 'UTF8')),
           'cairn', $1 || n, '{}', 'x', $2 + n * interval '1 millisecond',
           $2 + interval '10 minutes', 5, $1
         from generate_series(1, $3) n",
    )
    .bind(source)
    .bind(moment())
    .bind(count)
    .execute(admin)
    .await
    .expect("they wait");
}

async fn names(admin: &mut PgConnection, sql: &'static str) -> Vec<String> {
    let read = sqlx::query_scalar(sql).fetch_all(admin).await;
    read.expect("names")
}

#[tokio::test]
async fn so_many_devices_of_a_network_wait_and_no_more_however_they_come() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    devices(&mut admin, limits::WAITING_DEVICES - 1, "192.0.2.7").await;
    let mut at_once = JoinSet::new();
    for number in 0..8 {
        let store = db.store.clone();
        at_once.spawn(async move { begin(&store, number, "192.0.2.7", moment()).await });
    }
    let begun = at_once.join_all().await;
    let waiting = begun.iter().filter(|begun| **begun == Begun::Waits).count();
    assert_eq!(waiting, 1, "{begun:?}");
    assert!(
        begun.iter().all(|begun| *begun != Begun::Taken),
        "{begun:?}"
    );
    // Others go on, and a code is given out once.
    assert_eq!(
        begin(&db.store, 9, "192.0.2.8", moment()).await,
        Begun::Waits
    );
    assert_eq!(
        begin(&db.store, 9, "192.0.2.8", moment()).await,
        Begun::Taken
    );
    // Those that are over their time, or decided, wait no more.
    sqlx::query("update device_requests set state = 'denied' where client_name = '192.0.2.71'")
        .execute(&mut admin)
        .await
        .expect("denied");
    assert_eq!(
        begin(&db.store, 10, "192.0.2.7", moment()).await,
        Begun::Waits
    );
    assert_eq!(
        begin(&db.store, 11, "192.0.2.7", moment()).await,
        Begun::Crowded
    );
    let later = moment() + limits::DEVICE_CODE_TIME + TimeDelta::seconds(1);
    assert_eq!(begin(&db.store, 11, "192.0.2.7", later).await, Begun::Waits);
}

#[tokio::test]
async fn a_crowd_of_devices_makes_room_before_others_do() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    devices(&mut admin, 1, "quiet").await;
    devices(&mut admin, limits::DEVICE_REQUESTS - 1, "crowd").await;
    let left = "select client_name from device_requests
                where client_name in ('quiet1', 'crowd1', 'crowd2', 'cairn') order by 1";
    assert_eq!(begin(&db.store, 1, "new", moment()).await, Begun::Waits);
    assert_eq!(names(&mut admin, left).await, ["cairn", "crowd2", "quiet1"]);
    // What is over goes first of all.
    sqlx::query("update device_requests set expires_at = $1 where client_name = 'quiet1'")
        .bind(moment())
        .execute(&mut admin)
        .await
        .expect("over");
    assert_eq!(begin(&db.store, 2, "new", moment()).await, Begun::Waits);
    assert_eq!(names(&mut admin, left).await, ["cairn", "cairn", "crowd2"]);
    let all: i64 = sqlx::query_scalar("select count(*) from device_requests")
        .fetch_one(&mut admin)
        .await
        .expect("a count");
    assert_eq!(all, i64::from(limits::DEVICE_REQUESTS));
}

#[tokio::test]
async fn a_crowd_of_programs_that_nobody_lets_in_makes_room_before_others_do() {
    let db = TestDb::new().await;
    let mut admin = db.admin().await;
    sqlx::query(
        "insert into oauth_clients (client_id, name, redirect_uris, created_at, used_at, source)
         values ('quiet', 'x', '{}', $1, null, 'quiet'), ('used', 'x', '{}', $1, $1, 'crowd')",
    )
    .bind(moment())
    .execute(&mut admin)
    .await
    .expect("known");
    sqlx::query(
        "insert into oauth_clients (client_id, name, redirect_uris, created_at, source)
         select 'crowd' || n, 'x', '{}', $1 + n * interval '1 millisecond', 'crowd'
         from generate_series(1, $2) n",
    )
    .bind(moment())
    .bind(limits::UNUSED_CLIENTS - 1)
    .execute(&mut admin)
    .await
    .expect("known");
    let client = KnownClient {
        name: "new".to_owned(),
        redirect_uris: Vec::new(),
    };
    let mut tx = db.store.system("test").await.expect("begin");
    tx.put_client("new", &client, "new", (moment(), None))
        .await
        .expect("kept");
    tx.commit().await.expect("commit");
    let left = "select client_id from oauth_clients
                where client_id in ('quiet', 'used', 'new', 'crowd1', 'crowd2') order by 1";
    assert_eq!(
        names(&mut admin, left).await,
        ["crowd2", "new", "quiet", "used"]
    );
}

#[tokio::test]
async fn an_address_leads_to_its_members_whoever_came_first_before_others() {
    let db = TestDb::new().await;
    let (one, two) = db.twins;
    for (twin, handle, minutes) in [(two, "first", 1), (one, "second", 2)] {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let at = moment() + TimeDelta::minutes(minutes);
        tx.insert_member(handle, Some("Kim@Acme.example"), Role::Reader, at)
            .await
            .expect("a member");
        tx.commit().await.expect("commit");
    }
    let found = async || {
        let mut tx = db.store.system("test").await.expect("begin");
        let found = tx.find_members_by_email("kim@acme.example").await;
        let found = found.expect("found").into_iter();
        let told = found.map(|it| (it.tenant_name, it.handle, it.removed));
        told.collect::<Vec<_>>()
    };
    let told = |team: &str, handle: &str, removed| (team.to_owned(), handle.to_owned(), removed);
    let both = [told("umbra", "first", false), told("acme", "second", false)];
    assert_eq!(found().await, both);
    sqlx::query(
        "update members set removed_at = joined_at where tenant_id = $1 and email is not null",
    )
    .bind(two.tenant.key())
    .execute(&mut db.admin().await)
    .await
    .expect("removed");
    let both = [told("acme", "second", false), told("umbra", "first", true)];
    assert_eq!(found().await, both);
}
