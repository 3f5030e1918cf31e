//! The rows of a session-start context: which are chosen, for whom, and in which order.

mod support;

use cairn_domain::context::ContextRows;
use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::ids::{PrincipalId, ProjectId};
use cairn_domain::observation::{Concept, ObservationType};
use cairn_store::context::ContextPick;
use cairn_store::test_util::{TestDb, Twin};
use support::*;

const FEW: ContextPick = ContextPick {
    observations: 3,
    summaries: 2,
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
    let chosen = async |pick: ContextPick| {
        let rows = context(&db, &twin, twin.owner, &["my-app"], &pick).await;
        numbers(&rows).0
    };
    let all = ContextPick {
        observations: 50,
        ..FEW
    };
    assert_eq!(chosen(all.clone()).await, [8, 7, 6, 5, 4, 2, 1]);
    let with_subagents = ContextPick {
        main_agent_only: false,
        ..all.clone()
    };
    assert_eq!(chosen(with_subagents).await.len(), 8);
    let decisions = ContextPick {
        types: vec![ObservationType::Decision],
        ..FEW
    };
    assert_eq!(chosen(decisions).await, [1]);
    let traps = ContextPick {
        concepts: vec![Concept::TradeOff, Concept::Gotcha],
        ..FEW
    };
    assert_eq!(chosen(traps).await, [2]);
    let none = ContextPick::default();
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
    pick: &ContextPick,
) -> ContextRows {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let mut projects: Vec<ProjectId> = Vec::new();
    for name in names {
        projects.push(tx.find_projects(name).await.expect("find")[0].project.id);
    }
    tx.context(&projects, &reader(who), pick)
        .await
        .expect("context")
}
