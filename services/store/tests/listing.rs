//! Lists of observations: who is on them, in which order, and how pages meet.

mod support;

use cairn_domain::event::{EventBody, EventDraft, Visibility};
use cairn_domain::listing::{ByAuthor, ListPick, ListPlace, ListedObservation};
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::project::Reader;
use cairn_store::test_util::{TestDb, Twin};
use support::*;

async fn list(
    db: &TestDb,
    twin: &Twin,
    pick: &ListPick,
    after: Option<ListPlace>,
    limit: u32,
    reader: &Reader,
) -> Vec<ListedObservation> {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let listed = tx.list_observations(pick, after, limit, reader).await;
    tx.commit().await.expect("commit");
    listed.expect("listed")
}

fn printed(listed: &[ListedObservation]) -> Vec<String> {
    listed.iter().map(|one| one.row.id.to_string()).collect()
}

/// An observation about these files: the first changed, the others read.
fn about(files: &[&str]) -> EventDraft {
    let mut draft = observation("about files");
    if let EventBody::Observation(own) = &mut draft.body {
        let mut files = files.iter().map(|file| (*file).to_owned());
        own.files_modified = files.next().into_iter().collect();
        own.files_read = files.collect();
    }
    draft
}

#[tokio::test]
async fn c039_pages_meet_where_records_share_an_instant() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // Two projects, one instant.
    let batch = |count: usize| -> Vec<EventDraft> {
        let one = |n: usize| match n % 2 {
            0 => observation("x"),
            _ => in_project("other", observation("x")),
        };
        (0..count).map(one).collect()
    };
    record(&db.store, &twin, twin.owner, &batch(25)).await;
    let (all, pick) = (reader(twin.owner), ListPick::default());
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = list(&db, &twin, &pick, after, 10, &all).await;
        let Some(last) = page.last() else { break };
        after = Some(ListPlace::from(&last.row));
        seen.extend(printed(&page));
        if seen.len() == 10 {
            // More of the same instant: they stand before the first page.
            record(&db.store, &twin, twin.owner, &batch(10)).await;
        }
    }
    let wanted: Vec<String> = (1..=25).rev().map(|n| n.to_string()).collect();
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn a_list_shows_what_its_reader_may_read_and_what_it_costs() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        at(1, observation("team")),
        at(2, private(observation("own"))),
        at(3, in_project("b", observation("elsewhere"))),
        at(4, summary("no observation")),
        at(5, in_session("s-2", about(&["src/a.rs", "src/b.rs"]))),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let pick = ListPick::default();
    let all = list(&db, &twin, &pick, None, 20, &reader(twin.owner)).await;
    assert_eq!(printed(&all), ["4", "3", "2", "1"]);
    let theirs = list(&db, &twin, &pick, None, 20, &reader(twin.member)).await;
    assert_eq!(printed(&theirs), ["4", "3", "1"]);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let b = tx.find_projects("b").await.expect("find")[0].project.id;
    tx.commit().await.expect("commit");
    for (projects, sees) in [(vec![b], vec!["3"]), (vec![], vec![])] {
        let reader = reader_of(twin.owner, &projects);
        let listed = list(&db, &twin, &pick, None, 20, &reader).await;
        assert_eq!(printed(&listed), sees);
    }
    let newest = &all[0];
    assert_eq!(newest.files, ["src/a.rs", "src/b.rs"]);
    assert_eq!(newest.session.as_deref(), Some("s-2"));
    assert_eq!(
        (newest.row.author.as_str(), newest.row.at),
        ("ada", minute(5))
    );
    assert!(newest.read_tokens > 10);
    assert_eq!(all[2].visibility, Visibility::Private);
}

#[tokio::test]
async fn each_filter_narrows_a_list() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut gotcha = at(2, observation("gotcha"));
    if let EventBody::Observation(own) = &mut gotcha.body {
        own.concepts = vec![Concept::Gotcha, Concept::Pattern];
        own.kind = ObservationType::Feature;
    }
    let events = [
        at(1, in_session("s-2", observation("other session"))),
        gotcha,
        at(3, about(&["src/db/pool.ts", "D:\\svc\\api\\server.py"])),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    record(
        &db.store,
        &twin,
        twin.member,
        &[at(4, observation("theirs"))],
    )
    .await;
    let text = |text: &str| Some(text.to_owned());
    let none = ListPick::default;
    let by = |who: ByAuthor| ListPick {
        author: Some(who),
        ..none()
    };
    let file = |path: &str| ListPick {
        file: text(path),
        ..none()
    };
    let session = |id: &str| ListPick {
        session: text(id),
        ..none()
    };
    let period = |from: Option<i64>, until: Option<i64>| ListPick {
        from: from.map(minute),
        until: until.map(minute),
        ..none()
    };
    let concepts = ListPick {
        concepts: vec![Concept::Gotcha, Concept::TradeOff],
        ..none()
    };
    let types = ListPick {
        types: vec![ObservationType::Feature],
        ..none()
    };
    for (pick, sees) in [
        (concepts, &["2"][..]),
        (types, &["2"]),
        (by(ByAuthor::Me), &["3", "2", "1"]),
        (by(ByAuthor::Named("ben".to_owned())), &["4"]),
        (by(ByAuthor::Named("nobody".to_owned())), &[]),
        (session("s-2"), &["1"]),
        (session("claude-code/s-2"), &["1"]),
        (session("s-"), &[]),
        (file("pool.ts"), &["3"]),
        (file("db/pool.ts"), &["3"]),
        (file("src/db"), &["3"]),
        (file("api/server.py"), &["3"]),
        (file("ool.ts"), &[]),
        (file("src/d"), &[]),
        (file("%"), &[]),
        (period(Some(2), Some(4)), &["3", "2"]),
        (period(Some(4), None), &["4"]),
        (period(None, Some(2)), &["1"]),
    ] {
        let listed = list(&db, &twin, &pick, None, 20, &reader(twin.owner)).await;
        assert_eq!(printed(&listed), sees, "{pick:?}");
    }
}

#[tokio::test]
async fn what_is_known_of_a_file_is_found_by_its_whole_path() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        at(1, about(&["src/a.rs"])),
        at(2, private(about(&["src/b.rs", "src/a.rs"]))),
        at(3, about(&["a.rs"])),
        at(4, in_project("b", about(&["src/a.rs"]))),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let paths = ["src/a.rs".to_owned(), "missing.rs".to_owned()];
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    for (reader, limit, sees) in [
        (reader(twin.owner), 20, &["4", "2", "1"][..]),
        (reader(twin.owner), 2, &["4", "2"]),
        (reader(twin.member), 20, &["4", "1"]),
        (reader_of(twin.owner, &[]), 20, &[]),
    ] {
        let found = tx.observations_by_file(&paths, limit, &reader).await;
        let found = found.expect("found");
        let ids: Vec<String> = found.iter().map(|one| one.row.id.to_string()).collect();
        assert_eq!(ids, sees);
    }
    let found = tx
        .observations_by_file(&paths, 20, &reader(twin.owner))
        .await;
    let found = found.expect("found");
    assert_eq!(found[1].files_modified, ["src/b.rs"]);
    assert_eq!(found[1].files, 2);
}
