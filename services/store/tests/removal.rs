//! What is removed for good: nothing of it is left but that it was, it never comes back, and what
//! was derived from it is as if it had never been.

mod support;

use std::collections::BTreeMap;

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::ids::PrincipalId;
use cairn_domain::kind::{Counts, Kind};
use cairn_domain::project::ProjectSet;
use cairn_domain::text::terms;
use cairn_domain::work_state::Holder;
use cairn_store::events::EventOutcome;
use cairn_store::purge::{PurgeFilter, Purger};
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::work_state::WorkPick;
use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use support::*;
use uuid::Uuid;

fn everything(author: Option<PrincipalId>) -> PurgeFilter {
    PurgeFilter {
        projects: ProjectSet::All,
        author,
        before: None,
        kinds: Kind::ALL.to_vec(),
    }
}

/// Counts, then removes, as the service does.
async fn purge(db: &TestDb, twin: &Twin, filter: &PurgeFilter) -> Counts {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let whole = tx.whole_span().await.expect("a span");
    let (mut counted, mut removed) = (Counts::default(), Counts::default());
    for part in whole.parts() {
        counted += tx.count_purge(filter, part).await.expect("counted");
    }
    tx.commit().await.expect("commit");
    let purger = Purger {
        actor: Some(twin.owner),
        asked: "a test",
        at: minute(20_000),
    };
    for part in whole.parts() {
        loop {
            let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
            let some = tx.purge_some(filter, part, purger).await.expect("purged");
            tx.commit().await.expect("commit");
            if some.total() == 0 {
                break;
            }
            removed += some;
        }
    }
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    while tx.scrub_sessions(filter).await.expect("scrubbed") > 0 {}
    tx.commit().await.expect("commit");
    assert_eq!(counted, removed, "a dry run says what is removed");
    removed
}

async fn number(admin: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_one(admin)
        .await
        .expect("a number")
}

/// Every row of every table, of all tenants, that holds a word.
async fn rows_with(admin: &mut PgConnection, word: &str) -> Vec<String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace
           and relkind in ('r', 'p') and not relispartition order by 1",
    )
    .fetch_all(&mut *admin)
    .await
    .expect("tables");
    let mut found = Vec::new();
    for table in tables {
        let sql = format!("select '{table} ' || t::text from {table} t where t::text ilike $1");
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(format!("%{word}%"))
            .fetch_all(&mut *admin)
            .await
            .expect("rows");
        found.extend(rows);
    }
    found
}

