//! Two tenants alike: every call of one, with everything it could know of the other, shows and
//! changes nothing of the other.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use cairn_domain::context::Selection;
use cairn_domain::filter::{ByAuthor, Filter};
use cairn_domain::ids::ToolUseId;
use cairn_domain::kind::Kind;
use cairn_domain::project::{Project, ProjectSet};
use cairn_domain::quota::Quota;
use cairn_domain::scope::Role;
use cairn_domain::text::{Held, SearchTerms, terms};
use cairn_store::StoreError;
use cairn_store::audit::AuditPick;
use cairn_store::changes::{Room, Whose};
use cairn_store::credentials::{KeyOwner, KeyScope, Noted};
use cairn_store::events::{EventOutcome, EventStatus};
use cairn_store::export::{ExportFilter, ExportSpan};
use cairn_store::grants::{Pick, Presented, Rotation};
use cairn_store::import::ImportedSession;
use cairn_store::jobs::{JobKind, NewJob};
use cairn_store::members::{Manager, MemberChange, MemberChanged};
use cairn_store::purge::{PurgeFilter, Purger, Span};
use cairn_store::records::{Deleted, Promoted};
use cairn_store::redact::{Rescan, Shelf};
use cairn_store::search::{Found, Question, Walk, Words};
use cairn_store::sessions::SessionPick;
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::tool_uses::EvidenceRead;
use cairn_store::usage::UsagePick;
use cairn_store::work_state::WorkPick;
use sqlx::PgConnection;
use support::*;
use uuid::Uuid;

