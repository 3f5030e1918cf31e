//! Reading records by id, who may, and deleting them.

mod support;

use cairn_domain::event::Visibility;
use cairn_domain::record::RecordBody;
use cairn_domain::text::terms;
use cairn_store::records::{Deleted, Promoted};
use cairn_store::test_util::{TestDb, Twin};
use support::*;

#[tokio::test]
async fn records_come_back_whole_and_in_the_order_asked() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("Fixed the pool"),
        summary("Fix the pool"),
        prompt("why 5xx?\nlook"),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let records = tx
        .get_records(&ids(&["P1", "44", "S1", "1"]), &reader(twin.owner))
        .await
        .expect("read");
    let printed: Vec<String> = records.iter().map(|r| r.row.id.to_string()).collect();
    assert_eq!(printed, ["P1", "S1", "1"]);
    assert_eq!(records[0].row.title, "why 5xx? look");
    let RecordBody::Prompt { text, number } = &records[0].body else {
        panic!("a prompt")
    };
    assert_eq!((text.as_str(), *number), ("why 5xx?\nlook", 1));
    let RecordBody::Summary(body) = &records[1].body else {
        panic!("a summary")
    };
    assert_eq!(body.learned, "signing is synchronous");

    let whole = &records[2];
    assert_eq!(whole.event_id, events[0].event_id);
    assert_eq!(
        (whole.row.at, whole.arrived_at),
        (minute(0), minute(10_000))
    );
    assert_eq!(whole.position, 2);
    assert_eq!(whole.row.author, "ada");
    assert_eq!(whole.row.project.name, "my-app");
    assert_eq!(whole.session.as_deref(), Some("s-1"));
    assert_eq!(whole.host.as_deref(), Some("claude-code"));
    assert_eq!(whole.branch.as_deref(), Some("main"));
    assert_eq!(whole.checkout.as_deref(), Some("~/my-app"));
    assert_eq!(
        (whole.origin.as_str(), whole.visibility),
        ("api", Visibility::Team)
    );
    let RecordBody::Observation(body) = &whole.body else {
        panic!("an observation")
    };
    assert_eq!(body.facts, ["at most 20", "a, \"b\""]);
    assert_eq!(body.files_read, ["src/net/retry.ts"]);
    assert_eq!(body.work_tokens, 1_800);
    assert!(body.read_tokens > 10);
    let uses: Vec<i64> = body.tool_uses.iter().map(|id| id.0).collect();
    assert_eq!(uses, [3, 1]);
}

#[tokio::test]
async fn private_records_and_prompts_are_their_authors_alone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        private(observation("zebra")),
        prompt("zebra"),
        summary("zebra"),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    assert_eq!(seen(&db, &twin, true).await, ["1", "P1", "S1"]);
    assert_eq!(seen(&db, &twin, false).await, ["S1"]);
    // The tenant may share prompts; private ones stay private.
    sqlx::query("update tenants set settings = '{\"prompt_visibility\":\"team\"}'")
        .execute(&mut db.admin().await)
        .await
        .expect("the setting");
    assert_eq!(seen(&db, &twin, false).await, ["P1", "S1"]);
    let kept = [private(prompt("zebra"))];
    record(&db.store, &twin, twin.owner, &kept).await;
    assert_eq!(seen(&db, &twin, false).await, ["P1", "S1"]);
}

/// What the owner, else the member, sees by id, by search and around it: always the same.
async fn seen(db: &TestDb, twin: &Twin, owner: bool) -> Vec<String> {
    let who = if owner { twin.owner } else { twin.member };
    let reader = reader(who);
    let all = ids(&["1", "P1", "P2", "S1"]);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let read = tx.get_records(&all, &reader).await.expect("read");
    let read: Vec<String> = read.iter().map(|r| r.row.id.to_string()).collect();
    let found = search_index(&mut tx, &terms("zebra"), &reader, 20).await;
    let mut found: Vec<String> = found
        .expect("search")
        .iter()
        .map(|row| row.id.to_string())
        .collect();
    found.sort();
    assert_eq!(found, read, "search");
    let around = tx.timeline(&ids(&["S1"]), 3, 3, &reader).await;
    let mut around: Vec<String> = around.expect("timeline")[0]
        .iter()
        .map(|row| row.id.to_string())
        .collect();
    around.sort();
    assert_eq!(around, read, "timeline");
    read
}

#[tokio::test]
async fn nothing_outside_the_readers_projects_is_seen() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        in_project("a", observation("alpha")),
        in_project("b", observation("alpha")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let a = tx.find_projects("a").await.expect("find")[0].project.id;
    let b = tx.find_projects("b").await.expect("find")[0].project.id;
    for (projects, sees) in [
        (vec![a], vec!["1"]),
        (vec![a, b], vec!["1", "2"]),
        (vec![], vec![]),
    ] {
        let reader = reader_of(twin.owner, &projects);
        let read = tx.get_records(&ids(&["1", "2"]), &reader).await;
        let read: Vec<String> = read
            .expect("read")
            .iter()
            .map(|r| r.row.id.to_string())
            .collect();
        assert_eq!(read, sees);
        let found = search_index(&mut tx, &terms("alpha"), &reader, 20).await;
        assert_eq!(found.expect("search").len(), sees.len());
        let around = tx.timeline(&ids(&["2"]), 3, 3, &reader).await;
        assert_eq!(
            around.expect("timeline")[0].len(),
            usize::from(sees.len() == 2)
        );
    }
}

