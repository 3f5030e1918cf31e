//! Secrets and private passages through every way in: none is in any table, index, key of Redis,
//! line of the log or answer afterwards.

use cairn_server::admin;
use cairn_server::app::Clock;
use cairn_store::test_util::{PrivateRedis, TestDb};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::corpus::{
    Fake, all_values, fakes, holds, marked, portions, private_keys, private_marks, texts,
};
use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, TestApp, item, new_owner_key};

/// What of the corpus stands in a text.
fn left(text: &str) -> Vec<(&'static str, String)> {
    let all = all_values().into_iter();
    all.filter(|(_, value)| holds(text, value)).collect()
}

/// Every row of every table as text, tool uses unpacked, and the words that are searched.
async fn tables(db: &TestDb) -> String {
    let mut admin: PgConnection = db.admin().await;
    let names: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and not relispartition order by 1",
    )
    .fetch_all(&mut admin)
    .await
    .expect("tables");
    let mut text = String::new();
    for name in names {
        let rows = format!("select t::text from {name} t");
        let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(rows))
            .fetch_all(&mut admin)
            .await
            .expect("rows");
        text.push_str(&rows.join("\n"));
    }
    let packed: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as("select input, output from tool_uses")
        .fetch_all(&mut admin)
        .await
        .expect("rows");
    for side in packed
        .into_iter()
        .flat_map(|(input, output)| [input, output])
    {
        let side = zstd::bulk::decompress(&side, 1024 * 1024).expect("a text of ours");
        text.push_str(&String::from_utf8_lossy(&side));
    }
    text
}

/// The words that records are found by.
async fn lexemes(db: &TestDb) -> Vec<String> {
    sqlx::query_scalar("select distinct lexeme from records, unnest(tsv)")
        .fetch_all(&mut db.admin().await)
        .await
        .expect("words")
}

/// Sends the corpus through each kind of event.
async fn send_events(caller: &Caller) {
    for portion in portions() {
        let whole = portion.join("\n");
        let facts: Vec<&String> = portion.iter().take(50).collect();
        let items = vec![
            item("prompt", json!({"text": format!("go {whole}")})),
            item(
                "tool_use",
                json!({"tool": "Bash",
                "input": json!({"command": whole, "list": portion}).to_string(),
                "output": json!({"stdout": whole}).to_string()}),
            ),
            item(
                "tool_use",
                json!({"tool": "Bash", "input": whole, "output": "null"}),
            ),
            item("turn_end", json!({"last_reply": whole})),
            item(
                "observation",
                json!({"title": portion[0], "subtitle": portion[1],
                "narrative": whole, "facts": facts}),
            ),
            item(
                "summary",
                json!({"request": portion[2], "investigated": whole,
                "learned": whole, "notes": whole}),
            ),
        ];
        let answer = caller.events(items).await.ok();
        let statuses = answer["items"].as_array().expect("items").iter();
        assert!(
            statuses.clone().all(|item| item["status"] == "stored"),
            "{answer}"
        );
    }
}

/// Sends one secret in every short field there is.
async fn send_names(caller: &Caller, fake: &Fake) {
    let value = &fake.value;
    let mut event = item(
        "observation",
        json!({"title": texts(fake)[0],
        "files_read": [format!("src/{value}/a.rs")], "files_modified": [value]}),
    );
    event["branch"] = json!(format!("fix/{value}"));
    event["checkout"] = json!(format!("~/src/{value}"));
    event["agent_id"] = json!(value);
    event["agent_type"] = json!(value);
    let mut start = item("session_start", json!({"source": value, "model": value}));
    start["session"] = json!({"host": "claude-code", "id": format!("s {value}")});
    let mut end = item("session_end", json!({"reason": value}));
    end["session"] = start["session"].clone();
    let mut elsewhere = item("observation", json!({"title": "elsewhere"}));
    elsewhere["project"] = json!({"key": format!("name:{value}"), "name": value});
    let entry = item(
        "work_entry",
        json!({"list": format!("list {value}"),
        "fields": {"task": format!("rotate {value}"), value.as_str(): value, "password": value}}),
    );
    // What is refused is answered in words that may be kept at the other end.
    let odd = item(&format!("odd {value}"), json!({}));
    let answer = caller
        .events(vec![event, start, end, elsewhere, entry, odd])
        .await;
    assert!(!holds(&answer.text, value), "{}", answer.text);
}

async fn send_by_hand(caller: &Caller, fake: &Fake) {
    let value = &fake.value;
    for text in texts(fake) {
        let saved = caller.tool("save_memory", json!({ "text": text })).await;
        assert!(!saved.1 && !holds(&saved.0, value), "{saved:?}");
    }
    let body = json!({"title": texts(fake)[0], "facts": texts(fake)});
    let stored = caller.post("/v1/observations", body).await;
    assert!(
        stored.status.is_success() && !holds(&stored.text, value),
        "{stored:?}"
    );
    let fields =
        json!({"task": texts(fake)[0], "api_key": value, "name": "API_KEY", "value": value});
    let written = caller
        .work(&format!("by hand {value}"), fields.clone())
        .await;
    assert!(
        written.status.is_success() && !holds(&written.text, value),
        "{written:?}"
    );
    let arguments = json!({"list": "tool", "fields": fields});
    let (text, is_error) = caller.tool("work_state_write", arguments).await;
    assert!(!is_error && !holds(&text, value), "{text}");
}