/// Every method of `TenantTx`, each covered below. A new one is added here with its lines there.
const COVERED: &[&str] = &[
    "append_audit",
    "approve_device",
    "begin_grant",
    "change_member",
    "changes",
    "check_events",
    "clear_contexts",
    "commit",
    "context",
    "context_by_file",
    "context_revision",
    "context_totals",
    "count_members",
    "count_purge",
    "count_requests",
    "count_tokens",
    "count_words",
    "delete_browser_session",
    "delete_record",
    "delete_tool_use",
    "descent",
    "enqueue",
    "expire",
    "expire_audit",
    "expire_removed_members",
    "expire_said",
    "expire_usage",
    "export_records",
    "export_sessions",
    "export_tool_uses",
    "find_author",
    "find_authors",
    "find_browser_session",
    "find_member",
    "find_projects",
    "find_tool_uses",
    "find_work_entry",
    "get_listed",
    "get_member",
    "get_project",
    "get_project_family",
    "get_records",
    "get_rows",
    "get_session",
    "get_setting",
    "get_settings",
    "get_tenant_name",
    "has_refresh",
    "horizon",
    "horizon_of_changes",
    "import_sessions",
    "imported_tool_uses",
    "importer",
    "insert_authorization",
    "insert_browser_session",
    "insert_credential",
    "insert_credential_by",
    "insert_member",
    "insert_member_by",
    "insert_sign_in_code",
    "last_reply",
    "list_audit",
    "list_credentials",
    "list_family",
    "list_grants",
    "list_members",
    "list_projects",
    "list_projects_after",
    "list_sessions",
    "lock_authorization",
    "lock_settings",
    "member_to_sign_in",
    "merge_project",
    "newest_tool_uses",
    "newest_work_entry",
    "note",
    "observations_by_file",
    "promote_record",
    "purge_some",
    "reach_of_changes",
    "read_tool_uses",
    "record_events",
    "redact_stored",
    "redeem_sign_in_code",
    "reindex",
    "remove_member",
    "rename_project",
    "repeated_events",
    "require_quota",
    "require_tokens",
    "resolve_projects",
    "revoke_credential",
    "revoke_credential_by",
    "revoke_grant",
    "rotate_refresh",
    "save_settings",
    "scopes_in_force",
    "scrub_sessions",
    "search",
    "search_in_time",
    "searched_tool_uses",
    "set_quota",
    "surroundings",
    "tenant",
    "timeline",
    "touch_credential",
    "usage",
    "whole_span",
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
    let horizon = tx.horizon_of_changes().await.expect("its own");
    assert_eq!(horizon.latest, 2);
    for who in [me.owner, other.twin.owner] {
        for (reader, count) in [(reader(who), 2), (reader_of(who, theirs), 0)] {
            let room = Room {
                changes: 500,
                bytes: usize::MAX,
            };
            for whose in [Whose::Reader(&reader), Whose::Anybody] {
                let reach = tx.reach_of_changes().await.expect("its own");
                let found = tx.changes(reach, 0, room, whose).await.expect("its own");
                assert_eq!(found.told(&reader).count(), count);
                assert_eq!((found.next, found.horizon.latest), (2, 2));
            }
        }
    }
    let revision = tx.context_revision(theirs[0], theirs, &all).await;
    revision.expect_err("no such project");
    for who in [me.owner, other.twin.owner] {
        let reply = tx.last_reply(theirs, &reader(who), None).await;
        assert_eq!(reply.expect("answered"), None);
    }
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn usage_and_quotas_show_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut theirs = db
        .store
        .tenant(other.twin.tenant, "test")
        .await
        .expect("begin");
    theirs
        .set_quota(Quota::Members, Some(0), minute(0))
        .await
        .expect("set");
    // The day on which batches of tests arrive.
    let today = minute(10_000).date_naive();
    theirs
        .count_requests(&[(other.twin.owner, today, 7)])
        .await
        .expect("counted");
    theirs.commit().await.expect("commit");
    let mut admin = db.admin().await;
    let before = contents(&mut admin, &other.twin).await;

    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let pick = UsagePick {
        from: today,
        to: today,
        after: None,
        limit: 10,
    };
    let used = tx.usage(&pick).await.expect("usage");
    let told: Vec<_> = used
        .iter()
        .map(|u| (u.member.as_str(), u.requests, u.events))
        .collect();
    assert_eq!(told, [("ada", 0, 2)]);
    tx.require_quota(Quota::Members, 9)
        .await
        .expect("not theirs");
    tx.require_tokens(minute(0)).await.expect("not theirs");
    let theirs = observation("umbra secret");
    let mut known = theirs.clone();
    known.event_id = other.event;
    let known = prepared(&[theirs, known]);
    let told = tx.repeated_events(&batch(me.owner, &all(&known))).await;
    assert_eq!(told.expect("told"), [None, None]);
    // Another tenant's member is nobody here.
    tx.count_requests(&[(other.twin.owner, today, 1)])
        .await
        .expect("nothing to count");
    tx.count_tokens(me.owner, 5, minute(0))
        .await
        .expect("its own");
    tx.set_quota(Quota::Members, None, minute(0))
        .await
        .expect("its own");
    // All of its own, and no more.
    let gone = tx.expire_usage(today + chrono::Days::new(1), 100).await;
    assert!(gone.expect("expired") > 0);
    tx.commit().await.expect("commit");
    assert_eq!(contents(&mut admin, &other.twin).await, before);
}