#[tokio::test]
async fn a_timeline_stays_in_the_anchors_project_and_in_order() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut events: Vec<_> = (1..=9).map(|n| at(n, observation("x"))).collect();
    // At the fifth's instant: by kind, then number.
    events.push(at(5, summary("x")));
    events.push(at(5, in_project("other", observation("x"))));
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let timelines = tx
        .timeline(&ids(&["S1", "77", "1", "5"]), 3, 2, &reader(twin.owner))
        .await
        .expect("timeline");
    let printed: Vec<Vec<String>> = timelines
        .iter()
        .map(|rows| rows.iter().map(|row| row.id.to_string()).collect())
        .collect();
    assert_eq!(printed[0], ["3", "4", "5", "S1", "6", "7"]);
    assert_eq!(printed[1], Vec::<String>::new());
    assert_eq!(printed[2], ["1", "2", "3"]);
    assert_eq!(printed[3], ["2", "3", "4", "5", "S1", "6"]);
}

#[tokio::test]
async fn promoting_is_for_the_author_and_for_good() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        private(observation("zebra")),
        private(summary("zebra")),
        prompt("zebra"),
        observation("plain"),
        in_project("b", private(observation("zebra"))),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let my_app = tx.find_projects("my-app").await.expect("find")[0]
        .project
        .id;
    tx.commit().await.expect("commit");
    let here = reader_of(twin.owner, &[my_app]);
    let states = || async { (position(&db, &twin).await, revision(&db).await) };
    let before = states().await;
    for (id, by, outcome) in [
        ("1", reader(twin.member), Promoted::NotFound),
        ("2", reader(twin.member), Promoted::Forbidden),
        ("9", reader(twin.owner), Promoted::NotFound),
        ("P1", reader(twin.owner), Promoted::NotFound),
        ("3", here.clone(), Promoted::NotFound),
        ("2", here.clone(), Promoted::Done),
    ] {
        assert_eq!(promote(&db, &twin, id, &by).await, outcome, "{id}");
    }
    // Nothing was private there, or nothing was done.
    assert_eq!(states().await, before);
    for id in ["1", "S1"] {
        assert_eq!(promote(&db, &twin, id, &here).await, Promoted::Done);
        // Once more changes nothing.
        assert_eq!(promote(&db, &twin, id, &here).await, Promoted::Done);
    }
    assert_eq!(states().await, (before.0 + 2, before.1 + 2));
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let (query, member) = (terms("zebra"), reader(twin.member));
    let found = search_index(&mut tx, &query, &member, 20).await;
    let found = found.expect("search").into_iter();
    let mut found: Vec<String> = found.map(|row| row.id.to_string()).collect();
    found.sort();
    assert_eq!(found, ["1", "S1"]);
    let all = ids(&["1", "S1", "3"]);
    let read = tx.get_records(&all, &reader(twin.owner)).await;
    let read = read.expect("read");
    let placed: Vec<_> = read.iter().map(|r| (r.visibility, r.position)).collect();
    assert_eq!(placed[0], (Visibility::Team, before.0 + 1));
    assert_eq!(placed[1], (Visibility::Team, before.0 + 2));
    assert_eq!(placed[2].0, Visibility::Private);
}

#[tokio::test]
async fn a_promotion_and_a_deletion_of_one_record_wait_for_each_other() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[private(observation("x"))]).await;
    let id = ids(&["1"])[0];
    let all = reader(twin.owner);
    let mut first = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let deleted = first.delete_record(id, &all, false, minute(1)).await;
    assert_eq!(deleted.expect("answered"), Deleted::Done);
    let second = async {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let promoted = tx.promote_record(id, &reader(twin.owner), minute(1)).await;
        promoted.expect("answered")
    };
    let commit = async {
        wait_until_blocked(&db).await;
        first.commit().await.expect("commit");
    };
    let (promoted, ()) = tokio::join!(second, commit);
    assert_eq!(promoted, Promoted::NotFound);
}

async fn promote(
    db: &TestDb,
    twin: &Twin,
    id: &str,
    by: &cairn_domain::project::Reader,
) -> Promoted {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let promoted = tx
        .promote_record(ids(&[id])[0], by, minute(1))
        .await
        .expect("answered");
    tx.commit().await.expect("commit");
    promoted
}

async fn position(db: &TestDb, twin: &Twin) -> i64 {
    sqlx::query_scalar("select position from tenant_counters where tenant_id = $1")
        .bind(twin.tenant.key())
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a position")
}

