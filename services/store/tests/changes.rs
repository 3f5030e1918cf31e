//! What stands at the positions of a tenant: all of it, in order, for those who may be told.

#[path = "support/plans.rs"]
mod plans;
mod support;

use std::collections::BTreeMap;

use cairn_domain::change::ChangeKind;
use cairn_domain::ids::RecordKind;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_store::changes::{Changes, Room, Stands, Told, Whose};
use cairn_store::records::{Deleted, Promoted};
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::{Store, StoreOptions};
use plans::{Notices, explain_everything};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::*;

const ROOM: Room = Room {
    changes: 500,
    bytes: limits::CHANGES_BYTES,
};

async fn look(store: &Store, twin: &Twin, after: i64, reader: &Reader) -> Changes {
    look_with(store, twin, after, reader, ROOM).await
}

async fn look_with(store: &Store, twin: &Twin, after: i64, reader: &Reader, room: Room) -> Changes {
    let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
    let reach = tx.reach_of_changes().await.expect("known");
    let whose = Whose::Reader(reader);
    let found = tx.changes(reach, after, room, whose).await;
    tx.commit().await.expect("commit");
    found.expect("found")
}

/// Positions with kinds, ids and whether the thing is there.
fn told(found: &Changes, reader: &Reader) -> Vec<(i64, String)> {
    let line = |(position, told): (i64, &Told)| {
        let sign = if told.now.is_some() { "" } else { "-" };
        (
            position,
            format!("{sign}{} {}", told.kind.word(), short(told)),
        )
    };
    found.told(reader).map(line).collect()
}

fn short(told: &Told) -> &str {
    match told.kind {
        ChangeKind::Record(_) => &told.id,
        ChangeKind::WorkEntry | ChangeKind::Project => "",
    }
}

fn lines(expected: &[(i64, &str)]) -> Vec<(i64, String)> {
    let own = |(position, line): &(i64, &str)| (*position, (*line).to_owned());
    expected.iter().map(own).collect()
}

#[tokio::test]
async fn every_kind_stands_at_its_position_with_all_that_it_is() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("first"),
        summary("what for"),
        prompt("please"),
        entry("docs", 1, serde_json::json!({"task": "a"})),
        tool_use("output"),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let me = reader(twin.owner);
    let found = look(&db.store, &twin, 0, &me).await;
    assert_eq!(
        told(&found, &me),
        lines(&[
            (1, "project "),
            (2, "observation 1"),
            (3, "summary S1"),
            (4, "prompt P1"),
            (5, "work_entry "),
        ])
    );
    assert_eq!((found.next, found.horizon.latest), (5, 5));
    let whole: Vec<&Told> = found.told(&me).map(|(_, told)| told).collect();
    let Some(Stands::Project(project)) = &whole[0].now else {
        panic!("{whole:?}")
    };
    assert_eq!(project.name, "my-app");
    assert_eq!((&whole[0].author, whole[0].event_id), (&None, None));
    let Some(Stands::Record(record)) = &whole[1].now else {
        panic!("{whole:?}")
    };
    assert_eq!(record.row.title, "first");
    assert_eq!(whole[1].event_id, Some(events[0].event_id));
    assert_eq!(whole[1].author.as_deref(), Some("ada"));
    assert_eq!(whole[4].id, events[3].event_id.to_string());
    assert!(matches!(&whole[4].now, Some(Stands::WorkEntry(entry)) if entry.list == "docs"));
    assert!(
        whole
            .iter()
            .all(|told| told.project == "git:git.example.com/acme/my-app")
    );
}