#[tokio::test]
async fn a_purge_of_a_member_leaves_nothing_they_wrote() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let own = [
        observation("sesame opens"),
        private(observation("sesame in private")),
        summary("sesame came to this"),
        prompt("sesame, open"),
        tool_use("sesame"),
        turn_end("sesame is open"),
        entry("cave", 1, json!({"task": "sesame", "status": "todo"})),
        entry("cave", 2, json!({"task": "shared", "note": "sesame"})),
    ];
    record(&db.store, &twin, twin.member, &own).await;
    let others = [
        observation("barley"),
        in_session("s-2", tool_use("barley")),
        entry("cave", 3, json!({"task": "shared", "status": "doing"})),
    ];
    record(&db.store, &twin, twin.owner, &others).await;
    // Words that eight records hold are counted.
    let alike: Vec<_> = (0..300)
        .map(|n| observation(&format!("sesame {n}")))
        .collect();
    record(&db.store, &twin, twin.member, &alike).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let project = tx.find_projects("my-app").await.expect("find").remove(0);
    assert!(tx.count_words(project.project.id).await.expect("counted"));
    tx.commit().await.expect("commit");
    let mut admin = db.admin().await;
    assert!(
        number(
            &mut admin,
            "select count(*) from term_counts where term like 'sesam%'"
        )
        .await
            > 0
    );
    let revision = "select context_revision from projects where name = 'my-app'
        and tenant_id = (select min(tenant_id) from projects)";
    let shown = number(&mut admin, revision).await;

    let counts = purge(&db, &twin, &everything(Some(twin.member))).await;
    let wanted = [302, 1, 1, 1, 2];
    assert_eq!(Kind::ALL.map(|kind| counts[kind]), wanted);

    assert_eq!(rows_with(&mut admin, "sesam").await, Vec::<String>::new());
    assert!(number(&mut admin, revision).await > shown);
    let standing = "select records from projects where name = 'my-app' order by tenant_id limit 1";
    assert_eq!(number(&mut admin, standing).await, 1);
    // Each removal is a position of its own and a tombstone, the last there are.
    for counted in [
        "select count(*) from tombstones",
        "select max(position) - min(position) + 1 from tombstones",
        "select 306 + max(position) - (select max(position) from tenant_counters) from tombstones",
    ] {
        assert_eq!(number(&mut admin, counted).await, 306, "{counted}");
    }

    // What is sent again is known for deleted, and stays so.
    let again = record(&db.store, &twin, twin.member, &own).await;
    let of_records = [0, 1, 2, 3, 4, 6, 7].map(|nth| &again.outcomes[nth]);
    assert!(of_records.iter().all(|one| **one == EventOutcome::Deleted));
    assert_eq!(rows_with(&mut admin, "sesam").await, Vec::<String>::new());

    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = search_index(&mut tx, &terms("sesame barley"), &reader(twin.member), 20).await;
    assert_eq!(found.expect("found").len(), 1);
    let pick = WorkPick {
        projects: &ProjectSet::All,
        project: None,
        list: None,
        closed: true,
    };
    let lists = tx.work_state(pick).await.expect("read").lists;
    assert_eq!(lists.len(), 1);
    assert_eq!(lists[0].tasks.len(), 1);
    assert_eq!(lists[0].tasks[0].value("status").as_deref(), Some("doing"));
    assert_eq!(lists[0].tasks[0].value("note"), None);
    let purged = "select count(*) from audit where action = 'purge'";
    assert!(number(&mut admin, purged).await >= 1);
    // Whoever calls again finds nothing more.
    let none = purge(&db, &twin, &everything(Some(twin.member))).await;
    assert_eq!(none, Counts::default());
}

#[tokio::test]
async fn a_purge_keeps_to_kind_project_and_time() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        at(1, observation("old")),
        at(9, observation("new")),
        at(1, in_project("other", observation("old elsewhere"))),
        at(1, prompt("old prompt")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let project = tx.find_projects("my-app").await.expect("find").remove(0);
    tx.commit().await.expect("commit");
    let filter = PurgeFilter {
        projects: ProjectSet::Only(project.members),
        author: None,
        before: Some(minute(5)),
        kinds: vec![Kind::Observation],
    };
    let counts = purge(&db, &twin, &filter).await;
    assert_eq!(counts.total(), 1);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let left = tx
        .get_records(&ids(&["1", "2", "3", "P1"]), &reader(twin.owner))
        .await
        .expect("read");
    let ids: Vec<String> = left
        .iter()
        .map(|record| record.row.id.to_string())
        .collect();
    assert_eq!(ids, ["2", "3", "P1"]);
}