#[tokio::test]
async fn deleting_follows_who_may_and_says_so() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("team"),
        private(observation("mine")),
        prompt("mine"),
        observation("more"),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    for (id, by, admin, outcome) in [
        ("1", twin.member, false, Deleted::Forbidden),
        ("2", twin.member, false, Deleted::NotFound),
        // An admin may delete others' records, but learns nothing of private ones.
        ("2", twin.member, true, Deleted::NotFound),
        ("P1", twin.member, true, Deleted::NotFound),
        ("9", twin.owner, true, Deleted::NotFound),
        ("1", twin.member, true, Deleted::Done),
        ("1", twin.member, true, Deleted::Done),
        ("1", twin.owner, false, Deleted::Done),
        ("2", twin.owner, false, Deleted::Done),
        ("2", twin.member, true, Deleted::NotFound),
        ("P1", twin.owner, false, Deleted::Done),
    ] {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let deleted = tx
            .delete_record(ids(&[id])[0], &reader(by), admin, minute(1))
            .await;
        assert_eq!(deleted.expect("answered"), outcome, "{id} {admin}");
        tx.commit().await.expect("commit");
    }
    let left: (i64, i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from records), (select count(*) from observations),
           (select count(*) from prompts), (select count(*) from events where deleted)",
    )
    .fetch_one(&mut db.admin().await)
    .await
    .expect("counts");
    assert_eq!(left, (1, 1, 0, 3));
    // Each deletion took one position, refused and repeated ones took none.
    let positions: Vec<i64> = sqlx::query_scalar("select position from tombstones order by 1")
        .fetch_all(&mut db.admin().await)
        .await
        .expect("positions");
    assert_eq!(positions, [6, 7, 8]);
}

#[tokio::test]
async fn nothing_outside_the_readers_projects_is_deleted_or_confirmed() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        in_project("a", observation("one")),
        in_project("b", observation("two")),
        in_project("b", observation("three")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let mut of = Vec::new();
    for name in ["a", "b"] {
        let family = tx.find_projects(name).await.expect("find").remove(0);
        of.push(reader_of(twin.owner, &family.members));
    }
    let nowhere = reader_of(twin.owner, &[]);
    for (id, reader, outcome) in [
        ("2", &of[0], Deleted::NotFound),
        ("2", &nowhere, Deleted::NotFound),
        ("2", &of[1], Deleted::Done),
        // Gone: those confined elsewhere learn nothing of that either.
        ("2", &of[0], Deleted::NotFound),
        ("2", &nowhere, Deleted::NotFound),
        ("2", &of[1], Deleted::Done),
        ("1", &of[0], Deleted::Done),
    ] {
        for admin in [false, true] {
            let deleted = tx
                .delete_record(ids(&[id])[0], reader, admin, minute(1))
                .await;
            assert_eq!(deleted.expect("answered"), outcome, "{id} {admin}");
        }
    }
    tx.commit().await.expect("commit");
    let left: Vec<i64> = sqlx::query_scalar("select number from records")
        .fetch_all(&mut db.admin().await)
        .await
        .expect("numbers");
    assert_eq!(left, [3]);
}

#[tokio::test]
async fn c022_c023_a_deleted_record_is_in_no_search_and_its_words_may_come_again() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[observation("use pgvector")]).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let reader = reader(twin.owner);
    tx.delete_record(ids(&["1"])[0], &reader, false, minute(1))
        .await
        .expect("deleted");
    let query = terms("pgvector");
    assert_eq!(
        search_index(&mut tx, &query, &reader, 20)
            .await
            .expect("search"),
        []
    );
    tx.commit().await.expect("commit");
    let again = record(&db.store, &twin, twin.owner, &[observation("use pgvector")]).await;
    assert_eq!(stored_ids(&again), [Some("2")]);
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = search_index(&mut tx, &query, &reader, 20)
        .await
        .expect("search");
    assert_eq!(found[0].id.to_string(), "2");
}

#[tokio::test]
async fn the_context_revision_is_raised_by_what_the_context_shows_alone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut expected = 0;
    for (event, raises) in [
        (prompt("x"), false),
        (tool_use("1"), false),
        (observation("x"), true),
        (summary("x"), true),
        (work_entry("l", "m", None), true),
        (turn_end("x"), false),
    ] {
        record(&db.store, &twin, twin.owner, &[event]).await;
        expected += i64::from(raises);
        assert_eq!(revision(&db).await, expected);
    }
    for (id, raises) in [("1", true), ("P1", false)] {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        tx.delete_record(ids(&[id])[0], &reader(twin.owner), false, minute(1))
            .await
            .expect("deleted");
        tx.commit().await.expect("commit");
        expected += i64::from(raises);
        assert_eq!(revision(&db).await, expected);
    }
}

async fn revision(db: &TestDb) -> i64 {
    sqlx::query_scalar("select sum(context_revision)::bigint from projects")
        .fetch_one(&mut db.admin().await)
        .await
        .expect("a revision")
}
