//! Ingest: what is stored, what is answered, what a repeat does.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{PROJECT, TestApp, hold_counters, item};

fn statuses(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().expect("items");
    items
        .iter()
        .map(|item| item["status"].as_str().expect("a status"))
        .collect()
}

fn ids(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().expect("items");
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap_or("-"))
        .collect()
}

#[tokio::test]
async fn every_kind_is_stored_and_numbered_in_its_series() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let answer = caller
        .events(vec![
            item("session_start", json!({"source": "startup", "model": "m"})),
            item("prompt", json!({"text": "why does the pool leak?"})),
            item(
                "tool_use",
                json!({"tool": "Bash", "input": "{}", "output": "\"ok\""}),
            ),
            item(
                "tool_use",
                json!({"tool": "Read", "input": "{}", "output": "\"x\""}),
            ),
            item("turn_end", json!({"last_reply": "The pool leaked."})),
            item("observation", json!({"title": "pool leak"})),
            item("summary", json!({"request": "fix the leak"})),
            item(
                "work_entry",
                json!({"list": "auth", "fields": {"task": "t", "status": "todo"}}),
            ),
            item("session_end", json!({"reason": "exit"})),
            item("observation", json!({"narrative": "second"})),
        ])
        .await
        .ok();
    assert_eq!(statuses(&answer), ["stored"; 10]);
    assert_eq!(ids(&answer)[1..7], ["P1", "T1", "T2", "-", "1", "S1"]);
    assert_eq!(ids(&answer)[9], "2");
    // A new project, then five changes of records; tool uses and turns take no position.
    assert_eq!(answer["position"], 6);
}

#[tokio::test]
async fn c026_one_bad_record_in_a_batch() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let reply = caller
        .events(vec![
            item("observation", json!({"title": "a"})),
            item("no_such_type", json!({"title": "b"})),
            item("observation", json!({})),
            item("observation", json!({"title": "d"})),
        ])
        .await;
    assert_eq!(reply.status, 207);
    let answer = reply.json();
    assert_eq!(
        statuses(&answer),
        ["stored", "refused", "refused", "stored"]
    );
    assert_eq!(answer["items"][1]["code"], "unsupported_kind");
    assert_eq!(answer["items"][2]["code"], "empty_record");
    assert_eq!(answer["items"][2]["retry"], false);
    assert_eq!(ids(&answer), ["1", "-", "-", "2"]);
}

#[tokio::test]
async fn c031_two_honest_events_with_the_same_content() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let body = json!({"tool": "Bash", "input": "{\"command\":\"make test\"}", "output": "\"ok\""});
    let answer = caller
        .events(vec![item("tool_use", body.clone()), item("tool_use", body)])
        .await
        .ok();
    assert_eq!(ids(&answer), ["T1", "T2"]);
}

#[tokio::test]
async fn c019_a_repeat_gets_the_original_outcome_and_changes_nothing() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut event = item("observation", json!({"title": "pool leak fixed"}));
    let first = caller.events(vec![event.clone()]).await.ok();
    let again = caller.events(vec![event.clone(), event.clone()]).await.ok();
    assert_eq!(statuses(&again), ["duplicate", "duplicate"]);
    assert_eq!(ids(&again), [ids(&first)[0]; 2]);
    assert!(again["position"].is_null(), "nothing was written: {again}");
    assert!(again["items"][0]["event_id_reused"].is_null());
    event["body"]["title"] = json!("something else");
    let differs = caller.events(vec![event]).await.ok();
    assert_eq!(differs["items"][0]["event_id_reused"], true);
    let record = caller.get("/v1/observations/1").await.ok();
    assert_eq!(record["observation"]["title"], "pool leak fixed");
}

#[tokio::test]
async fn another_authors_event_id_reveals_nothing() {
    let app = TestApp::start().await;
    let (owner, member, stranger) = (app.owner().await, app.member().await, app.stranger().await);
    let event = item("observation", json!({"title": "mine"}));
    owner.events(vec![event.clone()]).await.ok();
    let reply = member.events(vec![event.clone()]).await;
    assert_eq!(reply.status, 207);
    let refused = &reply.json()["items"][0];
    assert_eq!(
        (&refused["code"], &refused["id"]),
        (&json!("event_id_reused"), &Value::Null)
    );
    let check = json!({"event_ids": [event["event_id"]]});
    let seen = member.post("/v1/events/check", check.clone()).await.ok();
    assert_eq!(statuses(&seen), ["unknown"]);
    // In another tenant the same id is free.
    assert_eq!(
        statuses(&stranger.events(vec![event]).await.ok()),
        ["stored"]
    );
    assert_eq!(
        statuses(&owner.post("/v1/events/check", check).await.ok()),
        ["stored"]
    );
}

