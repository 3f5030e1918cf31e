//! Searches in any order over two replicas: whoever asks, with whichever cursor and whichever
//! ids, sees what was disclosed to them and what they may read at that moment, and no more.

use std::cell::RefCell;
use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Caller, RING, TestApp, continuations_under, item};

/// Records of each tenant.
const RECORDS: usize = 24;

#[derive(Clone, Debug)]
enum Move {
    Start {
        by: Index,
        at: usize,
        everywhere: bool,
    },
    Follow {
        /// Somebody in particular; whose search it is, if nobody.
        by: Option<Index>,
        at: usize,
        cursor: Index,
        choice: Choice,
    },
    Delete {
        record: Index,
    },
}

#[derive(Clone, Debug)]
enum Choice {
    Shown(Vec<Index>),
    Any(Index),
}

fn any_move() -> impl Strategy<Value = Move> {
    let choice = prop_oneof![
        3 => prop::collection::vec(any::<Index>(), 1..4).prop_map(Choice::Shown),
        1 => any::<Index>().prop_map(Choice::Any),
    ];
    let somebody = prop_oneof![3 => Just(None), 1 => any::<Index>().prop_map(Some)];
    prop_oneof![
        6 => (any::<Index>(), 0..2_usize, any::<bool>())
            .prop_map(|(by, at, everywhere)| Move::Start { by, at, everywhere }),
        12 => (somebody, 0..2_usize, any::<Index>(), choice)
            .prop_map(|(by, at, cursor, choice)| Move::Follow { by, at, cursor, choice }),
        1 => any::<Index>().prop_map(|record| Move::Delete { record }),
    ]
}

/// Somebody who searches.
struct Actor {
    caller: Caller,
    tenant: usize,
    name: &'static str,
    /// The only project whose records they may read.
    limit: Option<&'static str>,
}

impl Actor {
    /// Two with the same scope may go on with each other's searches.
    fn scope(&self) -> (usize, &str) {
        (self.tenant, self.name)
    }
}

struct Record {
    project: &'static str,
    /// Who alone may read it.
    private_to: Option<&'static str>,
    is_deleted: bool,
}

struct Given {
    actor: usize,
    cursor: Value,
    step: u64,
    shown: Vec<String>,
}

struct World {
    _app: TestApp,
    replicas: [String; 2],
    actors: Vec<Actor>,
    records: [HashMap<String, Record>; 2],
    given: Vec<Given>,
}

type Checked = Result<(), TestCaseError>;

impl World {
    async fn new() -> Self {
        let prefix = format!("test:{}:", Uuid::new_v4());
        let app = TestApp::with(continuations_under(&prefix, RING)).await;
        let second = app.beside(continuations_under(&prefix, RING)).await;
        let actor = |caller, tenant, name, limit| Actor {
            caller,
            tenant,
            name,
            limit,
        };
        let (owner, member) = (app.owner().await, app.member().await);
        let stranger = app.stranger().await;
        let records = [
            remember(&[(&owner, "ada"), (&member, "ben")]).await,
            remember(&[(&stranger, "ada"), (&stranger, "ada")]).await,
        ];
        let limited = app.limited_to("alpha-app").await;
        let actors = vec![
            actor(app.owner().await, 0, "ada", None),
            actor(limited, 0, "ada", Some("alpha-app")),
            actor(owner, 0, "ada", None),
            actor(member, 0, "ben", None),
            actor(stranger, 1, "ada", None),
        ];
        Self {
            replicas: [app.base.clone(), second],
            _app: app,
            actors,
            records,
            given: Vec::new(),
        }
    }

    async fn take(&mut self, step: Move) -> Checked {
        match step {
            Move::Start { by, at, everywhere } => {
                let actor = by.index(self.actors.len());
                let mut query = json!({"query": "pool note"});
                if everywhere {
                    query["project"] = json!("*");
                }
                let reply = self.caller(actor, at).mem_search(query).await;
                prop_assert_eq!(reply.status.as_u16(), 200, "{:?}", reply);
                self.receive(actor, reply.json())
            }
            Move::Follow {
                by,
                at,
                cursor,
                choice,
            } if !self.given.is_empty() => {
                let given = cursor.index(self.given.len());
                let actor = by.map_or(self.given[given].actor, |by| by.index(self.actors.len()));
                self.follow(actor, at, given, &choice).await
            }
            Move::Follow { .. } => Ok(()),
            Move::Delete { record } => {
                let id = (1 + record.index(RECORDS)).to_string();
                let kept = self.records[0].get_mut(&id).expect("a record");
                // The owner may delete what is not private to another member.
                if kept.private_to != Some("ben") {
                    let owner = &self.actors[0].caller;
                    for project in ["name:alpha-app", "name:beta"] {
                        let owner = owner.clone().in_project(project);
                        owner.delete(&format!("/v1/observations/{id}")).await;
                    }
                    kept.is_deleted = true;
                }
                Ok(())
            }
        }
    }