#[tokio::test]
async fn what_changes_again_moves_and_what_is_deleted_leaves_a_stone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("kept"),
        private(observation("shown late")),
        observation("gone"),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let (ada, ben) = (reader(twin.owner), reader(twin.member));
    let found = look(&db.store, &twin, 0, &ben).await;
    let first = [(1, "project "), (2, "observation 1"), (4, "observation 3")];
    assert_eq!(told(&found, &ben), lines(&first));
    assert_eq!(found.next, 4);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let promoted = tx.promote_record(ids(&["2"])[0], &ada, minute(1)).await;
    assert_eq!(promoted.expect("answered"), Promoted::Done);
    let deleted = tx
        .delete_record(ids(&["3"])[0], &ada, false, minute(1))
        .await;
    assert_eq!(deleted.expect("answered"), Deleted::Done);
    tx.commit().await.expect("commit");
    let found = look(&db.store, &twin, 4, &ben).await;
    assert_eq!(
        told(&found, &ben),
        lines(&[(5, "observation 2"), (6, "-observation 3")])
    );
    // From the start the same things are told, each once.
    for reader in [&ada, &ben] {
        let found = look(&db.store, &twin, 0, reader).await;
        let all = [
            (1, "project "),
            (2, "observation 1"),
            (5, "observation 2"),
            (6, "-observation 3"),
        ];
        assert_eq!(told(&found, reader), lines(&all));
    }
}

#[tokio::test]
async fn nobody_is_told_what_they_may_not_read_nor_that_it_is_gone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        private(observation("mine")),
        prompt("asked"),
        in_project("other", observation("elsewhere")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let (ada, ben) = (reader(twin.owner), reader(twin.member));
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let other = tx.find_projects("other").await.expect("found").remove(0);
    let app = tx.find_projects("my-app").await.expect("found").remove(0);
    tx.commit().await.expect("commit");
    let found = look(&db.store, &twin, 0, &ben).await;
    assert_eq!(
        told(&found, &ben).len(),
        3,
        "two projects, one record: {found:?}"
    );
    let here = reader_of(twin.member, &app.members);
    let found = look(&db.store, &twin, 0, &here).await;
    assert_eq!(told(&found, &here).len(), 1, "the project itself");
    let there = reader_of(twin.member, &other.members);
    let found = look(&db.store, &twin, 0, &there).await;
    assert_eq!(told(&found, &there).len(), 2);

    let mut admin = db.admin().await;
    sqlx::query("update tenants set settings = '{\"prompt_visibility\":\"team\"}'")
        .execute(&mut admin)
        .await
        .expect("a setting");
    let found = look(&db.store, &twin, 0, &ben).await;
    assert!(
        told(&found, &ben)
            .iter()
            .any(|(_, line)| line == "prompt P1")
    );
    sqlx::query("update tenants set settings = '{}'")
        .execute(&mut admin)
        .await
        .expect("a setting");

    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    for id in ids(&["1", "P1"]) {
        let deleted = tx.delete_record(id, &ada, false, minute(1)).await;
        assert_eq!(deleted.expect("answered"), Deleted::Done);
    }
    tx.commit().await.expect("commit");
    let found = look(&db.store, &twin, 0, &ben).await;
    assert!(
        told(&found, &ben)
            .iter()
            .all(|(_, line)| !line.starts_with('-'))
    );
    let found = look(&db.store, &twin, 0, &ada).await;
    let gone = told(&found, &ada);
    assert_eq!(
        gone.iter()
            .filter(|(_, line)| line.starts_with('-'))
            .count(),
        2
    );
    // What is read for several comes out for those who may.
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let reach = tx.reach_of_changes().await.expect("known");
    let found = tx.changes(reach, 0, ROOM, Whose::Anybody).await;
    let found = found.expect("found");
    assert_eq!(told(&found, &ada), gone);
    assert_eq!(told(&found, &here).len(), 1);
}

#[tokio::test]
async fn pages_end_at_any_size_and_miss_nothing() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events: Vec<_> = (0..60).map(|n| observation(&format!("note {n}"))).collect();
    record(&db.store, &twin, twin.owner, &events).await;
    let me = reader(twin.owner);
    let whole = told(&look(&db.store, &twin, 0, &me).await, &me);
    assert_eq!(whole.len(), 61);
    for (changes, bytes) in [(1, usize::MAX), (7, usize::MAX), (500, 1), (60, 3_000)] {
        let room = Room { changes, bytes };
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let found = look_with(&db.store, &twin, after, &me, room).await;
            assert!(found.items.len() <= changes);
            all.extend(told(&found, &me));
            assert!(found.next > after || after == 61, "it goes on");
            if found.next == found.horizon.latest {
                break;
            }
            after = found.next;
        }
        assert_eq!(all, whole, "{room:?}");
    }
    let end = look(&db.store, &twin, 61, &me).await;
    assert_eq!((end.items.len(), end.next), (0, 61));
}

