//! Work lists on two replicas: no write is lost, and a read shows what was acknowledged.

use cairn_store::test_util::TestDb;
use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::process::Replica;
use crate::support::{Caller, PROJECT, TestApp, new_owner_key};

#[tokio::test(flavor = "multi_thread")]
async fn c066_two_sessions_on_two_replicas_never_overwrite_each_other() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let (first, second) = (Replica::shared(&db), Replica::shared(&db));
    let one = Caller::new(&first.base, Some(&key)).in_project(PROJECT);
    let two = one.clone().at(&second.base).in_session("claude-code/s-2");
    let one = one.in_session("claude-code/s-1");
    for n in 1..=100 {
        let (arch, legal) = tokio::join!(
            one.work("gates", json!({"arch": format!("ok-{n}")})),
            two.work("gates", json!({"legal": format!("ok-{n}")})),
        );
        assert_eq!((arch.status.as_u16(), legal.status.as_u16()), (201, 201));
    }
    for reader in [&one, &two] {
        let text = reader.open_work().await;
        assert!(
            text.contains("arch=ok-100") && text.contains("legal=ok-100"),
            "{text}"
        );
    }
    let first = one.get("/v1/work-state/history?limit=200").await.ok();
    assert_eq!(first["items"].as_array().expect("items").len(), 200);
    assert_eq!(first["next_cursor"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn c068_a_read_on_another_replica_shows_every_acknowledged_write_a_thousand_times() {
    let db = TestDb::new().await;
    let key = new_owner_key(&db).await;
    let (first, second) = (Replica::shared(&db), Replica::shared(&db));
    let writer = Caller::new(&first.base, Some(&key)).in_project(PROJECT);
    let reader = writer.clone().at(&second.base);
    for n in 0..1_000 {
        writer.work("count", json!({"n": n})).await.ok();
        // One after the other on the same replica: the second may be served from what is kept.
        let expected = format!("- count: n={n}, updated");
        assert!(reader.open_work().await.contains(&expected), "{n}");
        for _ in 0..2 {
            let context = reader.get("/v1/context").await.text;
            assert!(context.contains(&expected), "{n}: {context}");
        }
        if n % 4 == 0 {
            writer.remember(&format!("note {n}."), "").await;
            let context = reader.get("/v1/context").await.text;
            assert!(context.contains(&format!("note {n}.")), "{n}: {context}");
        }
    }
}

/// Entries of two machines that were offline, as each kept them: the same in every run, but for
/// the project, whose events have ids of their own in the same order.
fn spools(run: u128) -> [Vec<Value>; 2] {
    let made = |machine: usize, n: usize, fields: Value| {
        let before = TimeDelta::minutes(i64::try_from(10 - n).expect("small"));
        let id = (run << 64) | u128::try_from(n * 2 + machine).expect("small");
        json!({"event_id": Uuid::from_u128(id), "kind": "work_entry", "at": Utc::now() - before,
            "body": {"list": "plan", "fields": fields}})
    };
    let one = (0..8).map(|n| made(0, n, json!({"task": format!("t{}", n % 3), "status": (["todo", "doing", "done"][n % 3]), "one": n})));
    let two = (0..8).map(|n| {
        made(
            1,
            n,
            json!({"task": format!("t{}", n % 4), "status": (["doing", "done"][n % 2]), "two": n}),
        )
    });
    let mut spools = [one.collect::<Vec<_>>(), two.collect()];
    spools[0].push(made(0, 8, json!({"version": "1"})));
    spools[1].push(made(1, 9, json!({"version": "2", "status": "active"})));
    spools
}

/// The lines without how long ago they were written to: the runs take their time.
fn ageless(text: &str) -> String {
    let line = |line: &str| {
        let (line, age) = line.split_once(", updated ").expect("an age");
        let (_, author) = age.split_once(" ago").expect("an age");
        format!("{line}{author}\n")
    };
    text.lines().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_and_two_offline_clients_converge_whatever_the_order_of_flushing() {
    let app = TestApp::start().await;
    let (first, second) = (Replica::shared(&app.db), Replica::shared(&app.db));
    let key = new_owner_key(&app.db).await;
    // Whose turn it is to flush how many of its entries, and through which replica.
    let orders: [&[(usize, usize, usize)]; 5] = [
        &[(0, 9, 0), (1, 9, 1)],
        &[(1, 9, 0), (0, 9, 0)],
        &[(0, 1, 0), (1, 1, 1), (0, 4, 1), (1, 8, 0), (0, 4, 0)],
        &[(1, 5, 1), (0, 2, 1), (1, 3, 0), (0, 7, 0), (1, 1, 1)],
        &[(1, 1, 0), (0, 8, 1), (1, 8, 1), (0, 1, 0)],
    ];
    let mut texts = Vec::new();
    for (run, order) in (1..).zip(orders) {
        let project = format!("name:run-{run}");
        let callers = [&first, &second]
            .map(|replica| Caller::new(&replica.base, Some(&key)).in_project(&project));
        let mut spools = spools(run);
        for (machine, count, replica) in order {
            let rest = spools[*machine].split_off(*count);
            let items = std::mem::replace(&mut spools[*machine], rest);
            let batch = json!({"project": {"key": project}, "machine": format!("m{machine} of run {run}"),
                "sent_at": Utc::now(), "items": items});
            let answer = callers[*replica].post("/v1/events", batch).await.ok();
            assert!(answer["hlc"].is_string(), "{answer}");
        }
        assert!(spools.iter().all(Vec::is_empty), "all is flushed");
        for caller in &callers {
            let read = caller.get("/v1/work-state?include_closed=true").await.ok();
            texts.push(ageless(read["text"].as_str().expect("a text")));
        }
    }
    assert!(
        texts[0].contains("version=2, status=active"),
        "{}",
        texts[0]
    );
    for text in &texts {
        assert_eq!(text, &texts[0]);
    }
}
