//! Merged projects: which families there are, what limited credentials go on seeing, and that no
//! context of before is served after.

mod support;

use cairn_domain::context::Selection;
use cairn_domain::ids::ProjectId;
use cairn_domain::project::ProjectSet;
use cairn_domain::text::terms;
use cairn_store::projects::Merged;
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::work_state::WorkPick;
use serde_json::json;
use support::*;

async fn id(db: &TestDb, name: &str) -> ProjectId {
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = tx.resolve_projects(name, None).await.expect("find");
    tx.commit().await.expect("commit");
    found[0].named.id
}

async fn merge(db: &TestDb, one: ProjectId, into: ProjectId) -> Merged {
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let merged = tx.merge_project(one, into, None, minute(1)).await;
    let merged = merged.expect("answered");
    tx.commit().await.expect("commit");
    merged
}

async fn family(db: &TestDb, of: ProjectId) -> Vec<ProjectId> {
    let twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let family = tx.get_project_family(of).await.expect("family");
    tx.commit().await.expect("commit");
    family
}

/// Three projects with an observation each.
async fn three(db: &TestDb) -> (Twin, [ProjectId; 3]) {
    let twin = db.twins.0;
    let events = ["a", "b", "c"].map(|name| in_project(name, observation(name)));
    record(&db.store, &twin, twin.owner, &events).await;
    (
        twin,
        [id(db, "a").await, id(db, "b").await, id(db, "c").await],
    )
}

fn sorted(mut ids: Vec<ProjectId>) -> Vec<ProjectId> {
    ids.sort_by_key(|id| id.uuid);
    ids
}

