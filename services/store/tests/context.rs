//! The rows of a session-start context: which are chosen, for whom, and in which order.

mod support;

use cairn_domain::context::{ContextRows, Selection};
use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::ids::{PrincipalId, ProjectId};
use cairn_domain::observation::{Concept, ObservationType};
use cairn_store::records::Deleted;
use cairn_store::test_util::{TestDb, Twin};
use support::*;

const FEW: Selection = Selection {
    observations: 3,
    summaries: 2,
    full: 0,
    types: Vec::new(),
    concepts: Vec::new(),
    main_agent_only: true,
};

#[tokio::test]
async fn the_newest_by_event_time_are_chosen() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut events: Vec<_> = [5, 1, 4, 2, 3].map(|n| at(n, observation("x"))).to_vec();
    events.extend([3, 1, 2].map(|n| at(n, summary("y"))));
    record(&db.store, &twin, twin.owner, &events).await;
    let rows = context(&db, &twin, twin.owner, &["my-app"], &FEW).await;
    assert_eq!(numbers(&rows), ([1, 3, 5].to_vec(), [1, 3].to_vec()));
    let newest = &rows.observations[0];
    assert_eq!((newest.at, newest.author.as_str()), (minute(5), "ada"));
    assert_eq!(newest.kind, ObservationType::Bugfix);
    assert_eq!(newest.work_tokens, 1_800);
    let summary = &rows.summaries[0];
    assert_eq!(summary.fields.request, "y");
    assert_eq!(summary.fields.learned, "signing is synchronous");
    // The session began with its first event.
    assert_eq!(summary.session_started_at, minute(5));
}

#[tokio::test]
async fn types_concepts_and_subagents_are_filtered_before_the_limit() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut events: Vec<EventDraft> = (0..8).map(|n| at(n, observation("x"))).collect();
    edit(&mut events[0], |own| own.kind = ObservationType::Decision);
    edit(&mut events[1], |own| {
        own.concepts = vec![Concept::Gotcha, Concept::Pattern];
    });
    events[2].agent_id = Some("a-1".to_owned());
    events[2].agent_type = Some("explore".to_owned());
    // An id without a type is the main agent's.
    events[3].agent_id = Some("a-1".to_owned());
    record(&db.store, &twin, twin.owner, &events).await;
    let chosen = async |pick: Selection| {
        let rows = context(&db, &twin, twin.owner, &["my-app"], &pick).await;
        numbers(&rows).0
    };
    let all = Selection {
        observations: 50,
        ..FEW
    };
    assert_eq!(chosen(all.clone()).await, [8, 7, 6, 5, 4, 2, 1]);
    let with_subagents = Selection {
        main_agent_only: false,
        ..all.clone()
    };
    assert_eq!(chosen(with_subagents).await.len(), 8);
    let decisions = Selection {
        types: vec![ObservationType::Decision],
        ..FEW
    };
    assert_eq!(chosen(decisions).await, [1]);
    let traps = Selection {
        concepts: vec![Concept::TradeOff, Concept::Gotcha],
        ..FEW
    };
    assert_eq!(chosen(traps).await, [2]);
    let none = Selection::default();
    assert!(chosen(none).await.is_empty());
}

#[tokio::test]
async fn private_rows_are_for_their_author_alone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        private(observation("x")),
        observation("x"),
        private(summary("x")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mine = context(&db, &twin, twin.owner, &["my-app"], &FEW).await;
    assert_eq!(numbers(&mine), (vec![2, 1], vec![1]));
    let theirs = context(&db, &twin, twin.member, &["my-app"], &FEW).await;
    assert_eq!(numbers(&theirs), (vec![2], vec![]));
}

#[tokio::test]
async fn a_family_is_read_as_one_and_others_not_at_all() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        at(1, in_project("a", observation("x"))),
        at(2, in_project("b", observation("x"))),
        at(3, in_project("a", observation("x"))),
        at(4, in_project("c", observation("x"))),
        at(5, in_project("b", observation("x"))),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let rows = context(&db, &twin, twin.owner, &["a", "b"], &FEW).await;
    assert_eq!(numbers(&rows).0, [5, 3, 2]);
    let rows = context(&db, &twin, twin.owner, &[], &FEW).await;
    assert_eq!(rows, ContextRows::default());
}

