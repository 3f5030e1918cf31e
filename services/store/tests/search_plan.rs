//! What search statements read. Under a row policy the words index could not be used, and nothing
//! but the time would tell: so the plans themselves are looked at.

#[path = "support/plans.rs"]
mod plans;
mod support;

use cairn_domain::filter::Filter;
use cairn_domain::ids::{ProjectId, RecordId, RecordKind};
use cairn_domain::listing::ListPlace;
use cairn_domain::project::{ProjectSet, Reader};
use cairn_domain::text::terms;
use cairn_store::search::{Question, Walk, Words};
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::{Store, StoreOptions};
use plans::{Notices, explain_everything};
use sqlx::{AssertSqlSafe, PgConnection};
use support::*;
use uuid::Uuid;

/// What each question may read of a million rows. Rare words are looked up by both columns of the
/// words index; common ones, and the way out of a question that takes too long, walk from the
/// newest and stop.
#[tokio::test]
async fn at_a_million_rows_every_search_statement_reads_little() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let mut admin = db.admin().await;
    million(&mut admin, &twin, &db.twins.1).await;
    let notices = Notices::default();
    let _heard = tracing::subscriber::set_default(notices.clone());
    explain_everything(&mut admin).await;
    let options = StoreOptions {
        url: db.app_url.clone(),
        pool: 1,
    };
    let store = Store::connect(&options).await.expect("connected");
    let everything = Filter::default();
    let by_file = Filter {
        files: vec!["src/f77.rs".to_owned()],
        ..Filter::default()
    };
    let late = Filter {
        from: Some(minute(16_000)),
        ..Filter::default()
    };
    let one_kind = Filter {
        kinds: vec![RecordKind::Observation],
        ..Filter::default()
    };
    let without: Vec<RecordId> = (1..=300)
        .map(|n| RecordId::observation(n * 1_000))
        .collect();
    let one = ProjectId {
        key: project_key(&mut admin).await,
        uuid: Uuid::nil(),
    };
    for projects in [ProjectSet::All, ProjectSet::Only(vec![one])] {
        let reader = Reader {
            principal: twin.owner,
            projects,
        };
        for (query, filter, expected) in [
            ("r777", &everything, Plan::Words),
            ("w77", &everything, Plan::Words),
            ("w77 common", &everything, Plan::Words),
            ("w77", &by_file, Plan::Words),
            ("common", &everything, Plan::Newest),
            ("common", &late, Plan::Newest),
            ("common every", &everything, Plan::Newest),
        ] {
            let terms = terms(query);
            for recent in [false, true] {
                notices.clear();
                let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
                let question = Question {
                    recent,
                    ..Question::new(&terms, filter)
                };
                tx.search(&question, &reader).await.expect("found");
                let expected = if recent { Plan::Newest } else { expected };
                expected.holds(&notices.plans_of_records(), query);
            }
        }
        for (query, words, filter, expected) in [
            ("r777", Words::All, &everything, Plan::Words),
            ("w77 r777", Words::Any, &everything, Plan::Page),
            ("w77 common", Words::All, &everything, Plan::Page),
            ("", Words::All, &by_file, Plan::Words),
            ("common", Words::All, &everything, Plan::Newest),
            ("common every", Words::All, &late, Plan::Newest),
            ("", Words::All, &everything, Plan::Newest),
            ("", Words::All, &late, Plan::Newest),
            ("", Words::All, &one_kind, Plan::Newest),
        ] {
            let terms = terms(query);
            for (recent, walk) in walks(&without) {
                notices.clear();
                let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
                let question = Question {
                    words,
                    recent,
                    upto: Some([1_000_000, 0, 0].into()),
                    ..Question::new(&terms, filter)
                };
                let found = tx.search_in_time(&question, &walk, &reader).await;
                found.expect("found");
                let expected = if recent { Plan::Newest } else { expected };
                let what = format!("{query} {words:?} {filter:?} {walk:?}");
                expected.holds(&notices.plans_of_records(), &what);
            }
        }
        notices.clear();
        let mut tx = store.tenant(twin.tenant, "test").await.expect("begin");
        let some = ids(&["777", "77777"]);
        tx.get_rows(&some, &reader).await.expect("rows");
        tx.get_records(&some, &reader).await.expect("records");
        tx.get_listed(&some, &reader).await.expect("listed");
        tx.timeline(&some, 3, 3, &reader).await.expect("timelines");
        Plan::Keys.holds(&notices.plans_of_records(), "rows and timelines");
    }
}

/// The first page, which counts what there is; one far behind it; one beside what a ranking has
/// shown; the way out. Each in both directions.
fn walks(without: &[RecordId]) -> Vec<(bool, Walk<'_>)> {
    let counted = Walk {
        limit: 1_001,
        ..Walk::default()
    };
    let behind = Walk {
        after: Some(ListPlace {
            at: minute(8_000),
            id: RecordId::observation(480_000),
        }),
        limit: 21,
        ..Walk::default()
    };
    let beside = Walk { without, ..behind };
    let first = Walk {
        limit: 21,
        ..counted
    };
    let down = [
        (false, counted),
        (false, behind),
        (false, beside),
        (false, first),
        (true, counted),
    ];
    let up = down.map(|(recent, walk)| {
        let ascending = true;
        (recent, Walk { ascending, ..walk })
    });
    [down, up].concat()
}

/// How records are found.
#[derive(Clone, Copy)]
enum Plan {
    Words,
    Newest,
    /// By words, or from the newest until a page is full, whichever the statistics favour.
    Page,
    Keys,
}

