//! The search function uses the words index. Under a row policy it could not, and nothing but
//! the time would tell: so the plan itself is looked at.

mod support;

use cairn_store::test_util::TestDb;
use sqlx::{AssertSqlSafe, PgConnection};
use support::*;

#[tokio::test]
async fn both_branches_of_the_function_look_words_up_in_the_index() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    for round in 0..4 {
        let events: Vec<_> = (0..500)
            .map(|n| observation(&format!("title number{round}x{n} of many")))
            .collect();
        record(&db.store, &twin, twin.owner, &events).await;
    }
    let mut admin = db.admin().await;
    // New words wait in a list that only a scan can search, until a vacuum sorts them in.
    run(&mut admin, "vacuum analyze records").await;
    let project: i32 = sqlx::query_scalar("select project_id from projects")
        .fetch_one(&mut admin)
        .await
        .expect("a project");
    let source: String =
        sqlx::query_scalar("select prosrc from pg_proc where proname = 'search_record_ids'")
            .fetch_one(&mut admin)
            .await
            .expect("the function");
    let queries: Vec<&str> = source
        .split("return query")
        .skip(1)
        .map(|rest| rest.split(';').next().expect("a statement"))
        .collect();
    assert_eq!(queries.len(), 2, "one for one project, one for several");
    run(&mut admin, "set role cairn_search").await;
    for query in queries {
        let query = with_arguments(query, twin.tenant.key(), project);
        let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!("explain {query}")))
            .fetch_all(&mut admin)
            .await
            .expect("a plan");
        let plan = plan.join("\n");
        assert!(plan.contains("_tsv_idx"), "{plan}");
        let condition = plan
            .lines()
            .find(|line| line.contains("Index Cond") && line.contains("tsv @@"));
        assert!(
            condition.is_some_and(|line| line.contains("tenant_id =")),
            "both columns of the index are used:\n{plan}"
        );
    }
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
    let query = cairn_domain::text::terms("waiting");
    let found = tx.search_index(&query, &reader(twin.owner), 20).await;
    assert_eq!(found.expect("search").len(), 1);
}

#[tokio::test]
async fn the_function_plans_each_call_anew() {
    let db = TestDb::new().await;
    let settings: Vec<String> = sqlx::query_scalar(
        "select unnest(proconfig) from pg_proc where proname = 'search_record_ids'",
    )
    .fetch_all(&mut db.admin().await)
    .await
    .expect("its settings");
    assert!(settings.contains(&"plan_cache_mode=force_custom_plan".to_owned()));
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

/// The function's own text, its variables replaced by values.
fn with_arguments(query: &str, tenant: i32, project: i32) -> String {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = query;
    while let Some(start) = rest.find(word) {
        let qualified = rest[..start].ends_with('.');
        text.push_str(&rest[..start]);
        let end = rest[start..]
            .find(|c| !word(c))
            .map_or(rest.len(), |n| start + n);
        let value = match &rest[start..end] {
            _ if qualified => None,
            "tenant" => Some(tenant.to_string()),
            "projects" => Some(format!("(array[{project}])")),
            "q" => Some("'number3x77'::tsquery".to_owned()),
            "viewer" => Some("1".to_owned()),
            "kinds" => Some("null::smallint[]".to_owned()),
            "team_prompts" => Some("false".to_owned()),
            "k" => Some("500".to_owned()),
            "n" => Some("20".to_owned()),
            _ => None,
        };
        text.push_str(value.as_deref().unwrap_or(&rest[start..end]));
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

async fn run(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(admin)
        .await
        .expect("the superuser may");
}
