//! Two tenants alike: every call of one, with everything it could know of the other, shows and
//! changes nothing of the other.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use cairn_domain::context::Selection;
use cairn_domain::filter::{ByAuthor, Filter};
use cairn_domain::ids::ToolUseId;
use cairn_domain::project::{Project, ProjectSet};
use cairn_domain::scope::Role;
use cairn_domain::text::{Held, SearchTerms, terms};
use cairn_store::StoreError;
use cairn_store::credentials::KeyOwner;
use cairn_store::events::{EventOutcome, EventStatus};
use cairn_store::jobs::{JobKind, NewJob};
use cairn_store::records::{Deleted, Promoted};
use cairn_store::redact::{Rescan, Shelf};
use cairn_store::search::{Found, Question, Walk, Words};
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::tool_uses::EvidenceRead;
use cairn_store::work_state::WorkPick;
use sqlx::PgConnection;
use support::*;
use uuid::Uuid;

/// Every method of `TenantTx`, each covered below. A new one is added here with its lines there.
const COVERED: [&str; 44] = [
    "check_events",
    "clear_contexts",
    "commit",
    "context",
    "context_by_file",
    "context_revision",
    "context_totals",
    "count_words",
    "delete_record",
    "delete_tool_use",
    "enqueue",
    "find_member",
    "find_projects",
    "find_tool_uses",
    "find_work_entry",
    "get_listed",
    "get_project_family",
    "get_records",
    "get_rows",
    "get_setting",
    "get_tenant_name",
    "horizon",
    "insert_credential",
    "insert_member",
    "last_reply",
    "list_projects",
    "newest_tool_uses",
    "newest_work_entry",
    "observations_by_file",
    "promote_record",
    "read_tool_uses",
    "record_events",
    "redact_stored",
    "reindex",
    "revoke_credential",
    "search",
    "search_in_time",
    "searched_tool_uses",
    "surroundings",
    "timeline",
    "touch_credential",
    "tenant",
    "work_history",
    "work_state",
];