/// Asks for a secret wherever something can be asked for.
async fn ask(caller: &Caller, value: &str) {
    let words = format!("where is {value}");
    let found = caller.mem_search(json!({ "query": words })).await;
    assert!(!holds(&found.text, value), "{}", found.text);
    for kind in ["observation", "tool_use"] {
        let found = caller.search(&[("query", &words), ("kind", kind)]).await;
        assert!(!holds(&found.text, value), "{}", found.text);
    }
    let none = caller
        .search(&[("query", &words), ("project", value)])
        .await;
    assert!(!holds(&none.text, value), "{}", none.text);
    caller
        .tool("mem_search", json!({"query": words, "colour": value}))
        .await;
    caller.get("/v1/context").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c065_nothing_of_the_corpus_is_anywhere_in_the_service() {
    let db = TestDb::new().await;
    let redis = PrivateRedis::start();
    let url = redis.url();
    let replica = Replica::with_settings(
        &db.app_url,
        &[("CAIRN_LOG", "trace"), ("CAIRN_REDIS_URL", &url)],
    );
    let key = new_owner_key(&db).await;
    let caller = Caller::new(&replica.base, Some(&key)).in_project(PROJECT);
    send_events(&caller).await;
    for fake in fakes()
        .iter()
        .filter(|fake| fake.around.is_empty())
        .step_by(7)
    {
        send_names(&caller, fake).await;
        send_by_hand(&caller, fake).await;
        ask(&caller, &fake.value).await;
    }
    assert!(!private_keys().is_empty());
    let stored = tables(&db).await;
    assert!(
        stored.contains("[redacted:github-token]") && stored.contains("[redacted:private-key]")
    );
    assert_eq!(left(&stored), []);
    let words = lexemes(&db).await.join(" ");
    let pieces = all_values()
        .into_iter()
        .map(|(_, value)| value.to_lowercase());
    let found: Vec<String> = pieces.filter(|value| holds(&words, value)).collect();
    assert_eq!(found, Vec::<String>::new());
    let kept = redis.dump();
    assert!(!kept.is_empty());
    assert_eq!(left(&kept), []);
    assert_eq!(left(&replica.log()), []);
    assert!(replica.log().len() > 1_000);
}

#[tokio::test]
async fn c065_secrets_that_the_user_never_typed() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let token = ["gh", "p_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE"].concat();
    let key = ["FAKE/FAKE+", "FAKEFAKEFAKEFAKEFAKEFAKE00"].concat();
    let bearer = ["sk", "-FAKEFAKEFAKEFAKEFAKE"].concat();
    let input = json!({"command": format!("export API_TOKEN={token}"),
        "env": {"AWS_SECRET_ACCESS_KEY": key}});
    let output = json!({"stdout": format!("Authorization: Bearer {bearer}\ntoken count: 1200"),
        "stderr": "postgres://u:FAKEPW@db.example/x"});
    let body = json!({"tool": "Bash", "input": input.to_string(), "output": output.to_string()});
    caller.events(vec![item("tool_use", body)]).await.ok();
    let (text, _) = caller.tool("get_tool_uses", json!({"ids": ["T1"]})).await;
    for kept in [
        "export API_TOKEN=[redacted:github-token]",
        "AWS_SECRET_ACCESS_KEY",
        "[redacted:access-key]",
        "Authorization: Bearer [redacted:api-key]",
        "token count: 1200",
        "postgres://u:[redacted:password]@db.example/x",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    let stored = tables(&app.db).await;
    for fake in [token.as_str(), &key, &bearer, "FAKEPW"] {
        assert!(!stored.contains(fake), "{fake}");
    }
}

#[tokio::test]
async fn c064_private_marks_that_are_not_well_formed() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    for (text, kept) in private_marks(&marked()) {
        let body = json!({"title": text, "narrative": text, "facts": [text]});
        let stored: Value = caller.post("/v1/observations", body).await.ok();
        assert_eq!(stored["observation"]["title"], kept, "{text}");
        let tool = json!({"tool": "Bash", "input": json!({"c": text}).to_string(), "output": text});
        let prompt = json!({ "text": text });
        caller
            .events(vec![item("prompt", prompt), item("tool_use", tool)])
            .await
            .ok();
    }
    assert!(!tables(&app.db).await.contains(&marked()));
    let stays = json!({"title": format!("x </private> {} stays", marked())});
    caller.post("/v1/observations", stays).await.ok();
    assert!(tables(&app.db).await.contains(&marked()));
}

#[tokio::test]
async fn the_operator_has_stored_rows_read_again() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let fake = fakes().swap_remove(16);
    caller.remember("a title", "a narrative").await;
    caller.work("a list", json!({"task": "a task"})).await.ok();
    let mut db = app.db.admin().await;
    for spoil in [
        "update records set redacted = 0, title = 'now ' || $1",
        "update work_entries set redacted = 0, fields = '{\"task\":\"' || $1 || '\"}', task = $1",
    ] {
        sqlx::query(spoil)
            .bind(&fake.value)
            .execute(&mut db)
            .await
            .expect("spoilt");
    }
    assert!(
        caller
            .get("/v1/observations")
            .await
            .text
            .contains(&fake.value)
    );
    let tenant = app.db.twins.0.tenant;
    let counts = admin::redact_tenant(&app.app.store, &Clock::system(), tenant, false).await;
    let counts = counts.expect("read again");
    let changed: Vec<u64> = counts.iter().map(|(_, done)| done.changed).collect();
    assert_eq!(changed, [1, 0, 1, 0, 0, 0]);
    assert!(!tables(&app.db).await.contains(&fake.value));
    let listed = caller.get("/v1/observations").await.ok();
    assert_eq!(listed["items"][0]["title"], "now [redacted:github-token]");
    assert!(caller.open_work().await.contains("[redacted:github-token]"));
}
