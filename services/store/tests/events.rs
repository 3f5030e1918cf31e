//! Recording events: idempotency, numbers, positions, turns and the jobs they leave.

mod support;

use cairn_store::StoreError;
use cairn_store::events::{EventOutcome, EventStatus};
use cairn_store::test_util::TestDb;
use support::*;
use uuid::Uuid;

#[tokio::test]
async fn numbers_and_positions_follow_the_order_of_items() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        prompt("fix it"),
        tool_use("\"ok\""),
        observation("Fixed"),
        summary("Fix"),
        observation("More"),
        turn_end("done"),
        work_entry("auth", "m1", None),
    ];
    let recorded = record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(
        stored_ids(&recorded),
        [
            Some("P1"),
            Some("T1"),
            Some("1"),
            Some("S1"),
            Some("2"),
            None,
            None
        ]
    );
    // The new project takes the first position, tool use and turn end take none.
    assert_eq!(recorded.position, Some(6));
}

#[tokio::test]
async fn a_repeat_changes_nothing_and_says_whether_it_differs() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut events = [observation("One"), tool_use("1")];
    record(&db.store, &twin, twin.owner, &events).await;
    events[0].digest = [8; 16];
    let again = record(&db.store, &twin, twin.owner, &events).await;
    let duplicate = |id: &str, differs| EventOutcome::Duplicate {
        id: Some(id.to_owned()),
        differs,
    };
    assert_eq!(
        again.outcomes,
        [duplicate("1", true), duplicate("T1", false)]
    );
    assert_eq!(again.position, None);
    assert_eq!(count(&db, "select count(*) from records").await, 1);
}

#[tokio::test]
async fn a_repeat_inside_one_batch_is_a_duplicate_of_the_first() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let first = observation("One");
    let mut second = first.clone();
    second.digest = [9; 16];
    let events = [first, observation("Two"), second];
    let recorded = record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(
        recorded.outcomes[2],
        EventOutcome::Duplicate {
            id: Some("1".to_owned()),
            differs: true
        }
    );
    assert_eq!(recorded.position, Some(3));
}

#[tokio::test]
async fn another_authors_event_id_is_refused_and_reveals_nothing() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mine = observation("Mine");
    record(&db.store, &twin, twin.owner, std::slice::from_ref(&mine)).await;
    let mut theirs = in_project("other", observation("Theirs"));
    theirs.event_id = mine.event_id;
    let recorded = record(&db.store, &twin, twin.member, &[theirs]).await;
    assert_eq!(recorded.outcomes, [EventOutcome::ReusedByAnother]);
    assert_eq!(count(&db, "select count(*) from projects").await, 1);

    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let checked = tx
        .check_events(&[mine.event_id], &reader(twin.member))
        .await
        .expect("checked");
    assert_eq!(checked[0].status, EventStatus::Unknown);
}

#[tokio::test]
async fn the_same_event_id_in_two_tenants_is_two_events() {
    let db = TestDb::new().await;
    let (a, b) = db.twins;
    let events = [observation("One")];
    record(&db.store, &a, a.owner, &events).await;
    let other = record(&db.store, &b, b.owner, &events).await;
    assert_eq!(stored_ids(&other), [Some("1")]);
}

#[tokio::test]
async fn c031_two_honest_events_of_equal_content_are_two() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [tool_use("\"ok\""), tool_use("\"ok\"")];
    let recorded = record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(stored_ids(&recorded), [Some("T1"), Some("T2")]);
}