#[test]
fn no_method_is_left_out() {
    let mut found = BTreeSet::new();
    methods(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert_eq!(
        found,
        COVERED.iter().map(|name| (*name).to_owned()).collect()
    );
}

/// Public methods in `impl TenantTx` blocks below a folder.
fn methods(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            methods(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source");
        let mut inside = false;
        for line in source.lines() {
            inside = match line {
                "impl TenantTx {" => true,
                "}" => false,
                _ => inside,
            };
            let declared = line
                .strip_prefix("    pub async fn ")
                .or_else(|| line.strip_prefix("    pub const fn "))
                .or_else(|| line.strip_prefix("    pub fn "));
            if let (true, Some(declared)) = (inside, declared) {
                let name = declared.split(['(', '<']).next().expect("a name");
                found.insert(name.to_owned());
            }
        }
    }
}

/// The second twin, with content of its own beside what both have, and all its names.
struct Other {
    twin: Twin,
    project: Project,
    session: Uuid,
    event: Uuid,
    entry: Uuid,
    key: Uuid,
}

#[tokio::test]
async fn reads_show_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let all = reader(me.owner);
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    assert_eq!(tx.tenant(), me.tenant);
    assert_eq!(tx.get_tenant_name().await.expect("a name"), "acme");
    let setting = tx.get_setting("tools").await;
    assert_eq!(setting.expect("answered"), None);

    assert_eq!(tx.find_member("zoe").await.expect("find"), None);
    for text in [
        other.project.id.uuid.to_string(),
        other.project.key.clone(),
        other.project.name.clone(),
    ] {
        assert_eq!(tx.find_projects(&text).await.expect("find"), [], "{text}");
    }
    let names: Vec<String> = tx
        .list_projects()
        .await
        .expect("list")
        .into_iter()
        .map(|project| project.name)
        .collect();
    assert_eq!(names, ["my-app"]);
    let family = tx.get_project_family(other.project.id).await;
    assert_eq!(family.expect("family"), []);

    let checked = tx.check_events(&[other.event], &reader(me.owner)).await;
    assert_eq!(checked.expect("checked")[0].status, EventStatus::Unknown);
    // Even as the other's principal, by number.
    let checked = tx
        .check_events(&[other.event], &reader(other.twin.owner))
        .await;
    assert_eq!(checked.expect("checked")[0].status, EventStatus::Unknown);

    let query = terms("umbra");
    for who in [me.owner, other.twin.owner] {
        for reader in [reader(who), reader_of(who, &[other.project.id])] {
            let rows = search_index(&mut tx, &query, &reader, 20)
                .await
                .expect("search");
            assert_eq!(rows, []);
        }
    }
    let everything = Filter::default();
    for words in [Words::Rarest, Words::All, Words::Any] {
        let question = Question {
            words,
            ..Question::new(&query, &everything)
        };
        let found = tx.search(&question, &all).await.expect("search");
        assert_eq!(found, Found::default());
    }
    let by_them = Filter {
        author: Some(ByAuthor::Named("ada".to_owned())),
        ..Filter::default()
    };
    let common = terms("common");
    let question = Question::new(&common, &by_them);
    let found = tx.search(&question, &all).await.expect("search");
    assert_eq!(found.matches, 1);
    let horizon = tx.horizon().await.expect("its own");
    assert_eq!(<[i64; 3]>::from(horizon), [1, 0, 0]);
    // Nothing of theirs is counted or built anew.
    assert_eq!(tx.reindex(100).await.expect("reindexed"), 0);
    for shelf in Shelf::ALL {
        let rescan = Rescan {
            shelf,
            after: None,
            most: 100,
            all: true,
            now: minute(1),
        };
        let seen = tx.redact_stored(rescan).await.expect("read again").seen;
        assert!(seen <= 3, "{shelf:?}: {seen}");
    }
    assert!(tx.count_words(other.project.id).await.expect("counted"));
    let common = search_index(&mut tx, &terms("common"), &all, 20).await;
    assert_eq!(common.expect("search").len(), 1);

    let file = "src/net/retry.ts".to_owned();
    for who in [me.owner, other.twin.owner] {
        for (reader, count) in [(reader(who), 1), (reader_of(who, &[other.project.id]), 0)] {
            let page = Walk {
                limit: 20,
                ..Walk::default()
            };
            let nothing = SearchTerms::default();
            let question = Question::new(&nothing, &everything);
            let listed = tx.search_in_time(&question, &page, &reader).await;
            assert_eq!(listed.expect("list").len(), count);
            let theirs = ids(&["1", "2", "3", "S1", "P1"]);
            let listed = tx.get_listed(&theirs, &reader).await;
            assert_eq!(listed.expect("list").len(), count);
            let paths = std::slice::from_ref(&file);
            let about = tx.observations_by_file(paths, 20, &reader).await;
            assert_eq!(about.expect("by file").len(), count);
        }
    }

    // Numbers that only the other tenant has.
    let theirs = ids(&["2", "S1", "P1"]);
    assert_eq!(tx.get_records(&theirs, &all).await.expect("read"), []);
    assert_eq!(tx.get_rows(&theirs, &all).await.expect("read"), []);
    let timelines = tx.timeline(&theirs, 3, 3, &all).await.expect("timeline");
    assert!(timelines.iter().all(Vec::is_empty));
    for id in theirs {
        let around = tx.surroundings(id, 3, 3, &all).await;
        assert_eq!(around.expect("answered"), []);
    }
    // Numbers that both have: mine, and nothing around it.
    let mine = tx.timeline(&ids(&["1"]), 3, 3, &all).await.expect("mine");
    assert_eq!(mine[0].len(), 1);
    let pick = Selection {
        observations: 50,
        summaries: 10,
        ..Selection::default()
    };
    let theirs = &[other.project.id];
    let context = tx.context(theirs[0], theirs, &all, &pick).await;
    assert_eq!(context.expect("context"), Default::default());
    let by_file = tx.context_by_file(theirs, &all, &pick, None).await;
    assert_eq!(by_file.expect("rows"), []);
    let totals = tx.context_totals(theirs, &all).await;
    assert_eq!(totals.expect("totals"), Default::default());
    let revision = tx.context_revision(theirs[0], theirs, &all).await;
    revision.expect_err("no such project");
    for who in [me.owner, other.twin.owner] {
        let reply = tx.last_reply(theirs, &reader(who), None).await;
        assert_eq!(reply.expect("answered"), None);
    }
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn work_lists_show_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    for projects in [ProjectSet::All, ProjectSet::Only(vec![other.project.id])] {
        let pick = WorkPick {
            projects: &projects,
            project: None,
            list: None,
            closed: true,
        };
        assert_eq!(tx.work_state(pick).await.expect("read"), Default::default());
        assert_eq!(tx.newest_work_entry(&projects).await.expect("read"), None);
        let history = tx.work_history(&projects, None, None, 10).await;
        assert_eq!(history.expect("read"), []);
    }
    assert_eq!(tx.find_work_entry(other.entry).await.expect("find"), None);
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn evidence_shows_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    // A number of theirs alone, one that both have, and the id that both hosts gave.
    let names = ["T2", "1", "tu_9"].map(|text| text.parse().expect("a name"));
    let read = EvidenceRead {
        at: minute(1),
        detail: serde_json::json!({}),
    };
    for who in [me.owner, other.twin.owner] {
        let found = tx.find_tool_uses(&names, &reader(who)).await.expect("find");
        assert_eq!(
            found.iter().map(|found| found.id.0).collect::<Vec<_>>(),
            [1]
        );
        let elsewhere = reader_of(who, &[other.project.id]);
        let found = tx.find_tool_uses(&names, &elsewhere).await;
        assert_eq!(found.expect("find"), []);
        let read = tx
            .read_tool_uses(&[ToolUseId(2)], &reader(who), &read)
            .await;
        assert_eq!(read.expect("read").len(), 0);
    }
    for who in [me.owner, other.twin.owner] {
        for (reader, sees) in [(reader(who), 1), (reader_of(who, &[other.project.id]), 0)] {
            let everything = Filter::default();
            let newest = tx.newest_tool_uses(&everything, None, &reader, &read);
            assert_eq!(newest.await.expect("found").listed.len(), sees);
            let both = [ToolUseId(1), ToolUseId(2)];
            let texts = tx.searched_tool_uses(&both, &reader).await.expect("read");
            assert_eq!(texts.len(), sees);
            let umbra = texts
                .iter()
                .map(|one| one.holds(&terms("umbra")).expect("looked"));
            assert!(umbra.into_iter().all(|held| held == Held::Nothing));
        }
    }
    let mine = tx
        .read_tool_uses(&[ToolUseId(1)], &reader(me.owner), &read)
        .await;
    let mine = mine.expect("read").remove(0).unpack().expect("unpacked");
    assert_eq!(mine.call.output.text, "common");
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn writes_change_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut admin = db.admin().await;
    let before = contents(&mut admin, &other.twin).await;

    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let mut same_id = observation("mine now");
    same_id.event_id = other.event;
    let recorded = tx
        .record_events(&batch(me.owner, &all(&prepared(&[same_id]))))
        .await
        .expect("recorded");
    assert_eq!(
        recorded.outcomes,
        [EventOutcome::Stored {
            id: Some("2".to_owned())
        }]
    );
    for id in ids(&["3", "S1", "P1"]) {
        let deleted = tx
            .delete_record(id, &reader(me.owner), true, minute(1))
            .await;
        assert_eq!(deleted.expect("answered"), Deleted::NotFound);
        for who in [me.owner, other.twin.owner] {
            let promoted = tx.promote_record(id, &reader(who)).await;
            assert_eq!(promoted.expect("answered"), Promoted::NotFound);
        }
    }
    let deleted = tx
        .delete_tool_use(ToolUseId(2), &reader(me.owner), true)
        .await;
    assert_eq!(deleted.expect("answered"), Deleted::NotFound);
    let deleted = tx
        .delete_tool_use(ToolUseId(1), &reader(me.owner), true)
        .await;
    assert_eq!(deleted.expect("answered"), Deleted::Done, "its own");
    tx.insert_member("zoe", None, Role::Reader, minute(1))
        .await
        .expect("a handle of both");
    assert!(
        !tx.revoke_credential("umbrakey", minute(1))
            .await
            .expect("answered")
    );
    tx.touch_credential(other.key, minute(1))
        .await
        .expect("nothing to touch");
    tx.clear_contexts().await.expect("its own");
    tx.enqueue(NewJob {
        kind: JobKind::Observe,
        payload: serde_json::json!({}),
        session: Some(other.session),
        run_after: minute(1),
    })
    .await
    .expect("queued");
    tx.commit().await.expect("commit");

    assert_eq!(contents(&mut admin, &other.twin).await, before);
    let strays: i64 = sqlx::query_scalar(
        "select count(*) from jobs where tenant_id = $1 and session_id is not null",
    )
    .bind(me.tenant.key())
    .fetch_one(&mut admin)
    .await
    .expect("a count");
    assert_eq!(strays, 0);
}