#[tokio::test]
async fn c022_a_deleted_record_stays_deleted_and_c023_its_words_may_return() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let event = item("observation", json!({"title": "use pgvector"}));
    caller.events(vec![event.clone()]).await.ok();
    for _ in 0..2 {
        assert_eq!(caller.delete("/v1/observations/1").await.status, 204);
    }
    assert_eq!(caller.get("/v1/observations/1").await.code(), "not_found");
    let replay = caller.events(vec![event]).await;
    assert_eq!(
        (replay.status.as_u16(), statuses(&replay.json())),
        (200, vec!["deleted"])
    );
    let empty = caller.mem_search(json!({"query": "pgvector"})).await.ok();
    assert_eq!(empty["reason"], "no_results");
    let again = caller.remember("use pgvector", "").await;
    assert_eq!(again, "2");
    let found = caller.mem_search(json!({"query": "pgvector"})).await.ok();
    assert_eq!(found["rows"][0]["id"], "2");
}

#[tokio::test]
async fn check_tells_stored_deleted_and_unknown_in_order() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let (kept, gone) = (
        item("observation", json!({"title": "kept"})),
        item("observation", json!({"title": "gone"})),
    );
    caller.events(vec![kept.clone(), gone.clone()]).await.ok();
    caller.delete("/v1/observations/2").await;
    let asked = json!({"event_ids": [Uuid::now_v7(), gone["event_id"], kept["event_id"]]});
    let answer = caller.post("/v1/events/check", asked).await.ok();
    assert_eq!(statuses(&answer), ["unknown", "deleted", "stored"]);
    assert_eq!(answer["items"][2]["id"], "1");
    let many: Vec<Uuid> = (0..1_001).map(|_| Uuid::now_v7()).collect();
    let refused = caller
        .post("/v1/events/check", json!({"event_ids": many}))
        .await;
    assert_eq!(refused.code(), "invalid_field");
}

#[tokio::test]
async fn an_item_may_name_its_own_project_and_session() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut other = item("observation", json!({"title": "elsewhere"}));
    other["project"] = json!({"key": "git:git.example.com/acme/Other", "name": "other"});
    caller
        .events(vec![other, item("observation", json!({"title": "here"}))])
        .await
        .ok();
    let record = caller
        .clone()
        .in_project("other")
        .get("/v1/observations/1")
        .await
        .ok();
    assert_eq!(record["project"], "git:git.example.com/acme/Other");
    assert_eq!(record["session"], "s-1");
    // By id and from another project it is not found.
    assert_eq!(caller.get("/v1/observations/1").await.code(), "not_found");
    assert_eq!(caller.nowhere().get("/v1/observations/1").await.status, 200);
}

#[tokio::test]
async fn a_batch_that_names_no_project_is_of_the_current_one() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("named", "").await;
    let send = |title: &str| json!({"items": [item("observation", json!({"title": title}))]});
    owner.post("/v1/events", send("by key")).await.ok();
    owner
        .clone()
        .in_project("alpha-app")
        .post("/v1/events", send("by name"))
        .await
        .ok();
    let limited = app.limited_to(PROJECT).await;
    limited.post("/v1/events", send("by limit")).await.ok();
    for id in ["1", "2", "3", "4"] {
        let record = limited.get(&format!("/v1/observations/{id}")).await.ok();
        assert_eq!(record["project"], PROJECT, "{record}");
    }
    let nowhere = owner.nowhere().post("/v1/events", send("nowhere")).await;
    assert_eq!(nowhere.json()["items"][0]["code"], "project_required");
}

#[tokio::test]
async fn unknown_fields_are_named_once_and_never_refused() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let mut event = item("observation", json!({"title": "a", "new_field": {"x": 1}}));
    event["colour"] = json!("red");
    let batch = json!({"project": {"key": PROJECT}, "later": true, "items": [event, event]});
    let answer = caller.post("/v1/events", batch).await.ok();
    assert_eq!(
        answer["ignored"],
        json!(["items.body.new_field", "items.colour", "later"])
    );
}

#[tokio::test]
async fn a_private_record_is_its_authors_alone() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let mut event = item("observation", json!({"title": "secret plan"}));
    event["visibility"] = json!("private");
    member.events(vec![event]).await.ok();
    assert_eq!(member.get("/v1/observations/1").await.status, 200);
    assert_eq!(owner.get("/v1/observations/1").await.code(), "not_found");
    assert_eq!(owner.delete("/v1/observations/1").await.code(), "not_found");
    let nothing = owner.mem_search(json!({"query": "secret plan"})).await.ok();
    assert_eq!(nothing["reason"], "no_results");
    assert!(!owner.get("/v1/context").await.text.contains("secret plan"));
    assert!(member.get("/v1/context").await.text.contains("secret plan"));
}