#[tokio::test]
async fn a_deleted_event_stays_deleted() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [observation("One")];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.delete_record(ids(&["1"])[0], &reader(twin.owner), false, minute(1))
        .await
        .expect("deleted");
    tx.commit().await.expect("commit");
    let again = record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(again.outcomes, [EventOutcome::Deleted]);

    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let unknown = Uuid::now_v7();
    let checked = tx
        .check_events(&[unknown, events[0].event_id], &reader(twin.owner))
        .await
        .expect("checked");
    assert_eq!(checked[0].status, EventStatus::Unknown);
    assert_eq!(checked[1].status, EventStatus::Deleted);
    assert_eq!(count(&db, "select count(*) from records").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_leave_no_gap_and_no_number_twice() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let writers = (0..8).map(|writer| {
        let store = db.store.clone();
        tokio::spawn(async move {
            for round in 0..6 {
                let session = format!("s-{writer}");
                let events = [
                    in_session(&session, prompt(&format!("{round}"))),
                    in_session(&session, tool_use("1")),
                    in_session(&session, observation("x")),
                    in_session(&session, work_entry("l", "m", None)),
                ];
                let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
                tx.record_events(&batch(twin.owner, &all(&prepared(&events))))
                    .await
                    .expect("recorded");
                if round % 3 == 1 {
                    drop(tx); // rolled back: its numbers are free again
                } else {
                    tx.commit().await.expect("commit");
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer");
    }
    let numbers = "select count(*) = max(number) and max(number) = 32 from records where kind = 0";
    assert!(holds(&db, numbers).await);
    assert!(
        holds(
            &db,
            "select count(*) = max(number) and max(number) = 32 from tool_uses"
        )
        .await
    );
    // One for the project, three of each committed batch.
    let positions =
        format!("select count(distinct position) = 97 and max(position) = 97 from ({POSITIONS}) p");
    assert!(holds(&db, &positions).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_never_sees_a_position_before_all_below_it() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = db.store.clone();
            tokio::spawn(async move {
                for _ in 0..15 {
                    let session = format!("s-{writer}");
                    let events = [in_session(&session, observation("x"))];
                    record(&store, &twin, twin.owner, &events).await;
                }
            })
        })
        .collect();
    let gap = format!("select count(*) = coalesce(max(position), 0) from ({POSITIONS}) p");
    let mut looks = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        assert!(
            holds(&db, &gap).await,
            "a position is missing below another"
        );
        looks += 1;
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
    assert!(looks > 3, "the reader looked while others wrote");
    let all = format!("select max(position) = 61 from ({POSITIONS}) p");
    assert!(holds(&db, &all).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_batch_sent_twice_at_once_is_stored_once() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // Without a session nothing but the ledger tells the two apart.
    let events: Vec<_> = (0..20)
        .map(|n| {
            let mut draft = observation(&format!("{n}"));
            draft.session = None;
            draft
        })
        .collect();
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let (store, events) = (db.store.clone(), events.clone());
            tokio::spawn(
                async move { record_after_races(&store, &twin, twin.owner, &events).await },
            )
        })
        .collect();
    let mut stored = 0;
    for sender in senders {
        let recorded = sender.await.expect("a sender");
        let new = |o: &&EventOutcome| matches!(o, EventOutcome::Stored { .. });
        stored += recorded.outcomes.iter().filter(new).count();
    }
    assert_eq!(stored, 20);
    let numbers = "select count(*) = 20 and max(number) = 20 and max(position) = 21 from records";
    assert!(holds(&db, numbers).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_lost_a_race_says_so_and_leaves_nothing() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [observation("common")];
    let mut first = db.store.tenant(twin.tenant, "test").await.expect("begin");
    first
        .record_events(&batch(twin.owner, &all(&prepared(&events))))
        .await
        .expect("recorded");
    let second = tokio::spawn({
        let (store, mut events) = (db.store.clone(), events.to_vec());
        events.push(in_session("s-2", tool_use("1")));
        async move {
            let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
            tx.record_events(&batch(twin.owner, &all(&prepared(&events))))
                .await
        }
    });
    wait_until_blocked(&db).await;
    first.commit().await.expect("commit");
    let lost = second.await.expect("answered").expect_err("lost the race");
    assert!(matches!(lost, StoreError::Raced), "{lost:?}");
    assert!(lost.is_retryable());
    // The session and the number that it had taken are free again.
    assert_eq!(count(&db, "select count(*) from sessions").await, 1);
    let next = record(&db.store, &twin, twin.owner, &[tool_use("2")]).await;
    assert_eq!(stored_ids(&next), [Some("T1")]);
}

#[tokio::test]
async fn a_deadlock_is_a_lost_race() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut admin = db.admin().await;
    // The other transaction takes the counter first and then wants what the batch has.
    let run = |sql: &'static str| sqlx::raw_sql(sql);
    run("begin; set deadlock_timeout = '1h'; select * from tenant_counters for update")
        .execute(&mut admin)
        .await
        .expect("locked");
    let batch_of = tokio::spawn({
        let store = db.store.clone();
        async move {
            let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
            tx.record_events(&batch(twin.owner, &all(&prepared(&[observation("x")]))))
                .await
        }
    });
    wait_until_blocked(&db).await;
    run(
        "insert into projects (tenant_id, key, key_folded, name, name_folded)
         select tenant_id, 'k', 'git:git.example.com/acme/my-app', 'n', 'n' from tenants",
    )
    .execute(&mut admin)
    .await
    .expect("the batch was ended, not this");
    let lost = batch_of.await.expect("answered").expect_err("ended");
    assert!(matches!(lost, StoreError::Raced), "{lost:?}");
}

#[tokio::test]
async fn what_moves_no_session_neither_waits_for_it_nor_writes_it() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[turn_end("nothing")]).await;
    let version = "select xmin::text from sessions";
    let before = texts(&db, version).await;
    let mut admin = db.admin().await;
    let mut holder = sqlx::Connection::begin(&mut admin).await.expect("begin");
    sqlx::query("select * from sessions for no key update")
        .fetch_all(&mut *holder)
        .await
        .expect("locked");
    let still = [
        observation("x"),
        summary("x"),
        work_entry("l", "m", None),
        in_session("new", observation("y")),
    ];
    let recorded = record(&db.store, &twin, twin.owner, &still).await;
    assert_eq!(recorded.outcomes.len(), 4);
    holder.rollback().await.expect("released");
    // A turn that is not open cannot be closed: nothing moves either.
    record(&db.store, &twin, twin.owner, &[turn_end("nothing")]).await;
    let after = format!("{version} where host_session_id = 's-1'");
    assert_eq!(texts(&db, &after).await, before);
    let linked = "select count(*) from records r join sessions s using (tenant_id, session_id)";
    assert_eq!(count(&db, linked).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_over_the_same_sessions_in_any_order_never_lock_each_other_out() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let writers: Vec<_> = (0..6_usize)
        .map(|writer| {
            let store = db.store.clone();
            tokio::spawn(async move {
                for round in 0..6 {
                    let mut events: Vec<_> = (0..8)
                        .map(|n| {
                            let name = format!("p-{}-{}", round, n % 4);
                            let event = match n % 3 {
                                0 => tool_use("1"),
                                1 => observation("x"),
                                _ => work_entry("l", "m", None),
                            };
                            in_project(&name, in_session(&format!("s-{n}"), event))
                        })
                        .collect();
                    events.rotate_left(writer);
                    if writer % 2 == 0 {
                        events.reverse();
                    }
                    record(&store, &twin, twin.owner, &events).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no deadlock");
    }
    assert_eq!(count(&db, "select count(*) from projects").await, 24);
    assert_eq!(count(&db, "select count(*) from sessions").await, 48);
    assert_eq!(count(&db, "select count(*) from events").await, 288);
}

#[tokio::test]
async fn a_batch_of_500_is_a_few_round_trips_and_whole() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events: Vec<_> = (0..250)
        .flat_map(|n| [observation(&format!("title {n}")), tool_use("\"x\"")])
        .collect();
    let recorded = record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(stored_ids(&recorded).last(), Some(&Some("T250")));
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let last = tx
        .get_records(&ids(&["250"]), &reader(twin.owner))
        .await
        .expect("read");
    assert_eq!(last[0].row.title, "title 249");
}

#[tokio::test]
async fn each_turn_with_tool_uses_leaves_one_job_in_the_same_transaction() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        prompt("one"),
        tool_use("1"),
        tool_use("2"),
        prompt("two"), // closes the first turn
        turn_end("nothing used"),
        tool_use("3"), // opens a turn of its own
        turn_end("done"),
        session_end(),
    ];
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.record_events(&batch(twin.owner, &all(&prepared(&events))))
        .await
        .expect("recorded");
    assert_eq!(count(&db, "select count(*) from jobs").await, 0);
    tx.commit().await.expect("commit");
    let jobs = texts(
        &db,
        "select j.kind || ' ' || coalesce(j.payload->>'turn', '-') || ' '
           || coalesce(j.payload->>'last_reply', '-')
           || case when j.payload->>'session' = s.uid::text then '' else ' lost' end
         from jobs j join sessions s using (tenant_id, session_id) order by job_id",
    )
    .await;
    assert_eq!(jobs, ["observe 1 -", "observe 3 done", "summarize - -"]);
    let session = texts(
        &db,
        "select concat_ws(' ', prompt_count, tool_use_count, turn, turn_open, end_reason)
         from sessions where ended_at is not null",
    )
    .await;
    assert_eq!(session, ["2 3 3 f exit"]);
}

#[tokio::test]
async fn a_turn_goes_on_across_batches() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    for event in [
        prompt("one"),
        tool_use("1"),
        turn_end("done"),
        turn_end("again"),
    ] {
        record(&db.store, &twin, twin.owner, &[event]).await;
    }
    assert_eq!(count(&db, "select count(*) from jobs").await, 1);
    assert_eq!(count(&db, "select count(*) from sessions").await, 1);
}

#[tokio::test]
async fn a_wholly_private_turn_leaves_nothing_but_its_existence() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [private_prompt(), tool_use("secret"), turn_end("secret")];
    let recorded = record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(stored_ids(&recorded), [None, None, None]);
    for table in ["records", "prompts", "tool_uses", "jobs"] {
        let rows = format!("select count(*) from {table}");
        assert_eq!(count(&db, &rows).await, 0, "{table}");
    }
    assert!(holds(&db, "select turn = 1 from sessions").await);
    // The next turn is kept again.
    let next = record(
        &db.store,
        &twin,
        twin.owner,
        &[prompt("go on"), tool_use("1")],
    )
    .await;
    assert_eq!(stored_ids(&next), [Some("P1"), Some("T1")]);
}

#[tokio::test]
async fn both_sides_of_a_tool_use_come_back_byte_for_byte() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let odd = "{\"n\":1e400,\"n\":12345678901234567890.10,\"s\":\"\\ud83d\"}";
    record(&db.store, &twin, twin.owner, &[tool_use(odd)]).await;
    let mut admin = db.admin().await;
    let (output, sha256): (Vec<u8>, Vec<u8>) =
        sqlx::query_as("select output, output_sha256 from tool_uses")
            .fetch_one(&mut admin)
            .await
            .expect("a row");
    let plain = zstd::decode_all(&output[..]).expect("zstd");
    assert_eq!(plain, odd.as_bytes());
    assert_eq!(sha256.len(), 32);
}

/// Every table that has positions.
const POSITIONS: &str = "select position from records union all \
     select position from work_entries union all select position from projects union all \
     select position from tombstones";

async fn count(db: &TestDb, sql: &str) -> i64 {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::query_scalar(sql)
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a count")
}

async fn holds(db: &TestDb, sql: &str) -> bool {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::query_scalar(sql)
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a claim")
}

async fn texts(db: &TestDb, sql: &str) -> Vec<String> {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::query_scalar(sql)
        .fetch_all(&mut db.admin().await)
        .await
        .expect("rows")
}
