//! What members use is counted to the event and to the byte, and quotas hold.

mod support;

use cairn_domain::ids::ToolUseId;
use cairn_domain::quota::Quota;
use cairn_domain::scope::Role;
use cairn_store::StoreError;
use cairn_store::events::{EventOutcome, PreparedEvent};
use cairn_store::test_util::{TestDb, Twin, moment};
use cairn_store::usage::{DayUsage, UsagePick, UsagePlace};
use sqlx::PgConnection;
use support::*;

async fn usage(db: &TestDb, twin: Twin) -> Vec<DayUsage> {
    page(db, twin, None, 200).await
}

async fn page(db: &TestDb, twin: Twin, after: Option<UsagePlace>, limit: u32) -> Vec<DayUsage> {
    // Up to the day on which batches of tests arrive.
    let today = minute(10_000).date_naive();
    let pick = UsagePick {
        from: today - chrono::Days::new(8),
        to: today,
        after,
        limit,
    };
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = tx.usage(&pick).await.expect("usage");
    tx.commit().await.expect("commit");
    found
}

/// What the sums say is kept, and what the rows say.
async fn kept(admin: &mut PgConnection, twin: Twin) -> (i64, i64) {
    let sums = "select coalesce(sum(bytes), 0)::bigint from stored_bytes where tenant_id = $1";
    let rows = "select (select coalesce(sum(bytes), 0) from records where tenant_id = $1)::bigint
      + (select coalesce(sum(octet_length(input) + octet_length(output)
          + (select coalesce(sum(octet_length(f)), 0) from unnest(files) f)), 0)
         from tool_uses where tenant_id = $1)::bigint
      + (select coalesce(sum(octet_length(list) + octet_length(fields)), 0)
         from work_entries where tenant_id = $1)::bigint";
    let mut both = Vec::new();
    for sql in [sums, rows] {
        let sum: i64 = sqlx::query_scalar(sql)
            .bind(twin.tenant.key())
            .fetch_one(&mut *admin)
            .await
            .expect("a sum");
        both.push(sum);
    }
    (both[0], both[1])
}

async fn set_quotas(admin: &mut PgConnection, twin: Twin, quotas: serde_json::Value) {
    sqlx::query(
        "update tenants set settings = jsonb_build_object('quotas', $2) where tenant_id = $1",
    )
    .bind(twin.tenant.key())
    .bind(quotas)
    .execute(admin)
    .await
    .expect("set");
}

/// The quota and the limit that refuse some events.
async fn refused(
    db: &TestDb,
    twin: Twin,
    events: &[cairn_domain::event::EventDraft],
) -> Option<(Quota, Option<i64>)> {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let prepared = prepared(events);
    match tx.record_events(&batch(twin.owner, &all(&prepared))).await {
        Ok(_) => {
            tx.commit().await.expect("commit");
            None
        }
        Err(StoreError::OverQuota { quota, limit }) => Some((quota, limit)),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn events_and_bytes_are_counted_with_what_they_store() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    let events = [
        prompt("fix it"),
        tool_use("out"),
        observation("One"),
        summary("Fix"),
        turn_end("done"),
        work_entry("auth", "m1", None),
    ];
    record(&db.store, &me, me.owner, &events).await;
    // A repeat counts for nothing.
    record(&db.store, &me, me.owner, &events).await;
    record(&db.store, &me, me.member, &[observation("Two")]).await;
    let used = usage(&db, me).await;
    let told: Vec<(&str, i64)> = used.iter().map(|u| (u.member.as_str(), u.events)).collect();
    assert_eq!(told, [("ada", 6), ("ben", 1)]);
    let (sums, rows) = kept(&mut admin, me).await;
    assert_eq!(sums, rows);
    assert_eq!(sums, used.iter().map(|u| u.bytes).sum::<i64>());
    let title_and_texts = "Two".len()
        + "The pool lost its connections.".len()
        + "at most 20".len()
        + "a, \"b\"".len()
        + "src/net/retry.ts".len();
    assert_eq!(
        used[1].bytes,
        i64::try_from(title_and_texts).expect("small")
    );
    assert_eq!(usage(&db, db.twins.1).await, []);
}

#[tokio::test]
async fn what_is_deleted_is_kept_no_more_but_was_used() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    let events = [observation("One"), observation("Two"), tool_use("out")];
    record(&db.store, &me, me.owner, &events).await;
    let before = usage(&db, me).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.delete_record(ids(&["1"])[0], &reader(me.owner), false, minute(1))
        .await
        .expect("deleted");
    tx.delete_tool_use(ToolUseId(1), &reader(me.owner), false, minute(1))
        .await
        .expect("deleted");
    tx.commit().await.expect("commit");
    let (sums, rows) = kept(&mut admin, me).await;
    assert_eq!(sums, rows);
    assert!(sums > 0);
    assert_eq!(usage(&db, me).await, before);
    // However many go at once, and whoever deletes them.
    sqlx::query("delete from records where tenant_id = $1")
        .bind(me.tenant.key())
        .execute(&mut admin)
        .await
        .expect("deleted");
    assert_eq!(kept(&mut admin, me).await, (0, 0));
}