#[tokio::test]
async fn a_wholly_private_prompt_leaves_no_record() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let private = item(
        "prompt",
        json!({"text": "the password is hunter2", "private": true}),
    );
    let answer = caller
        .events(vec![private, item("prompt", json!({"text": "open"}))])
        .await
        .ok();
    assert_eq!(ids(&answer), ["-", "P1"]);
}

#[tokio::test]
async fn c064_private_passages_are_taken_out_again_by_the_service() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let answer = caller
        .events(vec![
            item("prompt", json!({"text": "<private>hunter2</private>"})),
            item(
                "prompt",
                json!({"text": "open <PRIVATE >hunter2</private> end"}),
            ),
            item(
                "observation",
                json!({"title": "t <private>hunter2", "facts": ["<private>hunter2"]}),
            ),
        ])
        .await
        .ok();
    assert_eq!(ids(&answer), ["-", "P1", "1"]);
    let asked = json!({"ids": ["P1", "1"]});
    let text = caller.post("/v1/observations/batch", asked).await.text;
    assert!(
        text.contains("open  end") && !text.contains("hunter2"),
        "{text}"
    );
    let mut admin = app.db.admin().await;
    let stored: i64 =
        sqlx::query_scalar("select count(*) from records r where r::text like '%hunter2%'")
            .fetch_one(&mut admin)
            .await
            .expect("counted");
    assert_eq!(stored, 0);
}

#[tokio::test]
async fn c020_a_clock_that_runs_ahead_is_corrected_once() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let now = chrono::Utc::now();
    let (hour, ahead) = (chrono::TimeDelta::hours(1), chrono::TimeDelta::hours(5));
    // Made two hours ago and sent now, by a clock that runs five hours ahead.
    let mut entry = item(
        "work_entry",
        json!({"list": "auth", "fields": {"task": "t", "status": "doing"}}),
    );
    entry["at"] = json!(now + ahead - hour * 2);
    let mut batch = caller.batch(vec![entry]);
    batch["sent_at"] = json!(now + ahead);
    batch["machine"] = json!("laptop");
    caller.post("/v1/events", batch).await.ok();
    let ms: i64 = sqlx::query_scalar("select hlc_ms from work_entries")
        .fetch_one(&mut app.db.admin().await)
        .await
        .expect("one entry");
    let off = (now - hour * 2).timestamp_millis() - ms;
    assert!(off.abs() < 60_000, "{off} ms from when it was made");
}

#[tokio::test]
async fn gzip_and_zstd_bodies_are_read() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let body = caller
        .batch(vec![item("observation", json!({"title": "packed"}))])
        .to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, body.as_bytes()).expect("packed");
    let gzip = gzip.finish().expect("packed");
    let zstd = zstd::encode_all(body.as_bytes(), 3).expect("packed");
    for (encoding, bytes, status) in [("gzip", gzip, "stored"), ("zstd", zstd, "duplicate")] {
        let request = caller.request(reqwest::Method::POST, "/v1/events");
        let request = request.header("Content-Encoding", encoding);
        let answer = caller.send(request.body(bytes)).await.ok();
        assert_eq!(statuses(&answer), [status], "{encoding}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_sent_twice_at_once_is_stored_for_one_and_known_to_the_other() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let batch = caller.batch(vec![item("observation", json!({"title": "once"}))]);
    // Another transaction holds the tenant's counter, so that both have begun before either ends.
    let mut admin = app.db.admin().await;
    let blocker = hold_counters(&mut admin).await;
    let senders: Vec<_> = (0..2)
        .map(|_| {
            let (caller, batch) = (caller.clone(), batch.clone());
            tokio::spawn(async move { caller.post("/v1/events", batch).await.ok() })
        })
        .collect();
    let mut looker = app.db.admin().await;
    let both_wait = async {
        loop {
            let waits: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
                 and datname = current_database()",
            )
            .fetch_one(&mut looker)
            .await
            .expect("answers");
            if waits == 2 {
                return;
            }
        }
    };
    let limit = std::time::Duration::from_secs(4);
    tokio::time::timeout(limit, both_wait).await.expect("soon");
    blocker.rollback().await.expect("released");
    let mut statuses = Vec::new();
    for sender in senders {
        let answer = sender.await.expect("answered");
        assert_eq!(answer["items"][0]["id"], "1");
        statuses.push(answer["items"][0]["status"].as_str().map(str::to_owned));
    }
    statuses.sort();
    assert_eq!(
        statuses,
        [Some("duplicate".to_owned()), Some("stored".to_owned())]
    );
}