impl Plan {
    fn holds(self, plans: &[String], query: &str) {
        assert!(!plans.is_empty(), "{query}: nothing was explained");
        for plan in plans {
            assert!(!plan.contains("Seq Scan on records"), "{query}:\n{plan}");
            let most = plan.lines().filter_map(rows_read).max().unwrap_or(0);
            let bound = if matches!(self, Self::Page) {
                50_000
            } else {
                2_100
            };
            assert!(most <= bound, "{query} reads {most} rows:\n{plan}");
            if plan.contains("Tid Scan on records") || plan.contains("(number = u.number)") {
                // What another statement has found, read where it stands or by its key.
                continue;
            }
            let by_words = |line: &str| {
                let condition = line.contains("Index Cond") && line.contains("tsv @@");
                condition && line.contains("tenant_id =")
            };
            match self {
                Self::Words => assert!(plan.lines().any(by_words), "{query}:\n{plan}"),
                Self::Page => {}
                Self::Newest | Self::Keys => {
                    assert!(!plan.contains("_tsv_idx"), "{query}:\n{plan}");
                }
            }
        }
    }
}

/// Rows that a scan of records gave or threw away.
fn rows_read(line: &str) -> Option<u64> {
    let rest = match line.split_once("Rows Removed by Filter: ") {
        Some((_, rest)) => rest,
        None if line.contains("records") => line.split_once("(actual rows=")?.1,
        None => return None,
    };
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// A million records of one tenant in ten projects, in the order of time.
async fn million(admin: &mut PgConnection, twin: &Twin, other: &Twin) {
    let rows = r"
        set session_replication_role = replica;
        insert into projects (tenant_id, key, key_folded, name, name_folded, position, records,
          counted_records)
        select $TENANT, 'p' || g, 'p' || g, 'p' || g, 'p' || g, g, 100000, 100000
        from generate_series(1, 10) g;
        insert into projects (tenant_id, key, key_folded, name, name_folded, position)
        select $OTHER, 'q' || g, 'q' || g, 'q' || g, 'q' || g, g from generate_series(1, 4000) g;
        insert into term_counts (tenant_id, project_id, term, records)
        select $TENANT, p.project_id, t.term, t.records
        from projects p, (select 'common' as term, 100000 as records
          union all select 'everi', 100000
          union all select 'w' || g, 100 from generate_series(0, 999) g) t;
        insert into records (tenant_id, kind, number, project_id, author_id, at, position,
          private, subagent, analyser, field_lengths, title, tsv)
        select $TENANT, 0, g, p.low + g % 10, $AUTHOR,
          timestamptz '2026-10-10' + g * interval '1 second', g, false, false, 1,
          '{4,0,0,0}', 'title ' || g,
          ('''common'':1A ''everi'':2A ''w' || g / 10 % 1000 || ''':3A ''r' || g || ''':4A '
            || '''src/f' || g % 1000 || '.rs'':105D')::tsvector
        from generate_series(1, 1000000) g,
          (select min(project_id) as low from projects where tenant_id = $TENANT) p;
        insert into observations (tenant_id, number, event_id, arrived_at, origin, subtitle,
          narrative, facts, files_read, files_read_more, files_modified, files_modified_more,
          tool_uses)
        select $TENANT, n, gen_random_uuid(), now(), 'api', '', '', '{}', '{}', 0, '{}', 0, '{}'
        from unnest(array[777, 77777]) n;
        reset session_replication_role";
    let rows = rows.replace("$OTHER", &other.tenant.key().to_string());
    let rows = rows.replace("$TENANT", &twin.tenant.key().to_string());
    run(admin, &rows.replace("$AUTHOR", &twin.owner.key.to_string())).await;
    run(
        admin,
        "vacuum analyze records, projects, principals, term_counts",
    )
    .await;
}

async fn project_key(admin: &mut PgConnection) -> i32 {
    sqlx::query_scalar("select min(project_id) from projects")
        .fetch_one(admin)
        .await
        .expect("a project")
}

#[tokio::test]
async fn the_pending_lists_of_the_words_index_are_emptied_on_request() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[observation("waiting")]).await;
    let mut admin = db.admin().await;
    let clean = |db: &TestDb| {
        let store = db.store.clone();
        async move {
            let mut system = store.system("test").await.expect("begin");
            let pages = system.clean_search_index().await.expect("cleaned");
            system.commit().await.expect("commit");
            pages
        }
    };
    assert!(clean(&db).await > 0);
    assert_eq!(clean(&db).await, 0);
    let others: i64 = sqlx::query_scalar(
        "select coalesce(sum(gin_clean_pending_list(indexrelid)), 0)::bigint from pg_index
         join pg_class c on c.oid = indexrelid join pg_am a on a.oid = c.relam
         where a.amname = 'gin' and c.relkind = 'i'",
    )
    .fetch_one(&mut admin)
    .await
    .expect("pages");
    assert_eq!(others, 0, "no list is left out");
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let query = terms("waiting");
    let found = search_index(&mut tx, &query, &reader(twin.owner), 20).await;
    assert_eq!(found.expect("search").len(), 1);
}

#[tokio::test]
async fn vectors_stay_in_the_row_compressed() {
    let db = TestDb::new().await;
    let kept: Vec<String> = sqlx::query_scalar(
        "select distinct a.attstorage::text || a.attcompression::text
         from pg_attribute a join pg_class c on c.oid = a.attrelid
         where c.relname like 'records%' and c.relkind in ('r', 'p') and a.attname = 'tsv'",
    )
    .fetch_all(&mut db.admin().await)
    .await
    .expect("the catalogue");
    assert_eq!(kept, ["ml"]);
}

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(admin)
        .await
        .expect("the superuser may");
}