#[tokio::test]
async fn management_shows_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    assert_eq!(tx.get_member("zoe").await.expect("find"), None);
    let members = tx.list_members(None, 10).await.expect("list");
    let handles: Vec<_> = members.iter().map(|member| &member.handle).collect();
    assert_eq!(handles, ["ada", "ben"]);
    assert_eq!(tx.count_members().await.expect("a count"), 2);
    for projects in [None, Some(&[other.project.id][..])] {
        let scope = KeyScope {
            owner: Some(other.twin.owner),
            projects,
        };
        let keys = tx.list_credentials(&scope, None, 10).await;
        assert_eq!(keys.expect("list"), []);
    }
    let keys = tx.list_credentials(&KeyScope::default(), None, 10).await;
    let keys: Vec<_> = keys.expect("list").into_iter().map(|k| k.key_id).collect();
    assert_eq!(keys, ["acme"]);
    let uuid = other.project.id.uuid;
    assert_eq!(tx.get_project(uuid).await.expect("find"), None);
    let found = tx.resolve_projects(&other.project.key, None).await;
    assert_eq!(found.expect("find"), []);
    let within = tx
        .resolve_projects("my-app", Some(&[other.project.id]))
        .await;
    assert_eq!(within.expect("find"), []);
    let family = tx.list_family(other.project.id).await;
    assert_eq!(family.expect("family"), []);
    let listed = tx
        .list_projects_after(None, Some(other.project.id), 10)
        .await;
    assert_eq!(listed.expect("list"), []);
    let listed = tx.list_projects_after(None, None, 10).await;
    assert_eq!(listed.expect("list").len(), 1);
    assert_eq!(tx.get_settings().await.expect("settings").tools, "core");
    let stored = tx.lock_settings().await.expect("settings");
    assert!(stored.is_empty(), "{stored:?}");
    let pick = AuditPick {
        limit: 100,
        ..AuditPick::default()
    };
    let lines = tx.list_audit(&pick).await.expect("lines");
    assert!(lines.iter().all(|line| !line.target.contains("umbra")));
    for who in [me.owner, other.twin.owner] {
        for (reader, sees) in [(reader(who), 1), (reader_of(who, &[other.project.id]), 0)] {
            let pick = SessionPick {
                evidence: true,
                limit: 10,
                ..SessionPick::default()
            };
            let sessions = tx.list_sessions(&pick, &reader).await.expect("list");
            assert_eq!(sessions.len(), sees);
            let session = other.session.to_string();
            let theirs = tx.get_session(&session, true, &reader).await;
            assert_eq!(theirs.expect("find"), None);
        }
    }
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn management_changes_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut admin = db.admin().await;
    let before = contents(&mut admin, &other.twin).await;
    let manager = Manager {
        actor: Some(me.owner),
        is_owner: true,
        now: minute(1),
    };
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let change = MemberChange {
        role: Some(Role::Reader),
        email: Some(Some("zoe@example.com")),
    };
    let changed = tx.change_member("zoe", &change, &manager).await;
    assert_eq!(changed.expect("answered"), MemberChanged::NotFound);
    let removed = tx.remove_member("zoe", &manager).await;
    assert_eq!(removed.expect("answered"), MemberChanged::NotFound);
    let email = Some("zoe@example.com");
    let added = tx.insert_member_by(Some(me.owner), "zoe", email, Role::Member, minute(1));
    added.await.expect("a handle of both");
    let removed = tx.remove_member("zoe", &manager).await;
    assert!(matches!(removed, Ok(MemberChanged::Done(_))), "{removed:?}");
    let theirs = sqlx::query_scalar("select uid from credentials where tenant_id = $1 limit 1")
        .bind(other.twin.tenant.key())
        .fetch_one(&mut admin);
    let theirs = theirs.await.expect("a key of theirs");
    let scopes = tx.scopes_in_force(theirs, minute(1)).await;
    assert_eq!(scopes.expect("answered"), None);
    let any = KeyScope::default();
    let revoked = tx.revoke_credential_by(Some(me.owner), "umbrakey", &any, minute(1));
    assert!(!revoked.await.expect("answered"));
    tx.insert_credential_by(Some(me.owner), &credential("minekey", me.owner))
        .await
        .expect("a key");
    let mut settings = tx.lock_settings().await.expect("settings");
    settings.insert("tools".to_owned(), "legacy".into());
    let tools = ["tools".to_owned()];
    tx.save_settings(&settings, &tools, None, minute(1))
        .await
        .expect("its own");
    let own = tx.find_projects("my-app").await.expect("find").remove(0);
    let own = own.project.id;
    tx.rename_project(own, "ours", None, minute(1))
        .await
        .expect("its own");
    tx.append_audit(None, "test", "umbra", serde_json::json!({}), minute(1))
        .await
        .expect("its own");
    tx.commit().await.expect("commit");
    for (project, into) in [(own, other.project.id), (other.project.id, own)] {
        let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
        tx.merge_project(project, into, None, minute(1))
            .await
            .expect_err("no such project");
        let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
        tx.rename_project(other.project.id, "ours", None, minute(1))
            .await
            .expect_err("no such project");
    }
    assert_eq!(contents(&mut admin, &other.twin).await, before);
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
async fn what_leaves_a_tenant_holds_nothing_of_the_other() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let span = tx.whole_span().await.expect("a span");
    // The project and its one record; beyond that are numbers of the other's.
    assert_eq!((span.positions.1, span.tool_uses.1), (2, 1));
    for who in [me.owner, other.twin.owner] {
        for author in [None, Some(other.twin.owner)] {
            let filter = ExportFilter {
                author,
                kinds: Kind::ALL.to_vec(),
            };
            let sees = usize::from(author.is_none());
            let all = reader(who);
            let sessions = tx.export_sessions(&filter, &all, true, 0, 100).await;
            assert_eq!(sessions.expect("read").rows.len(), sees);
            let tool_uses = tx.export_tool_uses(&filter, &all, (0, 100), 100).await;
            assert_eq!(tool_uses.expect("read").len(), sees);
            let span = ExportSpan {
                after: 0,
                upto: 100,
                arrived_before: None,
            };
            let records = tx.export_records(&filter, &all, span, 100).await;
            assert_eq!(records.expect("read").rows.len(), sees);
        }
    }
    assert_eq!(tx.find_author("zoe").await.expect("find"), None);
    let found = tx.find_authors(&["ada", "zoe"]).await.expect("find");
    assert_eq!(found.len(), 1);
    let their_numbers = tx.imported_tool_uses(Uuid::nil(), &[ToolUseId(7)]).await;
    assert_eq!(their_numbers.expect("find").len(), 0);
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn what_is_removed_leaves_the_other_tenant_as_it_was() {
    let db = TestDb::new().await;
    let (me, other) = fill(&db).await;
    let mut admin = db.admin().await;
    let before = contents(&mut admin, &other.twin).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let span = Span {
        positions: (0, 1_000),
        tool_uses: (0, 1_000),
    };
    let purger = Purger {
        actor: Some(me.owner),
        asked: "everything",
        at: minute(2),
    };
    for (author, projects, sees) in [
        (Some(other.twin.owner), ProjectSet::All, 0),
        (None, ProjectSet::Only(vec![other.project.id]), 0),
        (None, ProjectSet::All, 2),
    ] {
        let filter = PurgeFilter {
            projects,
            author,
            before: None,
            kinds: Kind::ALL.to_vec(),
        };
        let counted = tx.count_purge(&filter, span).await.expect("counted");
        let purged = tx.purge_some(&filter, span, purger).await.expect("purged");
        assert_eq!((counted, purged.total()), (purged, sees));
        let scrubbed = tx.scrub_sessions(&filter).await.expect("scrubbed");
        assert_eq!(scrubbed, u64::from(sees > 0));
    }
    for kind in Kind::ALL {
        let gone = tx.expire(kind, minute(1_000_000), 100, minute(2)).await;
        assert_eq!(gone.expect("expired"), 0, "all was purged");
    }
    let said = tx.expire_said(minute(1_000_000), 100).await;
    assert_eq!(said.expect("expired"), 0, "all was purged");
    let gone = tx.expire_removed_members(minute(1_000_000), 100, minute(2));
    assert_eq!(gone.await.expect("expired"), 0);
    tx.expire_audit(100).await.expect("its own");
    tx.importer(minute(2)).await.expect("its own");
    tx.note(Noted {
        actor: Some(me.owner),
        action: "export",
        target: "*",
        detail: serde_json::json!({}),
        at: minute(2),
    })
    .await
    .expect("noted");
    let session = ImportedSession {
        project: project("umbra"),
        host: "claude-code".to_owned(),
        id: "s-1".to_owned(),
        author: me.owner,
        started_at: minute(0),
        ended_at: None,
        end_reason: None,
        source: None,
        model: None,
    };
    // The other has one of this name in a project of this key.
    let made = tx.import_sessions(&[session]).await;
    assert_eq!(made.expect("made"), [true]);
    tx.commit().await.expect("commit");
    assert_eq!(contents(&mut admin, &other.twin).await, before);
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
            let promoted = tx.promote_record(id, &reader(who), minute(1)).await;
            assert_eq!(promoted.expect("answered"), Promoted::NotFound);
        }
    }
    let deleted = tx
        .delete_tool_use(ToolUseId(2), &reader(me.owner), true, minute(1))
        .await;
    assert_eq!(deleted.expect("answered"), Deleted::NotFound);
    let deleted = tx
        .delete_tool_use(ToolUseId(1), &reader(me.owner), true, minute(1))
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
async fn sign_in_shows_and_changes_nothing_of_the_other_tenant() {
    let db = TestDb::new().await;
    let (me, other) = db.twins;
    let mut tx = db.store.tenant(other.tenant, "test").await.expect("begin");
    let theirs = sign_in_of_all_kinds(&mut tx, other.owner, 7).await;
    tx.commit().await.expect("commit");
    let mut admin = db.admin().await;
    let before = contents(&mut admin, &other).await;
    let hash = |kind: u8| {
        let mut hash = [kind; 32];
        hash[..4].copy_from_slice(&7_i32.to_be_bytes());
        hash
    };

    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let nobody = tx.member_to_sign_in("zoe").await;
    assert_eq!(nobody.expect("answered"), None);
    let mine = tx.member_to_sign_in("ada").await.expect("answered");
    assert_eq!(mine.expect("there").member, me.owner);
    let found = tx.lock_authorization(hash(1)).await;
    assert_eq!(found.expect("answered"), None);
    for member in [None, Some(me.owner), Some(other.owner)] {
        let pick = Pick {
            member,
            before: None,
            limit: 10,
            now: minute(0),
        };
        assert_eq!(tx.list_grants(&pick).await.expect("listed"), []);
        let ended = tx.revoke_grant(theirs, member, Some(me.owner), minute(0));
        assert!(!ended.await.expect("answered"));
    }
    let shown = Presented {
        grant: theirs,
        client_id: "probe",
        hash: hash(2),
        salt: [0; 32],
        successor: [9; 32],
        now: minute(0),
    };
    let turned = tx.rotate_refresh(&shown).await;
    assert_eq!(turned.expect("answered"), Rotation::Refused);
    assert!(!tx.has_refresh(theirs, hash(2)).await.expect("answered"));
    let made_with = tx.descent(theirs, minute(0)).await;
    assert_eq!(made_with.expect("answered"), None);
    let code = tx.redeem_sign_in_code(hash(3), minute(0)).await;
    assert_eq!(code.expect("answered"), None);
    let session = tx.find_browser_session(hash(4), minute(0)).await;
    assert_eq!(session.expect("answered"), None);
    tx.delete_browser_session(hash(4)).await.expect("nothing");
    let scopes = Role::Owner.scopes();
    let device = tx.approve_device([8; 32], me.owner, scopes, minute(0));
    assert!(!device.await.expect("nobody waits"));
    // What is its own stands beside theirs.
    sign_in_of_all_kinds(&mut tx, me.owner, 8).await;
    tx.commit().await.expect("commit");
    assert_eq!(contents(&mut admin, &other).await, before);

    // Nobody of theirs can be signed in here, and none of their codes taken.
    for (member, number) in [(other.owner, 9), (me.owner, 7)] {
        let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
        let mut code = [1; 32];
        code[..4].copy_from_slice(&i32::to_be_bytes(number));
        let yes = approval(member, code);
        tx.insert_authorization(&yes).await.expect_err("refused");
    }
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let session = tx.insert_browser_session(other.owner, [6; 32], (minute(0), minute(1)));
    session.await.expect_err("another tenant's member");
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let code = tx.insert_sign_in_code((other.owner, "ada"), None, [6; 32], (minute(0), minute(1)));
    code.await.expect_err("another tenant's member");
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
    // What it says that it was made with, ends it here alone.
    let mut admin = db.admin().await;
    let before = contents(&mut admin, &other.twin).await;
    taken.parent = Some(other.key);
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    tx.insert_credential(&taken).await.expect("a key");
    assert_eq!(tx.descent(other.key, minute(0)).await.expect("told"), None);
    tx.revoke_credential("acmekey", minute(0))
        .await
        .expect("its own");
    tx.commit().await.expect("commit");
    assert_eq!(contents(&mut admin, &other.twin).await, before);

    taken.key_id = "acmekey2";
    taken.parent = None;
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
    tx.commit().await.expect("commit");
    import(
        &db.store,
        &twin,
        "T7",
        in_project("umbra", tool_use("umbra output")),
    )
    .await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
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
           and not relispartition and exists (select from pg_attribute a
             where a.attrelid = pg_class.oid and a.attname = 'tenant_id')
         order by 1",
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