    async fn follow(&mut self, actor: usize, at: usize, given: usize, choice: &Choice) -> Checked {
        let caller = self.caller(actor, at);
        let (from, who) = (&self.given[given], &self.actors[actor]);
        let ids: Vec<String> = match choice {
            Choice::Shown(places) => places.iter().map(|p| p.get(&from.shown).clone()).collect(),
            Choice::Any(place) => vec![(1 + place.index(RECORDS)).to_string()],
        };
        let is_own = self.actors[from.actor].scope() == who.scope();
        let was_shown = ids.iter().all(|id| from.shown.contains(id));
        let call = json!({"continuation": from.cursor, "selectedIds": ids});
        let reply = caller.mem_search(call).await;
        if !is_own || !was_shown {
            let code = ["invalid_selection", "invalid_continuation"][usize::from(!is_own)];
            prop_assert_eq!(reply.code(), code, "{:?}", reply);
            prop_assert!(!reply.text.contains("pool note"), "{:?}", reply);
            return Ok(());
        }
        prop_assert_eq!(reply.status.as_u16(), 200, "{:?}", reply);
        let answer = reply.json();
        for detail in ids_of(&answer["details"]) {
            prop_assert!(ids.contains(&detail), "{} of {:?}", detail, ids);
        }
        let readable = ids.iter().any(|id| self.may_read(actor, id));
        let step = answer["step"].as_u64().expect("a step");
        prop_assert_eq!(step, from.step + 1);
        prop_assert_eq!(answer["reason"].is_null(), readable, "{}", answer);
        self.receive(actor, answer)
    }

    /// Holds an answer against what its reader may see, and keeps the cursor that it gives.
    fn receive(&mut self, actor: usize, answer: Value) -> Checked {
        let shown = ids_of(&answer["rows"]);
        for id in shown.iter().chain(&ids_of(&answer["details"])) {
            prop_assert!(self.may_read(actor, id), "{} to {}", id, actor);
        }
        if answer["status"] == "continue" {
            self.given.push(Given {
                actor,
                cursor: answer["continuation"].clone(),
                step: answer["step"].as_u64().expect("a step"),
                shown,
            });
        }
        Ok(())
    }

    fn may_read(&self, actor: usize, id: &str) -> bool {
        let who = &self.actors[actor];
        self.records[who.tenant].get(id).is_some_and(|record| {
            !record.is_deleted
                && record.private_to.is_none_or(|name| name == who.name)
                && who.limit.is_none_or(|project| project == record.project)
        })
    }

    fn caller(&self, actor: usize, at: usize) -> Caller {
        self.actors[actor].caller.clone().at(&self.replicas[at])
    }
}

/// Records of two authors, over two projects, a third of them private.
async fn remember(authors: &[(&Caller, &'static str); 2]) -> HashMap<String, Record> {
    let mut records = HashMap::new();
    for n in 0..RECORDS {
        let (caller, name) = authors[n % 2];
        let project = ["alpha-app", "beta"][n / 2 % 2];
        let private_to = (n % 3 == 0).then_some(name);
        let mut event = item("observation", json!({"title": format!("pool note {n}")}));
        if private_to.is_some() {
            event["visibility"] = json!("private");
        }
        let caller = caller.clone().in_project(&format!("name:{project}"));
        let answer = caller.events(vec![event]).await.ok();
        let id = answer["items"][0]["id"].as_str().expect("an id").to_owned();
        let record = Record {
            project,
            private_to,
            is_deleted: false,
        };
        records.insert(id, record);
    }
    records
}

fn ids_of(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let id = |row: &Value| row["id"].as_str().expect("an id").to_owned();
    rows.iter().map(id).collect()
}

#[test]
fn c040_whatever_is_asked_in_whatever_order_only_what_was_disclosed_is_shown() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let world = RefCell::new(runtime.block_on(World::new()));
    // Each walk goes on from where the one before ended, so a shorter one would show nothing.
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::with_cases(6)
    });
    let moves = prop::collection::vec(any_move(), 40..60);
    let walked = runner.run(&moves, |moves| {
        let mut world = world.borrow_mut();
        runtime.block_on(async {
            for step in moves {
                world.take(step).await?;
            }
            Ok(())
        })
    });
    if let Err(error) = walked {
        panic!("{error}");
    }
    let world = world.into_inner();
    assert!(world.given.len() > 50, "searches went on");
    runtime.block_on(async move { drop(world) });
}
