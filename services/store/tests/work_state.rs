//! What lists say: always what their entries fold to, one holder a task, and a history that
//! misses nothing.

mod support;

use cairn_domain::event::EventBody;
use cairn_domain::ids::{PrincipalId, ProjectId};
use cairn_domain::project::ProjectSet;
use cairn_domain::work_state::{Action, Holder, Place, WorkEntry, WorkState};
use cairn_store::events::EventBatch;
use cairn_store::test_util::{TestDb, Twin, open_items};
use cairn_store::work_state::{HistoryEntry, WorkPick};
use cairn_store::{Store, StoreError};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use support::*;

const ALL: ProjectSet = ProjectSet::All;

#[tokio::test(flavor = "multi_thread")]
async fn the_items_beside_the_log_are_what_the_entries_fold_to() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // Four writers at once, each late with half of its entries.
    let writers: Vec<_> = (0..4_i64)
        .map(|writer| {
            let store = db.store.clone();
            tokio::spawn(async move {
                for n in 0..30_i64 {
                    let minutes = if n % 2 == 0 { 100 - n } else { n };
                    let status = ["todo", "doing", "done"][usize::try_from(n % 3).expect("small")];
                    let fields = match n % 5 {
                        0 => json!({"version": n, "owner": null}),
                        1 => json!({"status": status, "owner": format!("w{writer}")}),
                        _ => json!({"task": format!("t{}", n % 7), "status": status, "n": writer}),
                    };
                    let list = format!("l{}", n % 2);
                    record(&store, &twin, twin.owner, &[entry(&list, minutes, fields)]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer");
    }
    let kept = read(&db, &twin, None, true).await;
    assert_eq!(kept, by_replay(&history(&db, &twin, None).await));
    assert!(kept.lists.iter().all(|list| list.tasks.len() > 3));

    // The migration of lists that stood before folds them alike.
    let sql = include_str!("../../../migrations/0007_create_work_state.sql");
    let from = sql.find("insert into work_lists").expect("the lists");
    let to = sql.find("alter table work_entries force").expect("the end");
    let mut admin = db.admin().await;
    let again = format!(
        "delete from work_items; delete from work_lists; {}",
        &sql[from..to]
    );
    sqlx::raw_sql(AssertSqlSafe(again))
        .execute(&mut admin)
        .await
        .expect("migrated");
    assert_eq!(read(&db, &twin, None, true).await, kept);
}

#[tokio::test]
async fn open_ones_are_read_newest_list_first_and_no_more_than_any_answer_holds() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut entries = vec![
        entry("old", 1, json!({"task": "kept"})),
        entry("closed", 2, json!({"status": "done"})),
        entry("blank", 3, json!({"n": null})),
        entry("new", 4, json!({"task": "gone", "status": "Dropped"})),
        entry("new", 4, json!({"status": "active"})),
    ];
    record(&db.store, &twin, twin.owner, &entries).await;
    let state = read(&db, &twin, None, false).await;
    let names: Vec<_> = state.lists.iter().map(|list| list.name.as_str()).collect();
    assert_eq!(names, ["new", "old"]);
    assert_eq!((state.lists[0].tasks.len(), state.unread_lines), (0, 0));
    let one = read(&db, &twin, Some("old"), false).await;
    assert_eq!(one.lists.len(), 1);

    entries = (0..500)
        .map(|n| entry("long", 5, json!({"task": format!("t{n}")})))
        .collect();
    record(&db.store, &twin, twin.owner, &entries).await;
    entries = (0..200)
        .map(|n| entry("longer", 6, json!({"task": format!("t{n}")})))
        .collect();
    record(&db.store, &twin, twin.owner, &entries).await;
    let state = read(&db, &twin, None, false).await;
    let tasks: usize = state.lists.iter().map(|list| list.tasks.len()).sum();
    assert_eq!(tasks, 600);
    // Lines that were not read are counted: a heading and each task of two long lists, and what
    // stood before.
    assert_eq!(
        tasks + state.lists.len() + state.unread_lines,
        201 + 501 + 1 + 2
    );
}

#[tokio::test]
async fn a_task_with_the_longest_name_is_an_item_like_any() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let task = "修".repeat(1_900);
    let entries = [
        entry("l", 1, json!({"task": task})),
        entry("l", 2, json!({"task": task, "n": 1})),
    ];
    record(&db.store, &twin, twin.owner, &entries).await;
    let state = read(&db, &twin, None, false).await;
    assert_eq!(state.lists[0].tasks.len(), 1);
    assert_eq!(state.lists[0].tasks[0].task.as_deref(), Some(task.as_str()));
}

#[tokio::test]
async fn an_item_that_gets_too_large_names_the_entries_that_are_too_much() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let grow = |n: i64| {
        let fields = (0..60).map(|key| (format!("k{n}-{key}"), json!(key)));
        let mut fields: serde_json::Map<String, Value> = fields.collect();
        fields.insert("task".to_owned(), json!("t"));
        entry("l", n, Value::Object(fields))
    };
    let mut entries: Vec<_> = (0..12).map(grow).collect();
    entries.push(entry("l", 20, json!({"task": "other"})));
    let events = prepared(&entries);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let refused = tx.record_events(&batch(twin.owner, &all(&events))).await;
    let Err(StoreError::Overfull(ids)) = refused else {
        panic!("{refused:?}")
    };
    drop(tx);
    assert!((3..10).contains(&ids.len()), "{}", ids.len());
    // Without them the rest can be stored.
    entries.retain(|entry| !ids.contains(&entry.event_id));
    record(&db.store, &twin, twin.owner, &entries).await;
    let state = read(&db, &twin, None, false).await;
    assert_eq!(state.lists[0].tasks.len(), 2);
    // A full item is never stuck: what does not make it larger is still taken, and so is what
    // comes behind an entry that was too much.
    let mut events = vec![grow(30), entry("l", 31, json!({"task": "t", "k0-0": 9}))];
    let refused = prepared(&events);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let refused = tx.record_events(&batch(twin.owner, &all(&refused))).await;
    let Err(StoreError::Overfull(ids)) = refused else {
        panic!("{refused:?}")
    };
    drop(tx);
    assert_eq!(ids, [events.remove(0).event_id]);
    record(&db.store, &twin, twin.owner, &events).await;
    let state = read(&db, &twin, None, false).await;
    assert_eq!(state.lists[0].tasks[0].value("k0-0").as_deref(), Some("9"));
}

#[tokio::test]
async fn of_more_than_any_answer_holds_what_is_open_is_read_first() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let entries = [
        entry("old", 1, json!({"task": "open"})),
        entry("old", 1, json!({"task": "also"})),
    ];
    record(&db.store, &twin, twin.owner, &entries).await;
    for part in 0..2 {
        let entries: Vec<_> = (0..400)
            .map(|n| {
                entry(
                    "done",
                    5,
                    json!({"task": format!("t{part}-{n}"), "status": "done"}),
                )
            })
            .collect();
        record(&db.store, &twin, twin.owner, &entries).await;
    }
    let state = read(&db, &twin, None, true).await;
    let names: Vec<_> = state.lists.iter().map(|list| list.name.as_str()).collect();
    assert_eq!(names, ["done", "old"]);
    assert_eq!(state.lists[1].tasks.len(), 2);
    assert_eq!((state.unread_lines, state.unread_open_lines), (202, 0));
}