#[tokio::test]
async fn a_merged_project_answers_as_its_target_and_raises_its_revision() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        in_project("new", observation("x")),
        in_project("old", observation("x")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    sqlx::query(
        "update projects p set merged_into = t.project_id from projects t
         where p.name = 'old' and t.name = 'new'",
    )
    .execute(&mut db.admin().await)
    .await
    .expect("merged");
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let target = tx.find_projects("new").await.expect("find").remove(0);
    for alias in ["old", "GIT:git.example.com/acme/OLD"] {
        assert_eq!(
            tx.find_projects(alias).await.expect("find"),
            std::slice::from_ref(&target)
        );
    }
    let family = &target.members;
    assert_eq!(family.len(), 2);
    assert!(family[0].uuid < family[1].uuid);
    let known = tx.get_project_family(target.project.id).await;
    assert_eq!(known.expect("family"), *family);
    assert_eq!(tx.list_projects().await.expect("list"), [target.project]);
    tx.commit().await.expect("commit");

    record(
        &db.store,
        &twin,
        twin.owner,
        &[in_project("old", observation("x"))],
    )
    .await;
    let revision: i64 =
        sqlx::query_scalar("select context_revision from projects where name = 'new'")
            .fetch_one(&mut db.admin().await)
            .await
            .expect("a revision");
    assert_eq!(revision, 2);
}

#[tokio::test]
async fn c059_two_repositories_of_one_name_are_two_projects() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut events = [in_project("web", observation("x")), observation("y")];
    events[1].project = cairn_domain::project::ProjectKey {
        key: "git:git.example.com/other/web".to_owned(),
        name: "Web".to_owned(),
    };
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let named = tx.find_projects("WEB").await.expect("find");
    assert_eq!(named.len(), 2);
    let one = tx.find_projects(&named[0].project.key).await.expect("find");
    assert_eq!(one, named[..1]);
    let one = tx
        .find_projects(&named[1].project.id.uuid.to_string())
        .await;
    assert_eq!(one.expect("find"), named[1..]);
}

fn edit(
    draft: &mut EventDraft,
    change: impl FnOnce(&mut cairn_domain::observation::ObservationDraft),
) {
    match &mut draft.body {
        EventBody::Observation(own) => change(own),
        _ => panic!("an observation"),
    }
}

fn numbers(rows: &ContextRows) -> (Vec<i64>, Vec<i64>) {
    (
        rows.observations.iter().map(|row| row.number).collect(),
        rows.summaries.iter().map(|row| row.number).collect(),
    )
}

async fn context(
    db: &TestDb,
    twin: &Twin,
    who: PrincipalId,
    names: &[&str],
    pick: &Selection,
) -> ContextRows {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let mut projects: Vec<ProjectId> = Vec::new();
    for name in names {
        projects.push(tx.find_projects(name).await.expect("find")[0].project.id);
    }
    let Some(project) = projects.first().copied() else {
        return ContextRows::default();
    };
    let read = tx.context(project, &projects, &reader(who), pick).await;
    read.expect("context").0
}

#[tokio::test]
async fn only_the_newest_come_with_their_texts() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events: Vec<_> = (0..3).map(|n| at(n, observation("x"))).collect();
    record(&db.store, &twin, twin.owner, &events).await;
    let pick = Selection { full: 2, ..FEW };
    let rows = context(&db, &twin, twin.owner, &["my-app"], &pick).await;
    let texts: Vec<_> = rows
        .observations
        .iter()
        .map(|row| (row.narrative.is_some(), row.facts.as_ref().map(Vec::len)))
        .collect();
    assert_eq!(texts, [(true, Some(2)), (true, Some(2)), (false, None)]);
}

#[tokio::test]
async fn each_write_that_shows_raises_its_projects_revision_and_no_others() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(
        &db.store,
        &twin,
        twin.owner,
        &[observation("x"), in_project("other", observation("x"))],
    )
    .await;
    let (mine, other) = (
        project_id(&db, "my-app").await,
        project_id(&db, "other").await,
    );
    let stands = async || {
        let wanted = [(twin.tenant, mine), (twin.tenant, other)];
        let revisions = db.store.context_revisions(&wanted).await.expect("answered");
        let raised = |at: usize| revisions[at].expect("a revision").project;
        (raised(0), raised(1))
    };
    assert_eq!(stands().await, (1, 1));
    for shown in [
        summary("x"),
        private(observation("x")),
        entry("l", 1, serde_json::json!({"n": 1})),
    ] {
        let before = stands().await;
        record(&db.store, &twin, twin.owner, &[shown]).await;
        assert_eq!(stands().await, (before.0 + 1, before.1));
    }
    let before = stands().await;
    let unseen = [prompt("x"), tool_use("x"), turn_end("x"), session_end()];
    record(&db.store, &twin, twin.owner, &unseen).await;
    assert_eq!(stands().await, before);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let deleted = tx
        .delete_record(ids(&["1"])[0], &reader(twin.owner), false, minute(1))
        .await;
    assert_eq!(deleted.expect("answered"), Deleted::Done);
    tx.commit().await.expect("commit");
    assert_eq!(stands().await, (before.0 + 1, before.1));
}

