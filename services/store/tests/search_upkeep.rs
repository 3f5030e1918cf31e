//! What searching rests on and nobody waits for: counted words, rebuilt vectors; and the way out
//! of a question that is too much.

mod support;

use cairn_domain::filter::Filter;
use cairn_domain::text::terms;
use cairn_store::search::{Found, Question};
use cairn_store::test_util::{TestDb, Twin};
use sqlx::{AssertSqlSafe, PgConnection, Row};
use support::*;

/// So many observations, all of which hold the word `common`; one of them `needle` too.
async fn many(db: &TestDb, twin: &Twin, count: usize) {
    let events: Vec<_> = (0..count)
        .map(|n| {
            let needle = if n == 3 { " needle" } else { "" };
            let minutes = i64::try_from(n).expect("few");
            at(minutes, observation(&format!("common note{n}x{needle}")))
        })
        .collect();
    for batch in events.chunks(500) {
        record(&db.store, twin, twin.owner, batch).await;
    }
}

async fn due(db: &TestDb) -> usize {
    let mut system = db.store.system("test").await.expect("begin");
    system.find_uncounted(10).await.expect("found").len()
}

async fn count(db: &TestDb) {
    let mut system = db.store.system("test").await.expect("begin");
    let due = system.find_uncounted(10).await.expect("found");
    drop(system);
    for (tenant, project) in due {
        let mut tx = db.store.tenant(tenant, "test").await.expect("begin");
        assert!(tx.count_words(project).await.expect("counted"));
        tx.commit().await.expect("commit");
    }
}

async fn ask(db: &TestDb, twin: &Twin, query: &str, recent: bool) -> Found {
    let (terms, everything) = (terms(query), Filter::default());
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let question = Question {
        recent,
        ..Question::new(&terms, &everything)
    };
    tx.search(&question, &reader(twin.owner))
        .await
        .expect("found")
}

#[tokio::test]
async fn words_are_counted_when_a_project_has_doubled() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    many(&db, &twin, 255).await;
    assert_eq!(due(&db).await, 0);
    many(&db, &twin, 1).await;
    assert_eq!(due(&db).await, 1);
    count(&db).await;
    assert_eq!(due(&db).await, 0);
    let mut admin = db.admin().await;
    let counted: Vec<(String, i64)> = sqlx::query_as(
        "select term, records from term_counts where term in ('common', 'needl', 'note')",
    )
    .fetch_all(&mut admin)
    .await
    .expect("counts");
    // A word that few hold is not kept.
    assert_eq!(
        counted,
        [("common".to_owned(), 256), ("note".to_owned(), 256)]
    );
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    tx.delete_record(ids(&["1"])[0], &reader(twin.owner), false, minute(1))
        .await
        .expect("deleted");
    tx.commit().await.expect("commit");
    many(&db, &twin, 256).await;
    assert_eq!(due(&db).await, 0, "a deleted record no longer counts");
    many(&db, &twin, 1).await;
    assert_eq!(due(&db).await, 1);
}

#[tokio::test]
async fn two_who_count_at_once_do_it_once() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    many(&db, &twin, 256).await;
    let mut system = db.store.system("test").await.expect("begin");
    let (tenant, project) = system.find_uncounted(1).await.expect("found")[0];
    let mut one = db.store.tenant(tenant, "test").await.expect("begin");
    let mut other = db.store.tenant(tenant, "test").await.expect("begin");
    assert!(one.count_words(project).await.expect("counted"));
    assert!(!other.count_words(project).await.expect("refused"));
    one.commit().await.expect("commit");
    assert_eq!(due(&db).await, 0);
}