#[tokio::test]
async fn thousands_of_open_tasks_are_counted_without_being_read() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    for part in 0..8 {
        let entries: Vec<_> = (0..500)
            .map(|n| entry("long", 5, json!({"task": format!("t{part}-{n}")})))
            .collect();
        record(&db.store, &twin, twin.owner, &entries).await;
    }
    let mut admin = db.admin().await;
    sqlx::raw_sql("analyze")
        .execute(&mut admin)
        .await
        .expect("analysed");
    let state = read(&db, &twin, None, false).await;
    assert_eq!(state.lists[0].tasks.len() + state.unread_lines, 4_000);
    // The whole of it is looked at once, whatever the planner thinks of its size.
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!(
        "explain (analyze, timing off, costs off) {}",
        open_items_statement(&twin)
    )))
    .fetch_all(&mut admin)
    .await
    .expect("a plan");
    let looped: Vec<_> = plan
        .iter()
        .filter(|line| line.contains("CTE Scan on shown"))
        .collect();
    assert!(
        !looped.is_empty() && looped.iter().all(|line| line.contains("loops=1")),
        "{plan:#?}"
    );
}

/// The statement of a read as Postgres ran it last, with its values.
fn open_items_statement(twin: &Twin) -> String {
    open_items()
        .replace("$1", &twin.tenant.key().to_string())
        .replace("$2", "null")
        .replace("$3", "null")
        .replace("$4", "600")
}