#[tokio::test]
async fn a_revision_is_told_for_the_right_tenant_alone() {
    let db = TestDb::new().await;
    let (twin, other) = db.twins;
    record(&db.store, &twin, twin.owner, &[observation("x")]).await;
    let mine = project_id(&db, "my-app").await;
    let wanted = [(other.tenant, mine), (twin.tenant, mine)];
    let told = db.store.context_revisions(&wanted).await.expect("answered");
    assert_eq!(told[0], None);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let reader = reader(twin.owner);
    let (revision, _) = tx
        .context_revision(mine, &[mine], &reader)
        .await
        .expect("read");
    assert_eq!(told[1], Some(revision));
    tx.clear_contexts().await.expect("cleared");
    tx.commit().await.expect("commit");
    let told = db.store.context_revisions(&wanted[1..]).await;
    let cleared = told.expect("answered")[0].expect("a revision");
    assert_eq!(
        (cleared.project, cleared.settings),
        (revision.project, revision.settings + 1)
    );
}

#[tokio::test]
async fn authors_of_private_records_see_a_context_of_their_own() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [private(observation("x")), observation("x")];
    record(&db.store, &twin, twin.owner, &events).await;
    let mine = project_id(&db, "my-app").await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    for (who, own) in [(twin.owner, true), (twin.member, false)] {
        let read = tx.context_revision(mine, &[mine], &reader(who)).await;
        assert_eq!(read.expect("read").1, own);
    }
}

#[tokio::test]
async fn the_last_reply_is_the_readers_own_and_of_another_session() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let said = |session: &str, minutes, reply| in_session(session, at(minutes, turn_end(reply)));
    let asked = |session: &str, minutes| in_session(session, at(minutes, prompt("why")));
    for (session, minutes, reply) in [("s-1", 1, "first"), ("s-2", 2, "second")] {
        let turn = [asked(session, minutes), said(session, minutes, reply)];
        record(&db.store, &twin, twin.owner, &turn).await;
    }
    let hidden = [
        in_session("s-3", at(3, private_prompt())),
        said("s-3", 3, "hidden"),
    ];
    record(&db.store, &twin, twin.owner, &hidden).await;
    let theirs = [asked("s-4", 4), said("s-4", 4, "theirs")];
    record(&db.store, &twin, twin.member, &theirs).await;
    let mine = project_id(&db, "my-app").await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    for (current, reply) in [(None, "second"), (Some("s-2"), "first")] {
        let read = tx.last_reply(&[mine], &reader(twin.owner), current).await;
        assert_eq!(read.expect("read").as_deref(), Some(reply));
    }
}

#[tokio::test]
async fn totals_and_files_count_what_the_reader_may_read() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut changed = at(2, in_session("s-2", observation("changed")));
    edit(&mut changed, |own| {
        own.files_modified = vec!["docs/a.md".to_owned()]
    });
    let mut bare = at(3, observation("bare"));
    edit(&mut bare, |own| own.files_read = Vec::new());
    let events = [
        at(1, observation("read")),
        changed,
        bare,
        private(observation("own")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mine = project_id(&db, "my-app").await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let member = reader(twin.member);
    let totals = tx.context_totals(&[mine], &member).await.expect("counted");
    assert_eq!((totals.observations, totals.sessions), (3, 2));
    let pick = Selection {
        observations: 50,
        ..Selection::default()
    };
    let mut files = async |folder: Option<&'static str>| {
        let rows = tx.context_by_file(&[mine], &member, &pick, folder).await;
        let rows = rows.expect("rows").into_iter();
        rows.map(|row| (row.observation.title, row.file))
            .collect::<Vec<_>>()
    };
    let row = |title: &str, file: Option<&str>| (title.to_owned(), file.map(str::to_owned));
    assert_eq!(
        files(None).await,
        [
            row("bare", None),
            row("changed", Some("docs/a.md")),
            row("read", Some("src/net/retry.ts")),
        ]
    );
    assert_eq!(files(Some("src/net")).await.len(), 2);
    assert_eq!(
        files(Some("docs")).await,
        [row("changed", Some("docs/a.md"))]
    );
    assert_eq!(files(Some("src/ne")).await, []);
}

async fn project_id(db: &TestDb, name: &str) -> ProjectId {
    let tenant = db.twins.0.tenant;
    let mut tx = db.store.tenant(tenant, "test").await.expect("begin");
    tx.find_projects(name).await.expect("find")[0].project.id
}