#[tokio::test]
async fn what_was_said_goes_with_any_kind_but_lists() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let told = [
        event(EventBody::SessionStart {
            source: Some("startup".to_owned()),
            model: None,
        }),
        prompt("what?"),
        tool_use("out"),
        turn_end("sesame is open"),
    ];
    let elsewhere = told.clone().map(|one| EventDraft {
        event_id: Uuid::now_v7(),
        ..in_project("other", one)
    });
    record(&db.store, &twin, twin.member, &told).await;
    record(&db.store, &twin, twin.member, &elsewhere).await;
    let mut admin = db.admin().await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let project = tx.find_projects("my-app").await.expect("find").remove(0);
    tx.commit().await.expect("commit");
    let of = |kinds: &[Kind]| PurgeFilter {
        projects: ProjectSet::Only(project.members.clone()),
        author: None,
        before: Some(minute(1)),
        kinds: kinds.to_vec(),
    };
    let all_but_prompts = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Prompt);
    let all_but_prompts: Vec<Kind> = all_but_prompts.collect();
    let counts = "select (prompt_count * 10 + tool_use_count)::bigint from sessions
        order by session_id limit 1";
    let started = "select count(*) from sessions where source is not null";
    purge(&db, &twin, &of(&[Kind::WorkEntry])).await;
    assert_eq!(rows_with(&mut admin, "sesame").await.len(), 4);
    assert_eq!(number(&mut admin, counts).await, 11);
    purge(&db, &twin, &of(&all_but_prompts)).await;
    // The other project's stay.
    assert_eq!(rows_with(&mut admin, "sesame").await.len(), 2);
    assert_eq!(number(&mut admin, counts).await, 10, "its prompt is there");
    assert_eq!(number(&mut admin, started).await, 2);
    let queued = "select count(*) from jobs where state = 'queued'";
    assert_eq!(number(&mut admin, queued).await, 1);
    purge(&db, &twin, &of(&[Kind::Prompt])).await;
    assert_eq!(number(&mut admin, counts).await, 0);
    assert_eq!(number(&mut admin, started).await, 1);
    // Nothing is left to do, and to do it again changes nothing.
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let again = tx.scrub_sessions(&of(&Kind::ALL)).await;
    assert_eq!(again.expect("looked"), 0);
}

#[tokio::test]
async fn words_that_nobody_dated_are_as_old_as_their_session() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [prompt("what?"), turn_end("sesame")];
    record(&db.store, &twin, twin.member, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    // The session began at minute 0, and they arrived at minute 10,000.
    let dated = tx.expire_said(minute(10_000), 10).await;
    assert_eq!(dated.expect("expired"), 0);
    tx.commit().await.expect("commit");
    sqlx::query("update sessions set replied_at = null")
        .execute(&mut db.admin().await)
        .await
        .expect("undated");
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    assert_eq!(tx.expire_said(minute(0), 10).await.expect("expired"), 0);
    assert_eq!(tx.expire_said(minute(1), 10).await.expect("expired"), 1);
    assert_eq!(tx.expire_said(minute(1), 10).await.expect("expired"), 0);
}

#[tokio::test]
async fn a_claim_goes_with_the_entries_of_its_holder() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let holder = Holder::new(twin.member.key, "lin", String::new());
    let draft = claim(entry(
        "launch",
        1,
        json!({"task": "docs", "status": "doing"}),
    ));
    write_now(&db.store, &twin, twin.member, &holder, draft)
        .await
        .expect("claimed");
    let other = [entry("launch", 2, json!({"task": "docs", "n": 1}))];
    record(&db.store, &twin, twin.owner, &other).await;
    let mut admin = db.admin().await;
    let held = "select count(*) from work_items where holder is not null";
    assert_eq!(number(&mut admin, held).await, 1);
    purge(&db, &twin, &everything(Some(twin.member))).await;
    assert_eq!(number(&mut admin, held).await, 0);
    assert_eq!(
        number(&mut admin, "select count(*) from work_items").await,
        1
    );
    purge(&db, &twin, &everything(Some(twin.owner))).await;
    let left = "select (select count(*) from work_items) + (select count(*) from work_lists)";
    assert_eq!(number(&mut admin, left).await, 0);
}

