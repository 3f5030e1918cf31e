//! Work entries: stored exactly, and ordered by the hybrid logical clock.

mod support;

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::hlc::Hlc;
use cairn_store::events::EventBatch;
use cairn_store::test_util::{TestDb, Twin, moment};
use chrono::{DateTime, Utc};
use support::*;

#[tokio::test]
async fn an_entry_is_kept_as_written() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let after = Hlc { ms: 5, counter: 7 };
    let entry = at(3, work_entry("auth", "laptop", Some(after)));
    record(&db.store, &twin, twin.owner, &[entry]).await;
    let row: (
        String,
        Option<String>,
        String,
        String,
        DateTime<Utc>,
        i64,
        i64,
    ) = sqlx::query_as(
        "select list, task, fields, machine, at, after_ms, after_counter from work_entries",
    )
    .fetch_one(&mut db.admin().await)
    .await
    .expect("a row");
    assert_eq!(
        row,
        (
            "auth".to_owned(),
            Some("a".to_owned()),
            r#"{"task":"a","status":"todo"}"#.to_owned(),
            "laptop".to_owned(),
            minute(3),
            5,
            7
        )
    );
}

#[tokio::test]
async fn c020_a_late_replay_sorts_before_what_was_done_meanwhile() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // B writes "done" at 11:00 and A's entry of 10:00 arrives at 12:00, from a clock that is
    // three hours slow.
    let mut done = work_entry("auth", "b", None);
    send(&mut done, 60, 60);
    let mut doing = work_entry("auth", "a", None);
    send(&mut doing, -180, -180 + 120);
    arrive(&db, &twin, 60, &[done.clone()]).await;
    arrive(&db, &twin, 120, &[doing.clone()]).await;
    let order: Vec<uuid::Uuid> =
        sqlx::query_scalar("select event_id from work_entries order by hlc_ms, hlc_counter")
            .fetch_all(&mut db.admin().await)
            .await
            .expect("rows");
    assert_eq!(order, [doing.event_id, done.event_id]);
    let at: DateTime<Utc> = sqlx::query_scalar("select at from work_entries where machine = 'a'")
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a row");
    assert_eq!(at, doing.at, "the time is stored as given");
}

#[tokio::test]
async fn entries_of_one_machine_keep_their_order_within_and_across_batches() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut entries: Vec<EventDraft> = (0..3).map(|_| work_entry("l", "m", None)).collect();
    for entry in &mut entries {
        send(entry, 10, 10);
    }
    arrive(&db, &twin, 10, &entries[..2]).await;
    arrive(&db, &twin, 10, &entries[2..]).await;
    // Another machine, and another author's machine of the same name, have their own order.
    let mut elsewhere = work_entry("l", "n", None);
    send(&mut elsewhere, 10, 10);
    arrive(&db, &twin, 10, &[elsewhere]).await;
    let ms = minute(10).timestamp_millis();
    let moments: Vec<(i64, i64)> =
        sqlx::query_as("select hlc_ms, hlc_counter from work_entries order by position")
            .fetch_all(&mut db.admin().await)
            .await
            .expect("rows");
    assert_eq!(moments, [(ms, 0), (ms, 1), (ms, 2), (ms, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn c066_concurrent_entries_of_one_machine_never_share_a_moment() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = db.store.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let entry = in_session(&format!("s-{writer}"), work_entry("gates", "m", None));
                    record(&store, &twin, twin.owner, &[entry]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer");
    }
    let (all, moments): (i64, i64) =
        sqlx::query_as("select count(*), count(distinct (hlc_ms, hlc_counter)) from work_entries")
            .fetch_one(&mut db.admin().await)
            .await
            .expect("counts");
    assert_eq!((all, moments), (40, 40));
}

/// Sets when an entry was made and sent, in minutes of its own clock.
fn send(draft: &mut EventDraft, made: i64, sent: i64) {
    draft.at = minute(made);
    match &mut draft.body {
        EventBody::WorkEntry {
            made_at, sent_at, ..
        } => {
            *made_at = minute(made);
            *sent_at = minute(sent);
        }
        _ => panic!("a work entry"),
    }
}

async fn arrive(db: &TestDb, twin: &Twin, minutes: i64, events: &[EventDraft]) {
    assert!(minute(minutes) > moment());
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let events = prepared(events);
    let events = all(&events);
    let batch = EventBatch {
        arrived_at: minute(minutes),
        ..batch(twin.owner, &events)
    };
    tx.record_events(&batch).await.expect("recorded");
    tx.commit().await.expect("commit");
}
