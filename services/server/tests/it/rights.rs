//! What people can ask of their data: to have it out, to take it in again, to have it gone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cairn_domain::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::support::{Caller, Reply, TestApp, item};

/// How long what goes on by itself may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often it is looked at.
const POLL: Duration = Duration::from_millis(50);

/// The lines of an export that must be whole.
pub fn lines(text: &str) -> Vec<Value> {
    let all: Vec<&str> = text.lines().collect();
    let parsed = all
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let mut parsed: Vec<Value> = parsed.collect();
    let end = parsed.pop().expect("a last line");
    let before = &text[..text.len() - all[all.len() - 1].len() - 1];
    assert_eq!(end["sha256"], hex(&Sha256::digest(before.as_bytes())));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &parsed[1..] {
        *counts
            .entry(line["kind"].as_str().expect("a kind"))
            .or_default() += 1;
    }
    assert_eq!(end["counts"], json!(counts));
    assert_eq!(parsed[0]["cairn_export"], 1);
    parsed
}

/// An export of these lines, with a last line that fits.
pub fn file(lines: &[Value]) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &lines[1..] {
        *counts
            .entry(line["kind"].as_str().unwrap_or_default())
            .or_default() += 1;
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let end = json!({"cairn_export_end": 1, "counts": counts,
        "sha256": hex(&Sha256::digest(text.as_bytes()))});
    format!("{text}{end}\n")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub async fn export(caller: &Caller, query: &str) -> String {
    let reply = caller.get(&format!("/v1/export?{query}")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "application/x-ndjson");
    reply.text
}

pub async fn import(caller: &Caller, query: &str, text: &str) -> Reply {
    let request = caller.request(Method::POST, &format!("/v1/import?{query}"));
    let request = request.header("Content-Type", "application/x-ndjson");
    caller.send(request.body(text.to_owned())).await
}

/// What is said of lines, without what another numbering or another hour makes of them.
pub fn contents(lines: &[Value]) -> Vec<String> {
    let content = |line: &Value| {
        let mut line = line.as_object().expect("an object").clone();
        for name in ["id", "position", "origin", "imported_id", "imported_author"] {
            line.remove(name);
        }
        if let Some(observation) = line.get_mut("observation") {
            let own = observation.as_object_mut().expect("an object");
            own.remove("tool_uses");
        }
        if let Some(tool_use) = line.get_mut("tool_use") {
            tool_use
                .as_object_mut()
                .expect("an object")
                .remove("observation");
        }
        // In one order, whoever wrote the line.
        let sorted: BTreeMap<String, Value> = line.into_iter().collect();
        json!(sorted).to_string()
    };
    let mut contents: Vec<String> = lines[1..].iter().map(content).collect();
    contents.sort();
    contents
}

fn stored(answer: &Value) -> u64 {
    let counts = answer["counts"].as_object().expect("counts").values();
    counts
        .map(|counts| counts["stored"].as_u64().expect("a number"))
        .sum()
}

/// Some of everything, by both members.
async fn remember(app: &TestApp) -> (Caller, Caller) {
    let (owner, member) = (app.owner().await, app.member().await);
    let call = json!({"tool": "Bash", "host_tool_use_id": "tu_1", "input": "{}", "output": "\"out\"",
        "failed": true, "files": ["Makefile"]});
    owner
        .events(vec![
            item(
                "session_start",
                json!({"source": "startup", "model": "m-1"}),
            ),
            item("prompt", json!({"text": "why does the pool leak?"})),
            item("tool_use", call.clone()),
            item("tool_use", call),
            item("turn_end", json!({"last_reply": "it does not"})),
            item(
                "observation",
                json!({"type": "bugfix", "title": "pool leak", "narrative": "it leaked",
                    "facts": ["20 at most"], "concepts": ["gotcha"], "files_read": ["src/a.rs"],
                    "work_tokens": 1_800, "tool_uses": ["T2"]}),
            ),
            item(
                "summary",
                json!({"request": "mend the pool", "learned": "a lot"}),
            ),
            item(
                "work_entry",
                json!({"list": "pool", "fields": {"task": "mend", "status": "todo"}}),
            ),
            item(
                "work_entry",
                json!({"list": "pool", "fields": {"task": "mend", "n": 1}}),
            ),
            item("session_end", json!({"reason": "exit"})),
        ])
        .await
        .ok();
    let mut private = item("observation", json!({"title": "ben's secret"}));
    private["visibility"] = json!("private");
    let open = item("observation", json!({"title": "ben's word"}));
    member.events(vec![private, open]).await.ok();
    (owner, member)
}

#[tokio::test]
async fn an_export_holds_what_its_reader_may_read_in_order() {
    let app = TestApp::start().await;
    let (owner, member) = remember(&app).await;
    let all = lines(&export(&owner, "project=*").await);
    assert_eq!(all[0]["tenant"], "acme");
    let kinds: Vec<&str> = all[1..]
        .iter()
        .map(|l| l["kind"].as_str().expect("a kind"))
        .collect();
    let wanted = [
        "session",
        "tool_use",
        "tool_use",
        "prompt",
        "observation",
        "summary",
        "work_entry",
        "work_entry",
        "observation",
    ];
    assert_eq!(kinds, wanted);
    let positions = all.iter().filter_map(|line| line["position"].as_i64());
    assert!(positions.is_sorted());
    assert_eq!(all[1]["model"], "m-1");
    assert_eq!(all[1]["end_reason"], "exit");
    assert_eq!(all[5]["observation"]["tool_uses"], json!(["T2"]));
    assert!(!all.iter().any(|line| line.to_string().contains("secret")));

    let own = lines(&export(&member, "author=me&project=*").await);
    assert!(own.iter().any(|line| line["visibility"] == "private"));
    assert!(
        own[1..]
            .iter()
            .all(|line| line["kind"] == "session" || line["author"] == "ben")
    );
    let some = lines(&export(&owner, "author=ben&kinds=observation,prompt").await);
    assert_eq!(
        some.iter()
            .filter(|line| line["kind"] == "observation")
            .count(),
        1
    );
    assert_eq!(
        owner.get("/v1/export?author=nobody").await.code(),
        "not_found"
    );
    assert_eq!(
        owner.get("/v1/export?kinds=skill").await.code(),
        "invalid_field"
    );
    let refused = member.get("/v1/export").await;
    assert_eq!(refused.code(), "insufficient_scope");

    // Without the right to read evidence there is none, and nothing names it.
    let scopes = [Scope::TenantAdmin, Scope::MemoryRead];
    let without = app.owner_with(&scopes).await;
    let seen = export(&without, "project=*").await;
    assert!(
        !seen.contains("tool_use\"") && !seen.contains("\"T2\""),
        "{seen}"
    );
    // A credential of one project hands out no other.
    owner
        .clone()
        .in_project("name:beta")
        .remember("beta", "beta")
        .await;
    let limited = app.limited_to("name:beta").await;
    let seen = lines(&export(&limited, "project=*").await);
    assert!(seen[1..].iter().all(|line| line["project"] == "name:beta"));
}

#[tokio::test]
async fn an_import_of_an_export_keeps_what_it_was_and_stores_it_once() {
    let app = TestApp::start().await;
    let (owner, _) = remember(&app).await;
    let text = export(&owner, "project=*").await;
    // Where it comes from, nothing is new.
    let again = import(&owner, "", &text).await.ok();
    assert_eq!(stored(&again), 0, "{again}");
    assert_eq!(again["counts"]["observation"]["duplicate"], 2);

    let stranger = app.stranger().await;
    stranger.remember("their own", "first of all").await;
    let dry = import(&stranger, "dry_run=true", &text).await.ok();
    let nothing = lines(&export(&stranger, "project=*").await);
    assert_eq!(
        nothing
            .iter()
            .filter(|l| l["kind"] == "observation")
            .count(),
        1
    );
    let first = import(&stranger, "", &text).await.ok();
    assert_eq!(
        (&dry["counts"], &dry["dry_run"]),
        (&first["counts"], &json!(true))
    );
    assert_eq!(first["counts"]["work_entry"]["stored"], 2, "{first}");
    assert_eq!(first["refused"], json!([]));
    let second = import(&stranger, "", &text).await.ok();
    assert_eq!(stored(&second), 0, "{second}");

    let theirs = export(&stranger, "project=*").await;
    let kept: Vec<Value> = lines(&theirs)
        .into_iter()
        .filter(|line| !line.to_string().contains("first of all"))
        .collect();
    let source = lines(&text);
    // Both have a session of the same name, which was there before.
    let events = |lines: &[Value]| -> Vec<Value> {
        lines
            .iter()
            .filter(|line| line["kind"] != "session")
            .cloned()
            .collect()
    };
    assert_eq!(contents(&events(&kept)), contents(&events(&source)));

    // Ids changed; old ones are told, kept and found.
    let leak = json!({"old": "1", "new": "2"});
    assert!(
        first["ids"].as_array().expect("ids").contains(&leak),
        "{first}"
    );
    let record = stranger.get("/v1/observations/2").await.ok();
    assert_eq!(record["imported_id"], "1");
    assert_eq!(record["origin"], "import");
    assert_eq!(record["observation"]["tool_uses"], json!(["T2"]));
    let summary = stranger.search(&[("query", "S1")]).await.ok();
    assert!(summary.to_string().contains("mend the pool"), "{summary}");
    let lists = [owner.open_work().await, stranger.open_work().await];
    let tasks = lists.map(|list| list.split(", updated").next().map(str::to_owned));
    assert_eq!(tasks[0], tasks[1]);
    let jobs = sqlx::query_scalar::<_, i64>("select count(*) from jobs where tenant_id = $1")
        .bind(app.db.twins.1.tenant.key())
        .fetch_one(&mut app.db.admin().await)
        .await;
    assert_eq!(
        jobs.expect("a count"),
        0,
        "nothing is observed a second time"
    );
}

#[tokio::test]
async fn authors_who_are_unknown_are_kept_by_name() {
    let app = TestApp::start().await;
    let (owner, _) = remember(&app).await;
    let text = export(&owner, "project=*")
        .await
        .replace("\"ben\"", "\"zoe\"");
    let mut all: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    all.pop();
    let text = file(&all);
    let stranger = app.stranger().await;
    import(&stranger, "", &text).await.ok();
    let found = lines(&export(&stranger, "author=importer&project=*").await);
    let word = found
        .iter()
        .find(|line| line["kind"] == "observation")
        .expect("one");
    assert_eq!(word["imported_author"], "zoe");
    assert_eq!(word["author"], "importer");
    // As oneself everything is one's own, and needs no more than writing.
    let writer = app
        .owner_with(&[Scope::MemoryWrite, Scope::WorkWrite, Scope::MemoryRead])
        .await;
    for line in &mut all[1..] {
        if line["event_id"].is_string() {
            line["event_id"] = json!(Uuid::new_v4());
        }
    }
    let own = import(&writer, "project=name:mine", &file(&all)).await.ok();
    assert_eq!(own["counts"]["observation"]["stored"], 2, "{own}");
    let mine = lines(&export(&owner, "project=name:mine").await);
    assert!(mine[1..].iter().all(|line| line["author"] == "ada"));
    let word = mine.iter().find(|l| l["imported_author"] == "zoe");
    assert!(word.is_some(), "{mine:?}");
}

#[tokio::test]
async fn what_is_no_whole_export_says_what_was_stored_of_it() {
    let app = TestApp::start().await;
    let (owner, _) = remember(&app).await;
    let stranger = app.stranger().await;
    let text = export(&owner, "project=*").await;
    let cut = text
        .lines()
        .take(6)
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let broken = import(&stranger, "", &cut).await;
    assert_eq!(broken.code(), "digest_mismatch");
    assert!(broken.text.contains("observation: 1 stored"), "{broken:?}");
    assert_eq!(
        import(&stranger, "", &text).await.ok()["counts"]["observation"]["stored"],
        1
    );
    assert_eq!(import(&stranger, "", "{}").await.code(), "malformed_body");
    let long = format!(
        "{}\n{}",
        text.lines().next().expect("a head"),
        "x".repeat(2_000_000)
    );
    assert_eq!(import(&stranger, "", &long).await.code(), "body_too_large");
    assert_eq!(
        import(&stranger, "project=nowhere", &text).await.code(),
        "not_found"
    );

    // A bad line holds up no other.
    let head: Value = serde_json::from_str(text.lines().next().expect("a head")).expect("JSON");
    let good = json!({"kind": "observation", "event_id": Uuid::new_v4(), "project": "name:p",
        "author": "ada", "at": "2026-10-01T00:00:00.000Z", "observation": {"title": "good"}});
    let mut no_title = good.clone();
    no_title["observation"] = json!({});
    let strange = json!({"kind": "skill", "event_id": Uuid::new_v4(), "project": "name:p"});
    let answer = import(&stranger, "", &file(&[head, no_title, strange, good]))
        .await
        .ok();
    assert_eq!(
        answer["counts"]["observation"],
        json!({"stored": 1, "duplicate": 0, "deleted": 0,
        "refused": 1})
    );
    let codes = answer["refused"].as_array().expect("refused").iter();
    let codes: Vec<&str> = codes
        .map(|line| line["code"].as_str().expect("a code"))
        .collect();
    assert_eq!(codes, ["empty_record", "unsupported_kind"]);
    assert_eq!(answer["refused"][0]["line"], 2);
}

#[tokio::test]
async fn what_is_purged_is_in_nothing_and_does_not_come_back() {
    let app = TestApp::start().await;
    let (owner, member) = remember(&app).await;
    let stranger = app.stranger().await;
    stranger.remember("pool leak of theirs", "theirs").await;
    let before = contents(&lines(&export(&stranger, "project=*").await));
    let kept = export(&owner, "project=*").await;
    let refused = owner.post("/v1/purge", json!({})).await;
    assert_eq!(refused.code(), "invalid_field");
    let ask = |dry_run: bool| json!({"author": "ada", "dry_run": dry_run});
    let counted = owner.post("/v1/purge", ask(true)).await.ok();
    let purged = owner.post("/v1/purge", ask(false)).await.ok();
    assert_eq!(counted["counts"], purged["counts"]);
    assert_eq!(
        purged["counts"],
        json!({"observation": 1, "summary": 1, "prompt": 1,
        "tool_use": 2, "work_entry": 2})
    );
    let left = export(&owner, "project=*").await;
    for word in ["leak", "mend", "pool", "it does not"] {
        assert!(!left.contains(word), "{word}: {left}");
    }
    let found = owner.search(&[("query", "pool leak")]).await.ok();
    assert!(!found.to_string().contains("it leaked"), "{found}");
    assert!(!owner.open_work().await.contains("mend"));
    let context = owner.get("/v1/context").await;
    assert!(!context.text.contains("leak") && context.text.contains("ben's word"));
    let by_file = owner
        .get("/v1/observations/by-file?path=src/a.rs")
        .await
        .ok();
    assert_eq!(by_file["items"], json!([]));
    for path in ["/v1/observations/1", "/v1/summaries/1", "/v1/prompts/1"] {
        assert_eq!(owner.get(path).await.code(), "not_found", "{path}");
    }
    // It stays away, whoever brings it back.
    let again = import(&owner, "", &kept).await.ok();
    assert_eq!(again["counts"]["observation"]["deleted"], 1, "{again}");
    assert_eq!(
        (
            stored(&again),
            export(&owner, "project=*").await.contains("leak")
        ),
        (0, false)
    );
    let refused = member.post("/v1/purge", ask(false)).await;
    assert_eq!(refused.code(), "insufficient_scope");
    assert_eq!(
        contents(&lines(&export(&stranger, "project=*").await)),
        before
    );
}

#[tokio::test]
async fn a_deleted_tenant_is_closed_at_once_on_every_replica() {
    let app = TestApp::start().await;
    let (owner, member) = remember(&app).await;
    let elsewhere = owner
        .clone()
        .at(&app.beside(crate::support::redis_continuations()).await);
    let delete = |caller: &Caller, name: &str| {
        let request = caller.request(Method::DELETE, "/v1/tenant");
        (caller.clone(), request.json(&json!({"confirm": name})))
    };
    let (caller, request) = delete(&member, "acme");
    assert_eq!(caller.send(request).await.code(), "insufficient_scope");
    let (caller, request) = delete(&owner, "other");
    assert_eq!(caller.send(request).await.code(), "invalid_field");
    assert_eq!(elsewhere.get("/v1/me").await.status, 200);
    let (caller, request) = delete(&owner, "acme");
    assert_eq!(caller.send(request).await.status, 202);
    assert_eq!(owner.get("/v1/me").await.status, 401);
    assert_eq!(member.get("/v1/me").await.status, 401);
    let began = Instant::now();
    while elsewhere.get("/v1/me").await.status != 401 {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "closed within ten seconds"
        );
        tokio::time::sleep(POLL).await;
    }
    let mut system = app.db.store.system("test").await.expect("begin");
    assert_eq!(system.find_tenant("acme").await.expect("find"), None);
    drop(system);
    let mut admin = app.db.admin().await;
    let left = "select (select count(*) from records where tenant_id = $1)
        + (select count(*) from events where tenant_id = $1)
        + (select count(*) from principals where tenant_id = $1)
        + (select count(*) from tenants where tenant_id = $1)";
    loop {
        let rows: i64 = sqlx::query_scalar(left)
            .bind(app.db.twins.0.tenant.key())
            .fetch_one(&mut admin)
            .await
            .expect("a count");
        if rows == 0 {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{rows} rows are left");
        tokio::time::sleep(POLL).await;
    }
    let stranger = app.stranger().await;
    assert_eq!(stranger.get("/v1/me").await.status, 200);
}

#[tokio::test]
async fn what_is_over_its_time_goes_while_the_service_serves() {
    let app = TestApp::start().await;
    let (owner, _) = remember(&app).await;
    let stranger = app.stranger().await;
    stranger
        .events(vec![item("prompt", json!({"text": "theirs"}))])
        .await
        .ok();
    let mut admin = app.db.admin().await;
    let tenant = app.db.twins.0.tenant.key();
    for old in [
        "update prompts set arrived_at = arrived_at - interval '8 days'",
        "update sessions set replied_at = replied_at - interval '8 days'",
        "update jobs set created_at = created_at - interval '8 days'",
        "update tool_uses set arrived_at = arrived_at - interval '29 days'",
        "update observations set arrived_at = arrived_at - interval '1000 days'",
    ] {
        sqlx::query(old)
            .execute(&mut admin)
            .await
            .expect("made old");
    }
    sqlx::query(
        "insert into usage_days (tenant_id, day, principal_id, requests)
         select $1, now()::date - ago, $2, ago from unnest('{399, 402}'::int[]) ago",
    )
    .bind(tenant)
    .bind(app.db.twins.0.owner.key)
    .execute(&mut admin)
    .await
    .expect("used long ago");
    sqlx::query(
        "update tenants set settings = '{\"retention_days\": {\"prompts\": 7}}', expired_at = null
         where tenant_id = $1",
    )
    .bind(tenant)
    .execute(&mut admin)
    .await
    .expect("set");
    let began = Instant::now();
    while owner.get("/v1/prompts/1").await.status != 404 {
        assert!(began.elapsed() < DEADLINE, "the prompt is still there");
        tokio::time::sleep(POLL).await;
    }
    // What was said goes with what was asked.
    let said = "select count(*) from sessions s where tenant_id = $1 and (last_reply is not null
          or exists (select from jobs where session_id = s.session_id and payload <> '{}'))";
    loop {
        let left: i64 = sqlx::query_scalar(said)
            .bind(tenant)
            .fetch_one(&mut admin)
            .await
            .expect("a count");
        if left == 0 {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "what was said is still there");
        tokio::time::sleep(POLL).await;
    }
    assert_eq!(owner.get("/v1/observations/1").await.status, 200);
    let evidence = owner
        .post("/v1/tool-uses/batch", json!({"ids": ["T1"]}))
        .await
        .ok();
    assert_eq!(evidence["items"].as_array().expect("items").len(), 1);
    assert_eq!(stranger.get("/v1/prompts/1").await.status, 200);
    // Usage is kept for 400 days.
    let old = "select requests from usage_days where tenant_id = $1 and requests > 300
               order by requests";
    loop {
        let left: Vec<i64> = sqlx::query_scalar(old)
            .bind(tenant)
            .fetch_all(&mut admin)
            .await
            .expect("rows");
        if left == [399] {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{left:?}");
        tokio::time::sleep(POLL).await;
    }
}