#[tokio::test]
async fn usage_of_days_before_one_goes_in_batches() {
    let db = TestDb::new().await;
    let (me, other, today) = (db.twins.0, db.twins.1, minute(10_000).date_naive());
    for twin in [me, other] {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let day = |ago| (twin.owner, today - chrono::Days::new(ago), 1);
        tx.count_requests(&[day(0), day(1), day(2), day(3)])
            .await
            .expect("counted");
        tx.commit().await.expect("commit");
    }
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let before = today - chrono::Days::new(1);
    for gone in [1, 1, 0] {
        assert_eq!(tx.expire_usage(before, 1).await.expect("expired"), gone);
    }
    tx.commit().await.expect("commit");
    let days: Vec<_> = usage(&db, me).await.iter().map(|used| used.day).collect();
    assert_eq!(days, [today, before]);
    assert_eq!(usage(&db, other).await.len(), 4);
}

#[tokio::test]
async fn a_row_of_a_version_that_did_not_count_is_in_no_sum() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    record(
        &db.store,
        &me,
        me.owner,
        &[observation("One"), observation("Two")],
    )
    .await;
    let (before, _) = kept(&mut admin, me).await;
    sqlx::query("update records set bytes = null where number = 1")
        .execute(&mut admin)
        .await
        .expect("as an older version stored it");
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.delete_record(ids(&["1"])[0], &reader(me.owner), false, minute(1))
        .await
        .expect("deleted");
    tx.commit().await.expect("commit");
    assert_eq!(kept(&mut admin, me).await.0, before);
}

#[tokio::test]
async fn a_quota_of_events_holds_for_the_whole_team_and_writes_nothing() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    set_quotas(&mut admin, me, serde_json::json!({"events_a_day": 3})).await;
    record(
        &db.store,
        &me,
        me.member,
        &[observation("One"), observation("Two")],
    )
    .await;
    let two = [observation("Three"), observation("Four")];
    assert_eq!(
        refused(&db, me, &two).await,
        Some((Quota::EventsADay, Some(3)))
    );
    assert_eq!(usage(&db, me).await.len(), 1, "nothing was written");
    assert_eq!(refused(&db, me, &two[..1]).await, None);
    assert!(refused(&db, me, &two[1..]).await.is_some());
    // What is stored already is told, however full the day is.
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let prepared: Vec<PreparedEvent> = prepared(&two);
    let all = all(&prepared);
    let told = tx
        .repeated_events(&batch(me.owner, &all))
        .await
        .expect("told");
    assert!(
        matches!(told[..], [Some(EventOutcome::Duplicate { .. }), None]),
        "{told:?}"
    );
    drop(tx);
    assert_eq!(refused(&db, db.twins.1, &two).await, None, "another team");
}