#[tokio::test]
async fn a_key_can_name_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut taken = credential("umbrakey", me.owner);
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let refused = tx.insert_credential(&taken).await.expect_err("taken");
    assert!(matches!(refused, StoreError::Conflict(_)), "{refused:?}");

    taken.key_id = "acmekey";
    taken.project = Some(other.project.id);
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.insert_credential(&taken)
        .await
        .expect_err("another tenant's project");

    taken.project = None;
    taken.owner = KeyOwner::Member(other.twin.owner);
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.insert_credential(&taken)
        .await
        .expect_err("another tenant's member");
}

async fn fill(db: &TestDb) -> (Twin, Other) {
    let (me, twin) = db.twins;
    let mine = [observation("common"), tool_use("common")];
    record(&db.store, &me, me.owner, &mine).await;
    let theirs = [
        observation("common"),
        in_project("umbra", observation("umbra secret")),
        private(in_project("umbra", summary("umbra summary"))),
        in_project("umbra", prompt("umbra prompt")),
        in_project("umbra", turn_end("umbra reply")),
        in_project("umbra", observation("umbra again")),
        in_project(
            "umbra",
            entry("umbra", 1, serde_json::json!({"task": "umbra"})),
        ),
        tool_use("umbra output"),
        in_project("umbra", tool_use("umbra output")),
    ];
    record(&db.store, &twin, twin.owner, &theirs).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.insert_member("zoe", None, Role::Member, minute(0))
        .await
        .expect("a member");
    tx.insert_credential(&credential("umbrakey", twin.owner))
        .await
        .expect("a key");
    let project = tx
        .find_projects("umbra")
        .await
        .expect("find")
        .remove(0)
        .project;
    tx.commit().await.expect("commit");
    let mut admin = db.admin().await;
    sqlx::query("update tenants set settings = '{\"tools\":\"umbra\"}' where tenant_id = $1")
        .bind(twin.tenant.key())
        .execute(&mut admin)
        .await
        .expect("a setting");
    let session = scalar(
        &mut admin,
        "select uid from sessions where tenant_id = $1 and project_id
         = (select project_id from projects where tenant_id = $1 and name = 'umbra')",
        &twin,
    )
    .await;
    let key = scalar(
        &mut admin,
        "select uid from credentials where tenant_id = $1 and key_id = 'umbrakey'",
        &twin,
    )
    .await;
    let other = Other {
        twin,
        project,
        session,
        event: theirs[1].event_id,
        entry: theirs[6].event_id,
        key,
    };
    (me, other)
}

async fn scalar(admin: &mut PgConnection, sql: &'static str, twin: &Twin) -> Uuid {
    sqlx::query_scalar(sql)
        .bind(twin.tenant.key())
        .fetch_one(admin)
        .await
        .expect("a value")
}

/// Every row of a tenant, in every table, as text.
async fn contents(admin: &mut PgConnection, twin: &Twin) -> Vec<String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and not relispartition and relname <> '_sqlx_migrations' order by 1",
    )
    .fetch_all(&mut *admin)
    .await
    .expect("tables");
    let mut contents = Vec::new();
    for table in tables {
        let rows = format!("select '{table} ' || t::text from {table} t where tenant_id = $1");
        let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(rows))
            .bind(twin.tenant.key())
            .fetch_all(&mut *admin)
            .await
            .expect("rows");
        contents.extend(rows);
    }
    contents.sort();
    assert!(contents.len() > 10);
    contents
}
