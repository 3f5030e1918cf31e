//! Two replicas, one Postgres, one Redis: any of them answers any step.

use cairn_store::test_util::TestDb;
use serde_json::{Value, json};

use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, new_owner_key};

fn cursor(answer: &Value) -> &Value {
    assert_eq!(answer["status"], "continue", "{answer}");
    &answer["continuation"]
}

#[tokio::test]
async fn c040_step_2_reaches_another_replica_and_step_3_a_restarted_one() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let mut first = Replica::shared(&db);
    let second = Replica::shared(&db);
    let at_first = Caller::new(&first.base, Some(&key)).in_project(PROJECT);
    at_first
        .remember("pool leak", "connections were not released")
        .await;
    let index = at_first
        .mem_search(json!({"query": "pool leak"}))
        .await
        .ok();
    first.kill();

    let at_second = at_first.clone().at(&second.base);
    let call = json!({"continuation": cursor(&index), "selectedIds": ["1"]});
    let around = at_second.mem_search(call.clone()).await.ok();
    // The same cursor again gives the same answer.
    let again = at_second.mem_search(call).await.ok();
    assert_eq!(around["rows"], again["rows"]);

    drop(second);
    let restarted = Replica::shared(&db);
    let call = json!({"continuation": cursor(&around), "selectedIds": ["1"]});
    let details = at_second.at(&restarted.base).mem_search(call).await.ok();
    let text = details["details"][0]["text"].as_str().expect("a detail");
    assert!(
        text.contains("Narrative: connections were not released"),
        "{text}"
    );
}

#[tokio::test]
async fn a_tenants_searches_take_no_more_room_than_is_set() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let settings = [("CAIRN_CURSOR_TENANT_BYTES", "2000")];
    let replica = Replica::with_settings(&db.app_url, &settings);
    let caller = Caller::new(&replica.base, Some(&key)).in_project(PROJECT);
    caller.remember("pool leak", "").await;
    let mut searches = Vec::new();
    for _ in 0..8 {
        let index = caller.mem_search(json!({"query": "pool leak"})).await.ok();
        searches.push(json!({"continuation": cursor(&index), "selectedIds": ["1"]}));
    }
    let first = caller.mem_search(searches[0].clone()).await;
    assert_eq!(first.code(), "invalid_continuation");
    let last = caller.mem_search(searches[7].clone()).await.ok();
    assert_eq!(last["status"], "continue");
}

#[tokio::test]
async fn a_read_after_an_acknowledgement_sees_the_write_on_every_replica() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let (first, second) = (Replica::shared(&db), Replica::shared(&db));
    let writer = Caller::new(&first.base, Some(&key)).in_project(PROJECT);
    let reader = writer.clone().at(&second.base);
    for n in 0..20 {
        let id = writer.remember(&format!("note {n}"), "").await;
        assert_eq!(
            reader.get(&format!("/v1/observations/{id}")).await.status,
            200
        );
        assert!(
            reader
                .get("/v1/context")
                .await
                .text
                .contains(&format!("note {n}"))
        );
    }
}