#[tokio::test]
async fn a_reader_beside_writers_misses_nothing() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let write = |who, n: usize| {
        let store = db.store.clone();
        async move {
            for i in 0..25 {
                let events = [observation(&format!("{n} {i}")), prompt("p")];
                record_after_races(&store, &twin, who, &events).await;
                if i % 5 == 4 {
                    // What goes back leaves no gap.
                    let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
                    let lost = prepared(&[observation("lost")]);
                    tx.record_events(&batch(who, &all(&lost)))
                        .await
                        .expect("recorded");
                    drop(tx);
                }
            }
        }
    };
    let writers = async {
        tokio::join!(
            write(twin.owner, 1),
            write(twin.member, 2),
            write(twin.owner, 3)
        )
    };
    let me = reader(twin.owner);
    let total = 3 * 25 * 2 + 1;
    let read = async {
        let mut seen: BTreeMap<i64, String> = BTreeMap::new();
        let mut after = 0;
        while after < total {
            let found = look(&db.store, &twin, after, &me).await;
            for (position, line) in told(&found, &me) {
                assert!(position > after && position <= found.next);
                assert!(seen.insert(position, line).is_none());
            }
            after = found.next;
        }
        seen
    };
    let (_, seen) = tokio::join!(writers, read);
    let observations = seen.values().filter(|line| line.starts_with("observation"));
    assert_eq!(observations.count(), 75);
    let own = seen.values().filter(|line| line.starts_with("prompt"));
    assert_eq!(own.count(), 50, "those of another are skipped");
}

#[tokio::test]
async fn what_comes_before_the_eyes_are_found_is_left_for_the_next_look() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let reach = tx.reach_of_changes().await.expect("known");
    // Nobody is in the project yet; who looks does not see it.
    let blind = reader_of(twin.owner, &[]);
    record(&db.store, &twin, twin.owner, &[observation("first")]).await;
    let found = tx.changes(reach, 0, ROOM, Whose::Reader(&blind)).await;
    let found = found.expect("found");
    assert_eq!((found.next, found.horizon.latest), (0, 0));
    let me = reader(twin.owner);
    let later = look(&db.store, &twin, found.next, &me).await;
    assert_eq!(
        told(&later, &me),
        lines(&[(1, "project "), (2, "observation 1")])
    );
}

#[tokio::test]
async fn an_epoch_is_a_tenants_own_and_ends_when_the_operator_says_so() {
    let db = TestDb::new().await;
    let (one, other) = db.twins;
    let both = [one.tenant, other.tenant];
    let before = db.store.horizons(&both).await.expect("known");
    let before: Vec<_> = before
        .into_iter()
        .map(|found| found.expect("there"))
        .collect();
    assert_eq!((before[0].latest, before[1].latest), (0, 0));
    assert_ne!(before[0].epoch, before[1].epoch);
    record(&db.store, &one, one.owner, &[observation("x")]).await;
    let mut tx = db.store.tenant(one.tenant, "test").await.expect("begin");
    let mine = tx.horizon_of_changes().await.expect("known");
    assert_eq!((mine.latest, &mine.epoch), (2, &before[0].epoch));
    tx.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    assert_eq!(system.renew_epochs(minute(1)).await.expect("renewed"), 2);
    system.commit().await.expect("commit");
    let after = db.store.horizons(&both).await.expect("known");
    for (before, after) in before.iter().zip(after) {
        assert_ne!(before.epoch, after.expect("there").epoch);
    }
    let mut admin = db.admin().await;
    let noted: i64 =
        sqlx::query_scalar("select count(*) from audit where action = 'positions.restart'")
            .fetch_one(&mut admin)
            .await
            .expect("a count");
    assert_eq!(noted, 2);
    // Another cluster, or another timeline of this one, would say something else here.
    let mut app = PgConnection::connect(&db.app_url).await.expect("open");
    let life: String = sqlx::query_scalar("select database_life()")
        .fetch_one(&mut app)
        .await
        .expect("a life");
    let (cluster, timeline) = life.split_once('/').expect("both are told");
    assert!(
        cluster.parse::<u64>().is_ok() && u32::from_str_radix(timeline, 16) == Ok(1),
        "{life}"
    );
}