#[tokio::test]
async fn what_is_over_its_time_goes_and_stays_away() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("kept"),
        prompt("old"),
        tool_use("old"),
        summary("old"),
        entry("old", 1, json!({"task": "old"})),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut admin = db.admin().await;
    let expire = async |kind, before: DateTime<Utc>| {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let gone = tx.expire(kind, before, 100, minute(20_000)).await;
        tx.commit().await.expect("commit");
        gone.expect("expired")
    };
    for kind in Kind::ALL {
        // They arrived at minute 10,000.
        assert_eq!(expire(kind, minute(10_000)).await, 0, "{kind:?}");
        if kind != Kind::Observation {
            assert_eq!(expire(kind, minute(10_001)).await, 1, "{kind:?}");
        }
    }
    let again = record(&db.store, &twin, twin.owner, &events[1..]).await;
    assert!(
        again
            .outcomes
            .iter()
            .all(|one| *one == EventOutcome::Deleted)
    );
    let left = rows_with(&mut admin, "old").await;
    assert_eq!(left, Vec::<String>::new());
    let kinds: Vec<i16> = sqlx::query_scalar("select kind from tombstones order by kind")
        .fetch_all(&mut admin)
        .await
        .expect("kinds");
    assert_eq!(kinds, [1, 2, 7], "tool uses leave none");
}

#[tokio::test]
async fn what_was_private_to_a_removed_member_goes_after_its_time() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("for the team"),
        private(observation("sesame")),
        prompt("sesame?"),
        private(tool_use("sesame")),
        tool_use("for the team"),
        turn_end("sesame it is"),
    ];
    record(&db.store, &twin, twin.member, &events).await;
    let mut admin = db.admin().await;
    let remove = "update members set removed_at = $1
        where (tenant_id, principal_id) = ($2, $3)";
    sqlx::query(remove)
        .bind(minute(0))
        .bind(twin.tenant.key())
        .bind(twin.member.key)
        .execute(&mut admin)
        .await
        .expect("removed");
    let expire = async |before| {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let gone = tx.expire_removed_members(before, 100, minute(9)).await;
        tx.commit().await.expect("commit");
        gone.expect("expired")
    };
    assert_eq!(expire(minute(0)).await, 0, "not yet");
    assert_eq!(expire(minute(1)).await, 3);
    assert_eq!(expire(minute(1)).await, 2, "a session and a job");
    assert_eq!(expire(minute(1)).await, 0);
    assert_eq!(rows_with(&mut admin, "sesame").await, Vec::<String>::new());
    assert_eq!(rows_with(&mut admin, "for the team").await.len(), 1);
    let unread = "select count(*) from members where private_gone_at is not null";
    assert_eq!(number(&mut admin, unread).await, 1);
}

#[tokio::test]
async fn the_audit_log_keeps_what_is_recent_whatever_is_set() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut admin = db.admin().await;
    sqlx::query("delete from audit")
        .execute(&mut admin)
        .await
        .expect("cleared");
    for days in [500, 45, 10] {
        sqlx::query(
            "insert into audit (tenant_id, at, action, target)
             values ($1, now() - make_interval(days => $2), 'x', $3)",
        )
        .bind(twin.tenant.key())
        .bind(days)
        .bind(days.to_string())
        .execute(&mut admin)
        .await
        .expect("a line");
    }
    let expire = async || {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let gone = tx.expire_audit(100).await.expect("expired");
        tx.commit().await.expect("commit");
        gone
    };
    let set = async |admin: &mut PgConnection, settings: &str| {
        sqlx::query("update tenants set settings = $1::jsonb where tenant_id = $2")
            .bind(settings)
            .bind(twin.tenant.key())
            .execute(admin)
            .await
            .expect("set");
    };
    set(&mut admin, r#"{"retention_days": {"audit": 0}}"#).await;
    assert_eq!(expire().await, 0, "for ever");
    set(&mut admin, r#"{"retention_days": {"audit": "1"}}"#).await;
    assert_eq!(expire().await, 1, "400 days if it says nothing");
    set(&mut admin, r#"{"retention_days": {"audit": 1}}"#).await;
    assert_eq!(expire().await, 1, "30 days at least");
    assert_eq!(number(&mut admin, "select count(*) from audit").await, 1);
}

#[tokio::test]
async fn the_log_of_work_loses_nothing_without_a_tombstone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[work_entry("l", "m", None)]).await;
    let mut app = PgConnection::connect(&db.app_url).await.expect("cairn_app");
    for tenant in [db.twins.0, db.twins.1] {
        sqlx::query("select set_config('app.tenant', $1, false)")
            .bind(tenant.tenant.key().to_string())
            .execute(&mut app)
            .await
            .expect("set");
        let drop = "select system_drop_work_entries(array(select generate_series(1, 50)))";
        assert_eq!(number(&mut app, drop).await, 0);
    }
}