#[tokio::test]
async fn a_common_word_is_looked_for_among_the_newest_and_the_answer_says_so() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    many(&db, &twin, 1_100).await;
    let uncounted = ask(&db, &twin, "common", false).await;
    assert_eq!((uncounted.matches, uncounted.partial), (1_100, false));
    count(&db).await;
    let counted = ask(&db, &twin, "common", false).await;
    assert_eq!((counted.matches, counted.partial), (500, true));
    assert_eq!(counted.ranked.len(), cairn_domain::limits::RANKED);
    assert!(counted.ranked.iter().all(|(id, _)| id.number > 600));
    // A rare word finds its record, however old; the common one beside it widens nothing.
    for query in ["needle", "common needle"] {
        let found = ask(&db, &twin, query, false).await;
        assert_eq!(
            (found.ranked[0].0.number, found.matches, found.partial),
            (4, 1, false)
        );
    }
    // What was written since is found by words that nobody has counted.
    record(&db.store, &twin, twin.owner, &[observation("fresh walnut")]).await;
    assert_eq!(ask(&db, &twin, "common walnut", false).await.matches, 1);
}

#[tokio::test]
async fn the_way_out_looks_at_the_newest_records_alone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    many(&db, &twin, 2_100).await;
    let needle = ask(&db, &twin, "needle", true).await;
    assert_eq!((needle.matches, needle.partial), (0, true));
    let common = ask(&db, &twin, "common", true).await;
    assert_eq!((common.matches, common.partial), (200, true));
    assert_eq!(common.ranked.len(), 200);
    assert!(common.ranked.iter().all(|(id, _)| id.number > 1_900));
}

#[tokio::test]
async fn vectors_of_an_older_analyser_are_rebuilt_and_nothing_else_changes() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        observation("walnut pool"),
        summary("walnut leak"),
        prompt("walnut please"),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut admin = db.admin().await;
    let before = rows(&mut admin).await;
    run(
        &mut admin,
        "update records set analyser = 0, tsv = '''old''', field_lengths = '{0,0,0,0}'",
    )
    .await;
    assert_eq!(ask(&db, &twin, "walnut", false).await.matches, 0);
    let mut system = db.store.system("test").await.expect("begin");
    assert_eq!(system.find_stale(10).await.expect("found"), [twin.tenant]);
    for rebuilt in [2, 1, 0] {
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        assert_eq!(tx.reindex(2).await.expect("rebuilt"), rebuilt);
        tx.commit().await.expect("commit");
    }
    assert_eq!(ask(&db, &twin, "walnut", false).await.matches, 3);
    assert_eq!(system.find_stale(10).await.expect("found"), []);
    assert_eq!(rows(&mut admin).await, before);
}

#[tokio::test]
async fn a_record_is_ranked_by_the_words_it_has_now_and_by_its_own_tenants() {
    let db = TestDb::new().await;
    let (twin, other) = db.twins;
    let long = observation("a note on walnut and on very many other things beside it");
    let titles = [observation("walnut"), long];
    record(&db.store, &twin, twin.owner, &titles).await;
    // The same numbers, the other way round.
    let [short, long] = titles;
    record(&db.store, &other, other.owner, &[long, short]).await;
    let order = async |twin: &Twin| -> Vec<i64> {
        let found = ask(&db, twin, "walnut", false).await.ranked;
        found.into_iter().map(|(id, _)| id.number).collect()
    };
    for _ in 0..2 {
        assert_eq!(order(&twin).await, [1, 2]);
        assert_eq!(order(&other).await, [2, 1]);
    }
    let swap = "update records r set tsv = o.tsv, profile = o.profile,
          field_lengths = o.field_lengths
        from records o where o.tenant_id = r.tenant_id and o.number = 3 - r.number";
    run(&mut db.admin().await, swap).await;
    assert_eq!(order(&twin).await, [2, 1]);
    assert_eq!(order(&other).await, [1, 2]);
    // A row without a profile is ranked from its vector.
    run(&mut db.admin().await, "update records set profile = null").await;
    assert_eq!(order(&twin).await, [2, 1]);
}

/// All of every row.
async fn rows(admin: &mut PgConnection) -> Vec<String> {
    let rows = sqlx::query("select to_jsonb(r)::text from records r order by position")
        .fetch_all(admin)
        .await
        .expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(admin)
        .await
        .expect("the superuser may");
}