#[tokio::test(flavor = "multi_thread")]
async fn of_simultaneous_claims_one_wins_and_the_others_write_nothing() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let claims: Vec<_> = (0..8)
        .map(|session| {
            let store = db.store.clone();
            tokio::spawn(async move {
                let fields = json!({"task": "t", "by": session});
                write(
                    &store,
                    &twin,
                    twin.owner,
                    &session.to_string(),
                    fields,
                    CLAIM,
                )
                .await
            })
        })
        .collect();
    let mut won = Vec::new();
    for claim in claims {
        match claim.await.expect("a claim") {
            Ok(()) => won.push(true),
            Err(StoreError::Claimed { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(history(&db, &twin, None).await.len(), 1);
    let state = read(&db, &twin, None, false).await;
    let claim = state.lists[0].tasks[0].claim.as_ref().expect("held");
    assert!(claim.holder.starts_with("ada#"));
}

#[tokio::test]
async fn a_claim_goes_with_its_holder_its_lease_and_its_task() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let task = |status: &str| json!({"task": "t", "status": status});
    let own = async |session, status, action| {
        write(&db.store, &twin, twin.owner, session, task(status), action).await
    };
    let held = async || {
        let state = read(&db, &twin, None, true).await;
        state.lists[0].tasks[0].claim.clone()
    };
    own("a", "doing", CLAIM).await.expect("free");
    let until = held().await.expect("held").until;
    assert_eq!(until, minute(10_000 + 60));
    // Another session of the same member is another holder; its plain write is accepted.
    let lost = own("b", "doing", CLAIM).await.expect_err("held");
    assert!(matches!(lost, StoreError::Claimed { held, .. } if held.until == until));
    own("b", "todo", None).await.expect("a plain write");
    let release = own("b", "todo", Some(Action::Release)).await;
    assert!(matches!(release, Err(StoreError::Claimed { .. })));
    // What waited in a spool moves nothing, but a closed task has no holder.
    let spooled = [entry("l", 9_999, json!({"task": "t", "n": 1}))];
    record(&db.store, &twin, twin.owner, &spooled).await;
    assert!(held().await.is_some());
    own("a", "done", None).await.expect("its holder");
    assert_eq!(held().await, None);
    own("b", "todo", CLAIM).await.expect("free again");
    own("b", "todo", Some(Action::Release))
        .await
        .expect("its own");
    assert_eq!(held().await, None);
}

#[tokio::test]
async fn what_is_written_now_comes_after_all_that_its_list_holds() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // Another replica's clock runs ahead of ours by an hour.
    let ahead = prepared(&[entry("l", 10_060, json!({"task": "t", "status": "doing"}))]);
    let ahead = all(&ahead);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let batch = EventBatch {
        arrived_at: minute(10_060),
        ..batch(twin.owner, &ahead)
    };
    tx.record_events(&batch).await.expect("recorded");
    tx.commit().await.expect("commit");
    let done = json!({"task": "t", "status": "done"});
    write(&db.store, &twin, twin.owner, "a", done, None)
        .await
        .expect("written");
    let state = read(&db, &twin, None, true).await;
    assert!(state.lists[0].tasks[0].is_closed());
}

#[tokio::test]
async fn a_history_is_paged_in_the_order_of_the_fold_without_a_gap() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    for minutes in [5, 3, 3, 9, 1, 7] {
        let entries = [
            entry("l", minutes, json!({"n": minutes})),
            entry("m", minutes, json!({"n": minutes})),
        ];
        record(&db.store, &twin, twin.owner, &entries).await;
    }
    let all = history(&db, &twin, None).await;
    let places: Vec<Place> = all.iter().map(HistoryEntry::place).collect();
    assert!(places.len() == 12 && places.is_sorted());
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map(HistoryEntry::place);
        let page = tx.work_history(&ALL, None, after, 5).await.expect("read");
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let one = history(&db, &twin, Some("l")).await;
    assert!(one.len() == 6 && one.iter().all(|entry| entry.list == "l"));
    assert_eq!(
        (one[0].author.as_str(), one[0].fields.as_str()),
        ("ada", r#"{"n":1}"#)
    );
}

const CLAIM: Option<Action> = Some(Action::Claim { minutes: 60 });

/// A write of a session at minute 10,000.
async fn write(
    store: &Store,
    twin: &Twin,
    who: PrincipalId,
    session: &str,
    fields: Value,
    action: Option<Action>,
) -> Result<(), StoreError> {
    let mut draft = in_session(session, entry("l", 10_000, fields));
    if let EventBody::WorkEntry { entry, .. } = &mut draft.body {
        entry.action = action;
    }
    let holder = Holder::new(who.key, "ada", format!("{session:0>4}"));
    write_now(store, twin, who, &holder, draft).await
}

async fn read(db: &TestDb, twin: &Twin, list: Option<&str>, closed: bool) -> WorkState {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let own = tx.find_projects("my-app").await.expect("find");
    let project: Option<ProjectId> = own.first().map(|family| family.project.id);
    let pick = WorkPick {
        projects: &ALL,
        project,
        list,
        closed,
    };
    tx.work_state(pick).await.expect("read")
}

async fn history(db: &TestDb, twin: &Twin, list: Option<&str>) -> Vec<HistoryEntry> {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.work_history(&ALL, list, None, 200).await.expect("read")
}

/// The entries folded one after another, without the blank states that no read shows.
fn by_replay(entries: &[HistoryEntry]) -> WorkState {
    let mut state = WorkState::default();
    for entry in entries {
        let fields: serde_json::Map<String, Value> =
            serde_json::from_str(&entry.fields).expect("an object");
        state.add(&WorkEntry {
            list: entry.list.clone(),
            task: fields
                .get("task")
                .and_then(Value::as_str)
                .map(str::to_owned),
            fields,
            place: entry.place(),
            author: entry.author.clone(),
        });
    }
    state
}
