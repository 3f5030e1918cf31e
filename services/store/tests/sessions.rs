//! Sessions as lists show them: counts of what the reader may read, and none of which that is
//! nothing.

mod support;

use cairn_domain::filter::ByAuthor;
use cairn_domain::ids::PrincipalId;
use cairn_domain::kind::Kind;
use cairn_store::export::ExportFilter;
use cairn_store::sessions::SessionPick;
use cairn_store::test_util::{TestDb, Twin};
use support::*;

/// The sessions that somebody sees, each with what of it.
async fn seen(db: &TestDb, by: PrincipalId, evidence: bool) -> Vec<(String, [u64; 4])> {
    let twin: Twin = db.twins.0;
    let pick = SessionPick {
        evidence,
        limit: 10,
        ..SessionPick::default()
    };
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = tx.list_sessions(&pick, &reader(by)).await.expect("list");
    tx.commit().await.expect("commit");
    let counts = |s: &cairn_store::sessions::ListedSession| {
        [s.observations, s.summaries, s.prompts, s.tool_uses]
    };
    found
        .iter()
        .map(|s| (s.host_session_id.clone(), counts(s)))
        .collect()
}

async fn set(db: &TestDb, settings: &str) {
    sqlx::query("update tenants set settings = $1::text::jsonb")
        .bind(settings)
        .execute(&mut db.admin().await)
        .await
        .expect("set");
}

#[tokio::test]
async fn counts_are_of_what_the_reader_may_read() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        at(1, in_session("open", observation("one"))),
        at(2, in_session("open", private(observation("two")))),
        at(2, in_session("open", summary("three"))),
        at(2, in_session("open", prompt("four"))),
        at(2, in_session("open", tool_use("five"))),
        at(3, in_session("closed", private(observation("six")))),
        at(3, in_session("closed", prompt("seven"))),
        at(4, in_session("calls", tool_use("eight"))),
    ];
    record(&db.store, &twin, twin.member, &events).await;
    let named = |name: &str, counts| (name.to_owned(), counts);
    assert_eq!(
        seen(&db, twin.member, true).await,
        [
            named("calls", [0, 0, 0, 1]),
            named("closed", [1, 0, 1, 0]),
            named("open", [2, 1, 1, 1])
        ]
    );
    assert_eq!(
        seen(&db, twin.owner, true).await,
        [named("calls", [0, 0, 0, 1]), named("open", [1, 1, 0, 1])]
    );
    // Without the right to evidence, calls are no sign of a session either.
    assert_eq!(
        seen(&db, twin.owner, false).await,
        [named("open", [1, 1, 0, 0])]
    );
    set(
        &db,
        r#"{"prompt_visibility":"team","evidence_visibility":"author"}"#,
    )
    .await;
    assert_eq!(
        seen(&db, twin.owner, true).await,
        [named("closed", [0, 0, 1, 0]), named("open", [1, 1, 1, 0])]
    );
}

#[tokio::test]
async fn pages_walk_from_new_to_old_and_names_find_one() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let name = |n: i64| format!("s-{n}");
    // Two begin at the same moment.
    let events: Vec<_> = (0..5)
        .map(|n| at(n / 2, in_session(&name(n), observation("x"))))
        .collect();
    record(&db.store, &twin, twin.owner, &events).await;
    record(
        &db.store,
        &twin,
        twin.member,
        &[at(9, in_session("theirs", observation("x")))],
    )
    .await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let all = reader(twin.owner);
    let me = ByAuthor::Me;
    let mut pick = SessionPick {
        author: Some(&me),
        limit: 2,
        ..SessionPick::default()
    };
    let mut walked = Vec::new();
    loop {
        let page = tx.list_sessions(&pick, &all).await.expect("list");
        let Some(last) = page.last() else { break };
        pick.after = Some(last.place);
        walked.extend(page.into_iter().map(|session| session.host_session_id));
    }
    walked.sort();
    assert_eq!(walked, (0..5).map(name).collect::<Vec<_>>());
    let ben = ByAuthor::Named("ben".to_owned());
    let by_ben = SessionPick {
        author: Some(&ben),
        from: Some(minute(9)),
        until: Some(minute(10)),
        limit: 10,
        ..SessionPick::default()
    };
    let found = tx.list_sessions(&by_ben, &all).await.expect("list");
    assert_eq!(found.len(), 1);
    for text in [
        found[0].uid.to_string(),
        "theirs".to_owned(),
        "claude-code/theirs".to_owned(),
    ] {
        let one = tx.get_session(&text, true, &all).await.expect("find");
        assert_eq!(one.expect("there").uid, found[0].uid, "{text}");
    }
    assert_eq!(
        tx.get_session("nothing", true, &all).await.expect("find"),
        None
    );
    tx.commit().await.expect("commit");
}

/// The sessions that an export of somebody names, looked at one by one.
async fn exported(db: &TestDb, by: PrincipalId, evidence: bool) -> Vec<String> {
    let filter = ExportFilter {
        author: None,
        kinds: Kind::ALL.to_vec(),
    };
    let twin: Twin = db.twins.0;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let (mut names, mut after) = (Vec::new(), 0);
    loop {
        let found = tx
            .export_sessions(&filter, &reader(by), evidence, after, 1)
            .await
            .expect("read");
        names.extend(found.rows.into_iter().map(|session| session.session));
        match found.next {
            Some(next) => after = next,
            None => break,
        }
    }
    tx.commit().await.expect("commit");
    names.sort();
    names
}

#[tokio::test]
async fn an_export_names_the_sessions_that_a_list_does() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        at(1, in_session("a-private", private(observation("one")))),
        at(2, in_session("b-asked", prompt("two"))),
        at(3, in_session("c-calls", tool_use("three"))),
        at(4, in_session("d-private", private(tool_use("four")))),
        at(5, in_session("e-open", observation("five"))),
    ];
    record(&db.store, &twin, twin.member, &events).await;
    let all = ["a-private", "b-asked", "c-calls", "d-private", "e-open"];
    assert_eq!(exported(&db, twin.member, true).await, all);
    assert_eq!(exported(&db, twin.owner, true).await, ["c-calls", "e-open"]);
    assert_eq!(exported(&db, twin.owner, false).await, ["e-open"]);
    let shared = r#"{"prompt_visibility":"team","evidence_visibility":"author"}"#;
    set(&db, shared).await;
    assert_eq!(exported(&db, twin.owner, true).await, ["b-asked", "e-open"]);
    for (by, evidence) in [(twin.member, false), (twin.owner, true)] {
        let listed = seen(&db, by, evidence).await.into_iter();
        let mut listed: Vec<String> = listed.map(|(name, _)| name).collect();
        listed.sort();
        assert_eq!(exported(&db, by, evidence).await, listed);
    }
}
