//! Lists of observations: who is on them, in which order, and how pages meet.

mod support;

use cairn_domain::event::{EventBody, EventDraft, Visibility};
use cairn_domain::filter::{ByAuthor, Filter};
use cairn_domain::ids::RecordKind;
use cairn_domain::listing::{ListPlace, Listed};
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::project::Reader;
use cairn_domain::text::SearchTerms;
use cairn_store::search::{Question, Walk};
use cairn_store::test_util::{TestDb, Twin};
use support::*;

/// The first of what a filter lets pass.
async fn list(db: &TestDb, twin: &Twin, filter: &Filter, reader: &Reader) -> Vec<Listed> {
    let first = Walk {
        limit: 20,
        ..Walk::default()
    };
    walk(db, twin, filter, first, reader).await
}

async fn walk(
    db: &TestDb,
    twin: &Twin,
    filter: &Filter,
    walk: Walk<'_>,
    reader: &Reader,
) -> Vec<Listed> {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let nothing = SearchTerms::default();
    let question = Question::new(&nothing, filter);
    let places = tx.search_in_time(&question, &walk, reader).await;
    let places = places.expect("found");
    let ids: Vec<_> = places.iter().map(|place| place.id).collect();
    let listed = tx.get_listed(&ids, reader).await.expect("listed");
    tx.commit().await.expect("commit");
    let theirs: Vec<_> = listed.iter().map(|one| ListPlace::from(&one.row)).collect();
    assert_eq!(theirs, places, "what is found can be read");
    listed
}

fn observations() -> Filter {
    Filter {
        kinds: vec![RecordKind::Observation],
        ..Filter::default()
    }
}

fn printed(listed: &[Listed]) -> Vec<String> {
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
    let all = reader(twin.owner);
    for filter in [observations(), Filter::default()] {
        let mut seen = Vec::new();
        let mut page = Walk {
            limit: 10,
            ..Walk::default()
        };
        loop {
            let shown = walk(&db, &twin, &filter, page, &all).await;
            let Some(last) = shown.last() else { break };
            page.after = Some(ListPlace::from(&last.row));
            seen.extend(printed(&shown));
            if seen.len() == 10 {
                // More of the same instant: they stand before the first page.
                record(&db.store, &twin, twin.owner, &batch(10)).await;
            }
        }
        let before = seen.len() as i64;
        let wanted: Vec<String> = (1..=before).rev().map(|n| n.to_string()).collect();
        assert_eq!(seen, wanted);
    }
}

#[tokio::test]
async fn a_walk_goes_both_ways_skips_and_leaves_out() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // One instant: kinds and numbers decide.
    let events = [
        observation("a"),
        summary("b"),
        prompt("c"),
        observation("d"),
        at(1, observation("e")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let (all, everything) = (reader(twin.owner), Filter::default());
    let without = ids(&["2", "P1"]);
    let down = Walk {
        limit: 20,
        ..Walk::default()
    };
    let up = Walk {
        ascending: true,
        ..down
    };
    let after = |id: &str| {
        Some(ListPlace {
            at: minute(0),
            id: id.parse().expect("an id"),
        })
    };
    for (page, sees) in [
        (down, &["3", "P1", "S1", "2", "1"][..]),
        (up, &["1", "2", "S1", "P1", "3"]),
        (Walk { skip: 3, ..down }, &["2", "1"]),
        (Walk { limit: 2, ..up }, &["1", "2"]),
        (
            Walk {
                without: &without,
                ..up
            },
            &["1", "S1", "3"],
        ),
        (
            Walk {
                after: after("S1"),
                ..up
            },
            &["P1", "3"],
        ),
        (
            Walk {
                after: after("S1"),
                ..down
            },
            &["2", "1"],
        ),
        (
            Walk {
                after: after("S1"),
                skip: 1,
                ..down
            },
            &["1"],
        ),
    ] {
        let shown = walk(&db, &twin, &everything, page, &all).await;
        assert_eq!(printed(&shown), sees, "{page:?}");
    }
    // What came later is not there yet for whoever remembers what was.
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let horizon = tx.horizon().await.expect("known");
    assert_eq!(<[i64; 3]>::from(horizon), [3, 1, 1]);
    record(
        &db.store,
        &twin,
        twin.owner,
        &[observation("f"), summary("g")],
    )
    .await;
    let nothing = SearchTerms::default();
    let question = Question {
        upto: Some(horizon),
        ..Question::new(&nothing, &everything)
    };
    let found = tx.search_in_time(&question, &down, &all).await;
    assert_eq!(found.expect("found").len(), 5);
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
    let filter = observations();
    let all = list(&db, &twin, &filter, &reader(twin.owner)).await;
    assert_eq!(printed(&all), ["4", "3", "2", "1"]);
    let theirs = list(&db, &twin, &filter, &reader(twin.member)).await;
    assert_eq!(printed(&theirs), ["4", "3", "1"]);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let b = tx.find_projects("b").await.expect("find")[0].project.id;
    tx.commit().await.expect("commit");
    for (projects, sees) in [(vec![b], vec!["3"]), (vec![], vec![])] {
        let reader = reader_of(twin.owner, &projects);
        let listed = list(&db, &twin, &filter, &reader).await;
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
    let none = observations;
    let by = |who: ByAuthor| Filter {
        author: Some(who),
        ..none()
    };
    let file = |path: &str| Filter {
        files: vec![path.to_owned()],
        ..none()
    };
    let session = |id: &str| Filter {
        session: text(id),
        ..none()
    };
    let period = |from: Option<i64>, until: Option<i64>| Filter {
        from: from.map(minute),
        until: until.map(minute),
        ..none()
    };
    let concepts = Filter {
        concepts: vec![Concept::Gotcha, Concept::TradeOff],
        ..none()
    };
    let types = Filter {
        types: vec![ObservationType::Feature],
        ..none()
    };
    for (filter, sees) in [
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
        let listed = list(&db, &twin, &filter, &reader(twin.owner)).await;
        assert_eq!(printed(&listed), sees, "{filter:?}");
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
