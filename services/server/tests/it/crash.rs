//! SIGKILL in the middle of ingest: what was acknowledged is there, once.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_store::test_util::TestDb;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, item, new_owner_key};

const CLIENTS: usize = 8;
const BATCH: usize = 20;
/// Acknowledged items after which the server is killed.
const ENOUGH: usize = 1_200;

/// What a client knows when the server is gone.
#[derive(Default)]
struct Ledger {
    sent: Vec<String>,
    acknowledged: Vec<String>,
}

/// Sends batches until the server no longer answers.
async fn send_until_cut_off(
    client: usize,
    caller: Caller,
    count: Arc<AtomicUsize>,
    enough: Arc<Notify>,
) -> Ledger {
    let mut ledger = Ledger::default();
    for round in 0.. {
        let items: Vec<Value> = (0..BATCH)
            .map(|n| {
                item(
                    "observation",
                    json!({"title": format!("c{client} r{round} n{n}")}),
                )
            })
            .collect();
        ledger.sent.extend(
            items
                .iter()
                .map(|i| i["event_id"].as_str().expect("id").to_owned()),
        );
        let request = caller.request(reqwest::Method::POST, "/v1/events");
        let Ok(reply) = caller.try_send(request.json(&caller.batch(items))).await else {
            break;
        };
        if !reply.status.is_success() {
            break;
        }
        for answered in reply.json()["items"].as_array().expect("items") {
            assert_eq!(answered["status"], "stored");
            ledger
                .acknowledged
                .push(answered["event_id"].as_str().expect("an id").to_owned());
        }
        if count.fetch_add(BATCH, Ordering::SeqCst) + BATCH >= ENOUGH {
            enough.notify_one();
        }
    }
    ledger
}

/// Eight clients at work, a SIGKILL, and what they know afterwards.
async fn ingest_and_kill(replica: &mut Replica, key: &str) -> Ledger {
    let (count, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let caller = Caller::new(&replica.base, Some(key)).in_project(PROJECT);
        let (count, enough) = (Arc::clone(&count), Arc::clone(&enough));
        clients.spawn(send_until_cut_off(client, caller, count, enough));
    }
    enough.notified().await;
    replica.kill();
    let mut all = Ledger::default();
    while let Some(ledger) = clients.join_next().await {
        let ledger = ledger.expect("the client ends");
        all.sent.extend(ledger.sent);
        all.acknowledged.extend(ledger.acknowledged);
    }
    all
}

/// Every acknowledged event is stored, each under a number of its own, and numbers have no gap.
async fn assert_nothing_lost(caller: &Caller, ledger: &Ledger) {
    assert!(ledger.acknowledged.len() >= ENOUGH && ledger.sent.len() > ledger.acknowledged.len());
    let acknowledged: HashSet<&String> = ledger.acknowledged.iter().collect();
    let mut numbers = HashSet::new();
    for ids in ledger.sent.chunks(1_000) {
        let answer = caller
            .post("/v1/events/check", json!({"event_ids": ids}))
            .await
            .ok();
        for checked in answer["items"].as_array().expect("items") {
            let id = checked["event_id"].as_str().expect("an id").to_owned();
            match checked["status"].as_str() {
                Some("stored") => {
                    let number: u64 = checked["id"]
                        .as_str()
                        .expect("an id")
                        .parse()
                        .expect("a number");
                    assert!(numbers.insert(number), "{number} twice");
                }
                Some("unknown") => assert!(!acknowledged.contains(&id), "{id} was acknowledged"),
                other => panic!("{other:?}"),
            }
        }
    }
    let highest = numbers.iter().max().copied().unwrap_or_default();
    assert_eq!(highest, numbers.len() as u64, "numbers are gap-free");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_of_a_replica_during_ingest_loses_nothing_acknowledged() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let mut replica = Replica::shared(&db);
    let ledger = ingest_and_kill(&mut replica, &key).await;
    let next = Replica::shared(&db);
    let caller = Caller::new(&next.base, Some(&key)).in_project(PROJECT);
    assert_nothing_lost(&caller, &ledger).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_of_the_embedded_service_during_ingest_loses_nothing_acknowledged() {
    let data = data_folder();
    let mut replica = Replica::embedded(data.path());
    let key = replica.key.clone().expect("the first start prints a key");
    let ledger = ingest_and_kill(&mut replica, &key).await;
    let next = Replica::embedded(data.path());
    let caller = Caller::new(&next.base, Some(&key)).in_project(PROJECT);
    assert_nothing_lost(&caller, &ledger).await;
}

/// A folder that the database's unprivileged user can enter when the test runs as root.
fn data_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new()
        .prefix("cairn-embedded-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir();
    folder.expect("a folder")
}