#[tokio::test]
async fn a_deleted_tenant_leaves_no_row_and_the_other_every_one() {
    let db = TestDb::new().await;
    let (gone, stays) = db.twins;
    for twin in [gone, stays] {
        let events = [
            observation("one"),
            summary("one"),
            prompt("one"),
            tool_use("one"),
            turn_end("one"),
            session_end(),
            work_entry("one", "m", None),
        ];
        record(&db.store, &twin, twin.owner, &events).await;
        import(&db.store, &twin, "9", observation("from elsewhere")).await;
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        tx.delete_record(ids(&["1"])[0], &reader(twin.owner), false, minute(1))
            .await
            .expect("deleted");
        tx.commit().await.expect("commit");
    }
    let mut admin = db.admin().await;
    let before = by_tenant(&mut admin).await;
    let mut system = db.store.system("test").await.expect("begin");
    let name: String = sqlx::query_scalar("select name from tenants where tenant_id = $1")
        .bind(gone.tenant.key())
        .fetch_one(&mut admin)
        .await
        .expect("a name");
    let other = system
        .delete_tenant(gone.tenant, "another", minute(1))
        .await;
    assert!(!other.expect("answered"));
    let deleted = system
        .delete_tenant(gone.tenant, &name, DateTime::UNIX_EPOCH)
        .await;
    assert!(deleted.expect("deleted"));
    system.commit().await.expect("commit");
    let mut system = db.store.system("test").await.expect("begin");
    assert_eq!(system.find_tenant(&name).await.expect("find"), None);
    let again = system.delete_tenant(gone.tenant, &name, minute(1)).await;
    assert!(!again.expect("answered"));
    system.commit().await.expect("commit");
    loop {
        let mut system = db.store.system("test").await.expect("begin");
        let swept = system.sweep_deleted(3).await.expect("swept");
        system.commit().await.expect("commit");
        if swept == 0 {
            break;
        }
    }
    let after = by_tenant(&mut admin).await;
    for (place, count) in &before {
        let left = after.get(place).copied().unwrap_or_default();
        match place.1 == gone.tenant.key() {
            true => assert_eq!(left, 0, "{place:?}"),
            false => assert_eq!(left, *count, "{place:?}"),
        }
    }
    let tables: Vec<_> = before
        .keys()
        .filter(|(_, t)| *t == gone.tenant.key())
        .collect();
    assert!(tables.len() > 12, "{tables:?}");
}

/// Rows of each table and tenant.
async fn by_tenant(admin: &mut PgConnection) -> BTreeMap<(String, i32), i64> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class
         join pg_attribute on attrelid = pg_class.oid and attname = 'tenant_id'
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and not relispartition",
    )
    .fetch_all(&mut *admin)
    .await
    .expect("tables");
    let mut counts = BTreeMap::new();
    for table in tables {
        let sql = format!("select tenant_id, count(*) from {table} group by 1");
        let rows: Vec<(i32, i64)> = sqlx::query_as(AssertSqlSafe(sql))
            .fetch_all(&mut *admin)
            .await
            .expect("counts");
        for (tenant, count) in rows {
            counts.insert((table.clone(), tenant), count);
        }
    }
    counts
}