#[tokio::test]
async fn positions_that_nobody_may_read_are_passed_in_bounded_steps() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[observation("x")]).await;
    fill(&mut db.admin().await, &twin, 5_000).await;
    let ben = reader(twin.member);
    let (mut after, mut looks) = (0, 0);
    let step = i64::try_from(limits::CHANGES_LOOKED_AT).expect("small");
    loop {
        let found = look(&db.store, &twin, after, &ben).await;
        assert!(found.next - after <= step && found.next > after);
        looks += 1;
        after = found.next;
        if after == found.horizon.latest {
            break;
        }
    }
    assert_eq!(looks, 3);
}

/// Copies the tenant's first observation as private ones, at positions of their own.
async fn fill(admin: &mut PgConnection, twin: &Twin, count: i64) {
    let copy = format!(
        "insert into records select tenant_id, kind, number + n, project_id, session_id, author_id,
           at, position + n, true, subagent, obs_type, concepts, read_tokens, work_tokens,
           analyser, field_lengths, title, tsv
         from records r, generate_series(1, {count}) n
         where r.tenant_id = {0} and r.number = 1 and r.kind = {1};
         insert into observations select o.tenant_id, o.number + n, gen_random_uuid(), arrived_at,
           agent_id, agent_type, branch, checkout, origin, subtitle, narrative, facts, files_read,
           files_read_more, files_modified, files_modified_more, tool_uses
         from observations o, generate_series(1, {count}) n
         where o.tenant_id = {0} and o.number = 1;
         update tenant_counters set position = position + {count}, observation = observation + {count}
         where tenant_id = {0};
         analyze records; analyze observations",
        twin.tenant.key(),
        RecordKind::Observation.code(),
    );
    sqlx::raw_sql(AssertSqlSafe(copy))
        .execute(admin)
        .await
        .expect("filled");
}

/// A look at the end of a long history reads what is new, by the order of positions alone.
#[tokio::test]
async fn a_look_walks_along_positions() {
    let db = TestDb::new().await;
    let (twin, other) = db.twins;
    let mut admin = db.admin().await;
    for twin in [&twin, &other] {
        record(
            &db.store,
            twin,
            twin.owner,
            &[
                observation("x"),
                entry("docs", 1, serde_json::json!({"n": 1})),
            ],
        )
        .await;
    }
    fill(&mut admin, &twin, 20_000).await;
    let notices = Notices::default();
    let _heard = tracing::subscriber::set_default(notices.clone());
    explain_everything(&mut admin).await;
    let store = Store::connect(&StoreOptions {
        url: db.app_url.clone(),
        pool: 1,
    })
    .await
    .expect("open");
    for after in [0, 10_000, 20_000] {
        notices.clear();
        look(&store, &twin, after, &reader(twin.owner)).await;
        let plans = notices.plans_of_records();
        let walks: Vec<_> = plans
            .iter()
            .filter(|plan| plan.contains("union all"))
            .collect();
        assert_eq!(walks.len(), 1, "{plans:?}");
        for plan in plans
            .iter()
            .filter(|plan| !plan.contains("never executed) on records"))
        {
            assert!(!plan.contains("Seq Scan on records"), "{plan}");
        }
        assert!(walks[0].contains("_tenant_id_position_"), "{}", walks[0]);
        assert!(!walks[0].contains("Seq Scan"), "{}", walks[0]);
    }
}
