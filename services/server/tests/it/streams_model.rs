//! Any writers, any readers, any replica, any moment at which one is killed: each reader is told
//! every position that it may read, once, in order, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use cairn_store::bus::Bus;
use cairn_store::test_util::shared_redis_url;

use crate::support::process::Replica;
use crate::support::stream::{Said, Stream};
use crate::support::{Caller, TestApp, item, soon};

/// What each writer does.
const STEPS: usize = 30;

/// Where the replicas are; one of them is killed and started again.
struct Replicas {
    steady: Vec<String>,
    shaken: RwLock<Replica>,
    is_over: AtomicBool,
}

impl Replicas {
    async fn any(&self, rng: &mut StdRng) -> String {
        match rng.random_range(0..=self.steady.len()) {
            0 => self.shaken.read().await.base.clone(),
            n => self.steady[n - 1].clone(),
        }
    }
}

/// Repeats a call at any replica until one answers.
async fn sent(
    caller: &Caller,
    replicas: &Replicas,
    rng: &mut StdRng,
    (method, path, body): (Method, String, Value),
) -> Value {
    loop {
        let caller = caller.clone().at(&replicas.any(rng).await);
        let request = caller.request(method.clone(), &path).json(&body);
        match caller.try_send(request).await {
            Ok(reply) if reply.status.is_success() => {
                return serde_json::from_str(&reply.text).unwrap_or_default();
            }
            Ok(reply) => assert!(reply.status.is_server_error(), "{reply:?}"),
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Writes this and that, deletes some of its own, lets others read some that were private.
async fn write(name: &'static str, caller: Caller, replicas: Arc<Replicas>, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut own, mut private): (Vec<String>, Vec<String>) = Default::default();
    for step in 0..STEPS {
        let project = format!("name:{}", ["one", "two"].choose(&mut rng).expect("one"));
        let who = caller.clone().in_project(&project);
        match rng.random_range(0..10) {
            0..=5 => {
                let is_private = rng.random_bool(0.4);
                let kind = ["observation", "summary", "prompt"]
                    .choose(&mut rng)
                    .expect("one");
                let says = format!("{name} says {step}");
                let mut event = item(kind, json!({"title": says, "request": says, "text": says}));
                event["visibility"] = json!(if is_private { "private" } else { "team" });
                let body = who.batch(vec![event]);
                let call = (Method::POST, "/v1/events".to_owned(), body);
                let answer = sent(&who, &replicas, &mut rng, call).await;
                let id = answer["items"][0]["id"].as_str().expect("an id");
                let path = match *kind {
                    "observation" => format!("/v1/observations/{id}"),
                    "summary" => format!("/v1/summaries/{id}"),
                    _ => format!("/v1/prompts/{id}"),
                };
                if is_private && *kind != "prompt" {
                    private.push(path.clone());
                }
                own.push(path);
            }
            6 => {
                let event = item(
                    "work_entry",
                    json!({"list": name, "fields": {"task": step.to_string()}}),
                );
                let call = (
                    Method::POST,
                    "/v1/events".to_owned(),
                    who.batch(vec![event]),
                );
                sent(&who, &replicas, &mut rng, call).await;
            }
            7 | 8 if !private.is_empty() => {
                let path = private.swap_remove(rng.random_range(0..private.len()));
                let call = (Method::PATCH, path, json!({"visibility": "team"}));
                sent(&caller.clone().nowhere(), &replicas, &mut rng, call).await;
            }
            _ if !own.is_empty() => {
                let path = own.swap_remove(rng.random_range(0..own.len()));
                private.retain(|other| *other != path);
                let call = (Method::DELETE, path, json!({}));
                sent(&caller.clone().nowhere(), &replicas, &mut rng, call).await;
            }
            _ => {}
        }
    }
}

/// All that a reader was told, in order.
type Told = Vec<(i64, Value)>;

/// Reads, leaves at any moment, and comes back anywhere, until it has come as far as `end`.
async fn read(caller: Caller, project: &'static str, replicas: Arc<Replicas>, seed: u64) -> Told {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut told: Told = Vec::new();
    let mut cursor = 0;
    loop {
        let is_over = replicas.is_over.load(Ordering::SeqCst);
        let caller = caller.clone().at(&replicas.any(&mut rng).await);
        if is_over || rng.random_bool(0.3) {
            let limit = rng.random_range(1..20);
            let path = format!("/v1/changes?after={cursor}&limit={limit}&project={project}");
            let Ok(reply) = caller.try_send(caller.request(Method::GET, &path)).await else {
                continue;
            };
            if reply.status.is_server_error() {
                continue;
            }
            let page = reply.ok();
            for item in page["items"].as_array().expect("items") {
                told.push((item["position"].as_i64().expect("a position"), item.clone()));
            }
            cursor = page["next"].as_i64().expect("a position");
            if is_over && page["next"] == page["latest"] {
                return told;
            }
            continue;
        }
        let path = format!("/v1/stream?project={project}");
        let Some(mut stream) = Stream::resume(&caller, &path, Some(cursor)).await else {
            continue;
        };
        for _ in 0..rng.random_range(1..15) {
            let said = tokio::select! {
                said = stream.next() => said,
                () = over(&replicas) => break,
            };
            match said {
                Said::Comment => {}
                Said::Change(position, item) => {
                    told.push((position, item));
                    cursor = position;
                }
                Said::End(_) | Said::Closed => break,
            }
        }
    }
}

async fn over(replicas: &Replicas) {
    while !replicas.is_over.load(Ordering::SeqCst) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[rstest]
#[case(1)]
#[case(2)]
#[tokio::test(flavor = "multi_thread")]
async fn every_reader_is_told_every_position_that_it_may_read_once(#[case] seed: u64) {
    let app = TestApp::start().await;
    let bus = || Bus::connect(&shared_redis_url()).expect("an address");
    let (_first, first) = app.replica(bus()).await;
    let (_second, second) = app.replica(bus()).await;
    let replicas = Arc::new(Replicas {
        steady: vec![first, second],
        shaken: RwLock::new(Replica::shared(&app.db)),
        is_over: AtomicBool::new(false),
    });
    let (ada, ben, eve) = (app.owner().await, app.member().await, app.stranger().await);
    let mut writers = JoinSet::new();
    for (n, (name, caller)) in [("acme ada", &ada), ("acme ben", &ben), ("umbra ada", &eve)]
        .into_iter()
        .enumerate()
    {
        for half in 0..2 {
            let seed = seed * 100 + 10 * u64::try_from(n).expect("small") + half;
            writers.spawn(write(name, caller.clone(), Arc::clone(&replicas), seed));
        }
    }
    // Projects are made by their first events: those who name one wait for it as unborn.
    let named = ada.clone().in_project("name:two");
    let readers = [
        ("acme", "ada", ada.clone(), "*"),
        ("acme", "ben", ben.clone(), "*"),
        ("acme", "ada", named, ""),
        ("umbra", "ada", eve.clone(), "*"),
    ];
    let mut reading = Vec::new();
    for (n, (_, _, caller, project)) in readers.iter().enumerate() {
        let seed = seed * 1_000 + u64::try_from(n).expect("small");
        reading.push(tokio::spawn(read(
            caller.clone(),
            project,
            Arc::clone(&replicas),
            seed,
        )));
    }
    let shaking = async {
        for _ in 0..2 {
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            let mut shaken = replicas.shaken.write().await;
            shaken.kill();
            let db = app.db.app_url.clone();
            *shaken = tokio::task::spawn_blocking(move || Replica::over(&db))
                .await
                .expect("started");
        }
    };
    let writing = async {
        while let Some(done) = writers.join_next().await {
            done.expect("written");
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), async {
        tokio::join!(shaking, writing)
    })
    .await
    .expect("they come to an end");
    replicas.is_over.store(true, Ordering::SeqCst);
    for ((tenant, name, _, project), told) in readers.iter().zip(reading) {
        let told = soon(told).await.expect("read");
        let expected = oracle(&app, tenant, name, *project != "*").await;
        check(
            &format!("{tenant} {name} {project}"),
            tenant,
            name,
            &told,
            &expected,
        );
    }
}

/// What must have been told, by position: kind and id, with a sign for a deletion.
async fn oracle(app: &TestApp, tenant: &str, name: &str, only_two: bool) -> BTreeMap<i64, String> {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "with t as (select tenant_id from tenants where name = $1),
         me as (select principal_id from principals join t using (tenant_id) where name = $2),
         wanted as (select project_id from projects join t using (tenant_id)
           where not $3 or key = 'name:two')
         select position, 'upsert ' || (array['observation ', 'summary S', 'prompt P'])[kind + 1]
             || number
           from records join t using (tenant_id) where project_id in (select * from wanted)
             and (author_id = (select * from me) or (not private and kind < 2))
         union all
         select position, 'delete ' || (array['observation ', 'summary S', 'prompt P'])[kind + 1]
             || number
           from tombstones join t using (tenant_id) where project_id in (select * from wanted)
             and (author_id = (select * from me) or (not private and kind < 2))
         union all
         select position, 'upsert work_entry ' || event_id from work_entries
           join t using (tenant_id) where project_id in (select * from wanted)
         union all
         select position, 'upsert project ' || uid from projects join t using (tenant_id)
           where project_id in (select * from wanted)",
    )
    .bind(tenant)
    .bind(name)
    .bind(only_two)
    .fetch_all(&mut app.db.admin().await)
    .await
    .expect("rows");
    rows.into_iter().collect()
}

fn check(who: &str, tenant: &str, name: &str, told: &Told, expected: &BTreeMap<i64, String>) {
    let line = |item: &Value| {
        let word = |name: &str| item[name].as_str().expect("a text").to_owned();
        format!("{} {} {}", word("op"), word("kind"), word("id"))
    };
    let order: Vec<i64> = told.iter().map(|(position, _)| *position).collect();
    assert!(
        order.is_sorted_by(|one, next| one < next),
        "{who}: {order:?}"
    );
    let lines: BTreeMap<i64, String> = told
        .iter()
        .map(|(position, item)| (*position, line(item)))
        .collect();
    for (position, line) in expected {
        assert_eq!(lines.get(position), Some(line), "{who} at {position}");
    }
    let mut gone = BTreeSet::new();
    let finally: BTreeSet<&str> = expected.values().map(|line| &line[7..]).collect();
    for (position, item) in told {
        let subject = line(item)[7..].to_owned();
        // What was told beside that has changed since, and was the reader's to see.
        if !expected.contains_key(position) {
            assert!(finally.contains(subject.as_str()), "{who}: {item}");
        }
        if item["op"] == "delete" {
            gone.insert(subject);
            continue;
        }
        assert!(!gone.contains(&subject), "{who}: back to life: {item}");
        let text = item["record"].to_string();
        assert_eq!(
            text.contains("says"),
            matches!(
                item["kind"].as_str(),
                Some("observation" | "summary" | "prompt")
            )
        );
        if text.contains("says") {
            assert!(text.contains(&format!("{tenant} ")), "{who}: {item}");
            let is_own = item["author"] == name;
            let is_team = item["record"]["visibility"] == "team" && item["kind"] != "prompt";
            assert!(is_own || is_team, "{who}: {item}");
        }
    }
}