#[tokio::test]
async fn a_merge_of_a_merge_is_one_step_for_reads_and_keeps_what_limits_saw() {
    let db = TestDb::new().await;
    let (_, [a, b, c]) = three(&db).await;
    assert_eq!(merge(&db, a, a).await, Merged::Itself);
    assert_eq!(merge(&db, a, b).await, Merged::Done);
    assert_eq!(merge(&db, a, c).await, Merged::Already);
    assert_eq!(merge(&db, b, a).await, Merged::IntoMerged);
    assert_eq!(merge(&db, c, a).await, Merged::IntoMerged);
    assert_eq!(merge(&db, b, c).await, Merged::Done);
    assert_eq!(family(&db, c).await, sorted(vec![a, b, c]));
    assert_eq!(family(&db, b).await, sorted(vec![a, b]));
    assert_eq!(family(&db, a).await, [a]);
    let mut tx = db
        .store
        .tenant(db.twins.0.tenant, "test")
        .await
        .expect("begin");
    for text in ["a", "b", "c"] {
        let found = tx.resolve_projects(text, None).await.expect("find");
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].family.project.id, c);
        assert_eq!(found[0].family.members, sorted(vec![a, b, c]));
        assert_eq!(found[0].named.name, text);
        let within = tx.resolve_projects(text, Some(&[a])).await.expect("find");
        assert_eq!(within.len(), usize::from(text == "a"), "{text}");
    }
    let listed = tx.list_projects_after(None, None, 10).await.expect("list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].aliases.len(), 2);
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn a_change_of_a_project_takes_positions_without_a_gap() {
    let db = TestDb::new().await;
    let (twin, [a, b, c]) = three(&db).await;
    merge(&db, a, b).await;
    merge(&db, b, c).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.rename_project(a, "anew", None, minute(1))
        .await
        .expect("renamed");
    tx.commit().await.expect("commit");
    let mut admin = db.admin().await;
    let positions: Vec<i64> = sqlx::query_scalar(
        "select position from records where tenant_id = $1
         union all select position from projects where tenant_id = $1 order by 1",
    )
    .bind(twin.tenant.key())
    .fetch_all(&mut admin)
    .await
    .expect("positions");
    let last: i64 = sqlx::query_scalar("select position from tenant_counters where tenant_id = $1")
        .bind(twin.tenant.key())
        .fetch_one(&mut admin)
        .await
        .expect("a counter");
    // Three projects and three records; then `a`, then `b` with `a`, then `a`.
    assert_eq!(last, 10);
    let mut once = positions.clone();
    once.dedup();
    assert_eq!(once, positions, "no position stands twice");
    assert_eq!(positions.last(), Some(&10));
    let lines: Vec<String> = sqlx::query_scalar(
        "select action from audit where tenant_id = $1 and action like 'project.%'
         order by audit_id",
    )
    .bind(twin.tenant.key())
    .fetch_all(&mut admin)
    .await
    .expect("lines");
    assert_eq!(lines, ["project.merge", "project.merge", "project.rename"]);
}

#[tokio::test]
async fn two_merges_that_cross_leave_one() {
    let db = TestDb::new().await;
    let (twin, [a, b, _]) = three(&db).await;
    let mut first = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let merged = first.merge_project(a, b, None, minute(1)).await;
    assert_eq!(merged.expect("answered"), Merged::Done);
    let second = merge(&db, b, a);
    let commit = async {
        wait_until_blocked(&db).await;
        first.commit().await.expect("commit");
    };
    let (second, ()) = tokio::join!(second, commit);
    assert_eq!(second, Merged::IntoMerged);
}

/// A batch that found its project before a merge, and stored after it, is seen at once where the
/// project went.
#[tokio::test]
async fn what_is_written_while_a_project_is_merged_raises_where_it_went() {
    let db = TestDb::new().await;
    let (twin, [a, b, _]) = three(&db).await;
    let before = revision(&db, b).await;
    // The first one holds the counter; the second one has looked up its project and waits.
    let mut first = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let merged = first.merge_project(a, b, None, minute(1)).await;
    assert_eq!(merged.expect("answered"), Merged::Done);
    let events = [in_project("a", observation("meanwhile"))];
    let second = record(&db.store, &twin, twin.owner, &events);
    let commit = async {
        wait_until_blocked(&db).await;
        first.commit().await.expect("commit");
    };
    tokio::join!(second, commit);
    assert_eq!(revision(&db, b).await, before + 2);
}

async fn revision(db: &TestDb, project: ProjectId) -> i64 {
    sqlx::query_scalar("select context_revision from projects where project_id = $1")
        .bind(project.key)
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a revision")
}

#[tokio::test]
async fn reads_of_a_family_cover_it_and_those_of_a_limit_no_more_than_it_saw() {
    let db = TestDb::new().await;
    let (twin, [a, b, c]) = three(&db).await;
    let todo = |name: &str| {
        let fields = json!({"task": format!("task of {name}"), "status": "todo"});
        in_project(name, entry("release", 1, fields))
    };
    let lists = [todo("a"), todo("b")];
    record(&db.store, &twin, twin.owner, &lists).await;
    merge(&db, a, b).await;
    let pick = Selection {
        observations: 50,
        summaries: 10,
        ..Selection::default()
    };
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    for (project, limit, titles) in [
        (b, family(&db, b).await, vec!["b", "a"]),
        (a, family(&db, a).await, vec!["a"]),
        (c, family(&db, c).await, vec!["c"]),
    ] {
        let reader = reader_of(twin.owner, &limit);
        let (rows, _) = tx
            .context(project, &limit, &reader, &pick)
            .await
            .expect("context");
        let shown: Vec<&str> = rows.observations.iter().map(|o| o.title.as_str()).collect();
        assert_eq!(shown, titles);
        let totals = tx.context_totals(&limit, &reader).await.expect("totals");
        assert_eq!(totals.observations, titles.len() as u64);
        let all = terms("pool");
        let found = search_index(&mut tx, &all, &reader, 20).await;
        assert_eq!(found.expect("search").len(), titles.len());
        // Around a record stands what the reader sees of its family.
        let around = tx.timeline(&ids(&["1"]), 3, 3, &reader).await;
        let around = around.expect("timeline").remove(0).len();
        assert_eq!(
            around,
            if titles.contains(&"a") {
                titles.len()
            } else {
                0
            }
        );
        let projects = ProjectSet::Only(limit);
        let pick = WorkPick {
            projects: &projects,
            project: Some(project),
            list: Some("release"),
            closed: false,
        };
        let state = tx.work_state(pick).await.expect("lists");
        let mut shown: Vec<Option<&str>> =
            state.lists.iter().map(|l| l.project.as_deref()).collect();
        shown.sort_unstable();
        let wanted: &[Option<&str>] = match titles.len() {
            2 => &[None, Some("a")],
            _ if titles == ["a"] => &[None],
            _ => &[],
        };
        assert_eq!(shown, wanted);
    }
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn words_are_counted_for_each_and_ranked_over_the_family() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let alike = |name: &'static str| {
        let events: Vec<_> = (0..200)
            .map(|n| in_project(name, observation(&format!("common {name} {n}"))))
            .collect();
        events
    };
    for name in ["old", "new"] {
        record(&db.store, &twin, twin.owner, &alike(name)).await;
    }
    let rare = [
        in_project("old", observation("common quokka")),
        in_project("new", observation("common wombat")),
    ];
    record(&db.store, &twin, twin.owner, &rare).await;
    let (old, new) = (id(&db, "old").await, id(&db, "new").await);
    merge(&db, old, new).await;
    let members = family(&db, new).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    assert!(tx.count_words(old).await.expect("counted"));
    assert!(tx.count_words(new).await.expect("counted"));
    for (word, title) in [("quokka", "common quokka"), ("wombat", "common wombat")] {
        let query = terms(&format!("common {word}"));
        let reader = reader_of(twin.owner, &members);
        let found = search_index(&mut tx, &query, &reader, 5).await;
        let found = found.expect("search");
        assert_eq!(found[0].title, title);
        let reader = reader_of(twin.owner, &[old]);
        let found = search_index(&mut tx, &query, &reader, 5).await;
        let found = found.expect("search");
        assert!(found.iter().all(|row| row.project.id == old));
    }
    tx.commit().await.expect("commit");
}
