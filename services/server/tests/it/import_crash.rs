//! SIGKILL in the middle of an import: another import of the same makes it whole, once.

use std::time::{Duration, Instant};

use cairn_store::test_util::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rights::{contents, export, file, import, lines};
use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, new_owner_key};

/// Enough for a dozen transactions.
const RECORDS: usize = 6_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_was_killed_is_made_whole_by_another() {
    let head = json!({"cairn_export": 1, "tenant": "elsewhere", "source": Uuid::new_v4(),
        "exported_at": "2026-10-10T08:45:00.000Z"});
    let one = |n: usize| {
        json!({"kind": "observation", "id": (n + 1).to_string(), "event_id": Uuid::new_v4(),
            "project": PROJECT, "author": "ada", "at": "2026-10-01T00:00:00.000Z",
            "arrived_at": "2026-10-01T00:00:01.000Z", "visibility": "team",
            "observation": {"type": "change", "title": format!("note {n}"), "work_tokens": n}})
    };
    let all: Vec<Value> = std::iter::once(head).chain((0..RECORDS).map(one)).collect();
    let text = file(&all);
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let mut replica = Replica::shared(&db);
    let caller = Caller::new(&replica.base, Some(&key)).in_project(PROJECT);
    let importing = tokio::spawn({
        let (caller, text) = (caller.clone(), text.clone());
        async move {
            let request = caller.request(Method::POST, "/v1/import");
            let request = request.header("Content-Type", "application/x-ndjson");
            caller.try_send(request.body(text)).await.is_ok()
        }
    });
    let mut admin = db.admin().await;
    let began = Instant::now();
    loop {
        let count: i64 = sqlx::query_scalar("select count(*) from observations")
            .fetch_one(&mut admin)
            .await
            .expect("a count");
        if count >= 1_000 {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{count} were stored"
        );
    }
    replica.kill();
    assert!(!importing.await.expect("the import ends"), "it was cut off");

    let next = Replica::shared(&db);
    let caller = Caller::new(&next.base, Some(&key)).in_project(PROJECT);
    let answer = import(&caller, "", &text).await.ok();
    let counts = &answer["counts"]["observation"];
    let (stored, before) = (counts["stored"].as_u64(), counts["duplicate"].as_u64());
    assert_eq!(stored.zip(before).map(|(a, b)| a + b), Some(RECORDS as u64));
    assert!(stored > Some(0) && before >= Some(1_000), "{counts}");
    let there = lines(&export(&caller, "project=*&kinds=observation").await);
    let mut wanted = all;
    for line in &mut wanted[1..] {
        line["project_name"] = json!("alpha-app");
    }
    let events = |lines: &[Value]| -> Vec<Value> {
        let kept = lines.iter().cloned().map(|mut line| {
            line.as_object_mut()
                .expect("an object")
                .remove("read_tokens");
            line
        });
        kept.collect()
    };
    assert_eq!(contents(&events(&there)), contents(&events(&wanted)));
}