#[tokio::test]
async fn a_quota_of_bytes_lets_in_what_fits_once_something_is_deleted() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    record(&db.store, &me, me.owner, &[observation("One")]).await;
    let (one, _) = kept(&mut admin, me).await;
    set_quotas(&mut admin, me, serde_json::json!({"stored_bytes": one})).await;
    let more = [observation("Two")];
    assert_eq!(
        refused(&db, me, &more).await,
        Some((Quota::StoredBytes, Some(one)))
    );
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.delete_record(ids(&["1"])[0], &reader(me.owner), false, minute(1))
        .await
        .expect("deleted");
    tx.commit().await.expect("commit");
    assert_eq!(refused(&db, me, &more).await, None);
}

#[tokio::test]
async fn guard_quotas_are_closed_for_writes_when_they_cannot_be_read() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    record(&db.store, &me, me.owner, &[observation("One")]).await;
    for quotas in [
        serde_json::json!("none"),
        serde_json::json!({"events_a_day": "many"}),
        serde_json::json!({"stored_bytes": -1}),
    ] {
        set_quotas(&mut admin, me, quotas.clone()).await;
        let refused = refused(&db, me, &[observation("Two")]).await;
        assert_eq!(refused.map(|(_, limit)| limit), Some(None), "{quotas}");
        // Reads go on.
        let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
        let read = tx.get_records(&ids(&["1"]), &reader(me.owner)).await;
        assert_eq!(read.expect("read").len(), 1);
    }
}

#[tokio::test]
async fn a_quota_of_members_counts_those_who_were_not_removed() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    set_quotas(&mut admin, me, serde_json::json!({"members": 2})).await;
    let add = || async {
        let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
        let added = tx.insert_member("zoe", None, Role::Member, minute(0)).await;
        if added.is_ok() {
            tx.commit().await.expect("commit");
        }
        added.map(drop)
    };
    let full = add().await.expect_err("full");
    assert!(matches!(
        full,
        StoreError::OverQuota {
            quota: Quota::Members,
            limit: Some(2)
        }
    ));
    sqlx::query("update members set removed_at = now() where principal_id = $1")
        .bind(me.member.key)
        .execute(&mut admin)
        .await
        .expect("removed");
    add().await.expect("there is room");
}

#[tokio::test]
async fn tokens_of_a_month_are_spent_once() {
    let db = TestDb::new().await;
    let (me, mut admin) = (db.twins.0, db.admin().await);
    set_quotas(
        &mut admin,
        me,
        serde_json::json!({"observer_tokens_a_month": 10}),
    )
    .await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.require_tokens(moment()).await.expect("none is spent");
    tx.count_tokens(me.member, 10, moment())
        .await
        .expect("counted");
    let spent = tx
        .require_tokens(moment())
        .await
        .expect_err("all are spent");
    assert!(matches!(spent, StoreError::OverQuota { .. }));
    let next_month = moment() + chrono::TimeDelta::days(31);
    tx.require_tokens(next_month).await.expect("a new month");
    tx.commit().await.expect("commit");
    assert_eq!(usage(&db, me).await[0].tokens, 10);
}

#[tokio::test]
async fn usage_is_read_page_by_page() {
    let db = TestDb::new().await;
    let me = db.twins.0;
    let today = moment().date_naive();
    let yesterday = today - chrono::Days::new(1);
    let long_ago = today - chrono::Days::new(9);
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    for _ in 0..2 {
        let counts =
            [today, yesterday, long_ago].map(|day| [(me.owner, day, 2), (me.member, day, 3)]);
        tx.count_requests(&counts.concat()).await.expect("counted");
    }
    tx.commit().await.expect("commit");
    let (mut after, mut seen) = (None, Vec::new());
    while let Some(row) = page(&db, me, after.take(), 1).await.pop() {
        after = Some(UsagePlace {
            day: row.day,
            member: row.member.clone(),
        });
        seen.push((row.day, row.member, row.requests));
    }
    let row = |day, name: &str, count| (day, name.to_owned(), count);
    assert_eq!(
        seen,
        [
            row(today, "ada", 4),
            row(today, "ben", 6),
            row(yesterday, "ada", 4),
            row(yesterday, "ben", 6),
        ]
    );
}
