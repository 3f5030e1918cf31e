//! What goes on for long ends when its caller's rights do, with what was done until then; and an
//! export that nobody takes keeps nobody else from theirs.

use std::time::{Duration, Instant};

use cairn_domain::limits;
use cairn_domain::scope::Role;
use cairn_server::admin;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::rights::{export, lines};
use crate::support::steps::{Steps, piecewise};
use crate::support::{Caller, PROJECT, TestApp, hold_counters, item, soon};

/// How long what goes on by itself may take.
const DEADLINE: Duration = Duration::from_secs(60);

async fn revoke(app: &TestApp, caller: &Caller) {
    let key = caller.key_id();
    admin::revoke_key(&app.db.store, &app.app.clock, "acme", key)
        .await
        .expect("revoked");
}

/// Stores observations, as many as there are batches of so many.
async fn remember(caller: &Caller, batches: usize, of: usize) {
    for batch in 0..batches {
        let notes = (0..of).map(|n| json!({"title": format!("note {batch} {n}")}));
        let items = notes.map(|note| item("observation", note)).collect();
        caller.events(items).await.ok();
    }
}

async fn observations(admin: &mut PgConnection) -> i64 {
    sqlx::query_scalar("select count(*) from observations")
        .fetch_one(admin)
        .await
        .expect("a count")
}

/// Looks until something is so.
async fn until(admin: &mut PgConnection, question: &'static str) {
    let began = Instant::now();
    loop {
        let so: bool = sqlx::query_scalar(question)
            .fetch_one(&mut *admin)
            .await
            .expect("an answer");
        if so {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "never: {question}");
    }
}

#[tokio::test]
async fn an_export_breaks_off_when_its_key_is_revoked() {
    let app = TestApp::start().await;
    let (owner, other) = (app.owner().await, app.owner().await);
    let batch = usize::try_from(limits::EXPORT_BATCH).expect("small");
    remember(&owner, 6, batch).await;
    let mut steps = Steps::export(&app, &owner, "project=*").await;
    assert_eq!(steps.status(), 200);
    let head = steps.next().await.expect("a head").expect("whole");
    assert!(head.starts_with(b"{\"cairn_export\":1,"));
    revoke(&app, &owner).await;
    let (rest, ended) = soon(steps.rest()).await;
    assert!(!ended, "nobody takes it for the whole");
    // One part may have been made before.
    assert!(rest.lines().count() <= batch, "{}", rest.lines().count());
    assert!(!rest.contains("cairn_export_end"));
    // With a key that is good it is whole, and takes up nobody's place.
    let whole = lines(&export(&other, "project=*&kinds=observation").await);
    assert_eq!(whole.len(), 1 + 1 + 6 * batch);
}

#[tokio::test]
async fn an_export_breaks_off_when_its_member_may_no_more() {
    let app = TestApp::start().await;
    let chief = app.newcomer("chief", Role::Admin).await;
    let batch = usize::try_from(limits::EXPORT_BATCH).expect("small");
    remember(&chief, 4, batch).await;
    let mut whole = Steps::export(&app, &chief, "project=*").await;
    whole.next().await.expect("a head").expect("whole");
    sqlx::query("update members set role = 'reader' where role = 'admin'")
        .execute(&mut app.db.admin().await)
        .await
        .expect("changed");
    let (_, ended) = soon(whole.rest()).await;
    assert!(!ended);
    // What is one's own, a reader may still have.
    let own = soon_own(&app, &chief).await;
    assert_eq!(own.matches("\"kind\":\"observation\"").count(), 4 * batch);
}

/// The caller's own records, once an export before has gone.
async fn soon_own(app: &TestApp, caller: &Caller) -> String {
    app.app.rights_changed(app.db.twins.0.tenant);
    soon(async {
        loop {
            let mut own = Steps::export(app, caller, "author=me&project=*").await;
            if own.status() == 200 {
                let (text, ended) = own.rest().await;
                assert!(ended);
                return text;
            }
            assert_eq!(own.code().await, "rate_limited");
        }
    })
    .await
}

#[tokio::test]
async fn an_import_ends_when_its_key_is_revoked_and_keeps_what_was_stored() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let head = json!({"cairn_export": 1, "tenant": "elsewhere", "source": Uuid::new_v4(),
        "exported_at": "2026-10-10T08:45:00.000Z"});
    let batch = || -> String {
        let one = |n: usize| {
            let line = json!({"kind": "observation", "event_id": Uuid::new_v4(),
                "project": PROJECT, "author": "ada", "at": "2026-10-01T00:00:00.000Z",
                "observation": {"title": format!("note {n}")}});
            format!("{line}\n")
        };
        (0..limits::IMPORT_BATCH).map(one).collect()
    };
    let (parts, body) = piecewise();
    let importing = Steps::call(&app, &owner, "POST", "/v1/import", body);
    let sending = async {
        parts.send(format!("{head}\n{}", batch())).expect("taken");
        let mut admin = app.db.admin().await;
        until(&mut admin, "select count(*) >= 500 from observations").await;
        revoke(&app, &owner).await;
        parts.send(batch()).expect("taken");
        drop(parts);
    };
    let (answer, ()) = soon(async { tokio::join!(importing, sending) }).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.code().await, "credential_revoked");
    let stored = observations(&mut app.db.admin().await).await;
    assert_eq!(usize::try_from(stored), Ok(limits::IMPORT_BATCH));
}

#[tokio::test]
async fn a_purge_ends_when_its_key_is_revoked_and_another_goes_on() {
    let app = TestApp::start().await;
    let (owner, other) = (app.owner().await, app.owner().await);
    let at_once = usize::try_from(limits::REMOVED_AT_ONCE).expect("small");
    remember(&owner, 3, at_once).await;
    let mut admin = app.db.admin().await;
    // The first transaction of the purge waits, and is under way when the key is revoked.
    let held = hold_counters(&mut admin).await;
    let purging = owner.post("/v1/purge", json!({"author": "ada"}));
    let revoking = async {
        let mut admin = app.db.admin().await;
        let waits = "select exists (select from pg_stat_activity
            where wait_event_type = 'Lock' and datname = current_database())";
        until(&mut admin, waits).await;
        revoke(&app, &owner).await;
        held.rollback().await.expect("let go");
    };
    let (answer, ()) = soon(async { tokio::join!(purging, revoking) }).await;
    assert_eq!(answer.code(), "credential_revoked", "{answer:?}");
    let mut admin = app.db.admin().await;
    let left = observations(&mut admin).await;
    assert_eq!(usize::try_from(left), Ok(2 * at_once));
    let rest = other.post("/v1/purge", json!({"author": "ada"})).await.ok();
    assert_eq!(rest["counts"]["observation"], 2 * at_once);
    assert_eq!(observations(&mut admin).await, 0);
}

#[tokio::test]
async fn slow_readers_keep_nobody_from_an_export_and_have_one_each() {
    let app = TestApp::start().await;
    app.owner().await.remember("note", "").await;
    let mut slow = Vec::new();
    let mut readers = Vec::new();
    for n in 0..limits::EXPORTS + 1 {
        let reader = app.newcomer(&format!("slow-{n}"), Role::Admin).await;
        let steps = Steps::export(&app, &reader, "project=*").await;
        assert_eq!(steps.status(), 200);
        slow.push(steps);
        readers.push(reader);
    }
    // None of them takes anything, and others have theirs.
    for other in [app.owner().await, app.stranger().await] {
        let whole: Vec<Value> = lines(&export(&other, "project=*").await);
        assert!(!whole.is_empty());
    }
    let again = Steps::export(&app, &readers[0], "author=me&project=*").await;
    assert_eq!(again.status(), 429);
    assert!(again.header("retry-after").is_some());
    assert_eq!(again.code().await, "rate_limited");
    // Whoever goes away may begin anew, and whoever comes late has the whole.
    drop(slow.remove(0));
    soon_own(&app, &readers[0]).await;
    for mut late in slow {
        let (text, ended) = soon(late.rest()).await;
        assert!(ended);
        lines(&text);
    }
}
