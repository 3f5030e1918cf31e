//! The three steps of a search as a machine: domain rules over real stores, against a model, for
//! any order of steps, replicas, tenants, members, project scopes, waits and changes of the ring.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

#[path = "support/cursors.rs"]
mod cursors;
#[path = "support/search_model.rs"]
mod search_model;

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::search::scope::{ScopeProjects, scope};
use cairn_domain::search::{Conditions, Continue, Options, Plan, Shown, Step, Stored};
use cairn_domain::{Rejection, limits};
use cairn_store::continuations::{Caps, Continuations, Loaded};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use uuid::Uuid;

use cursors::{fresh, prefix, replica, ring};
use search_model::{Given, Model, Rules};

/// Rings that a replica may have; between any two of them keys come, go and change places.
const RINGS: [&[&str]; 6] = [
    &["k1"],
    &["k1", "k2"],
    &["k2", "k1"],
    &["k2"],
    &["k3", "k2", "k1"],
    &["k3"],
];
const WHOLE_RING: [&str; 3] = ["k1", "k2", "k3"];
const REPLICAS: usize = 3;

/// Reached by a handful of small states.
const CAPS: Caps = Caps {
    member_cursors: 4,
    member_bytes: 2_500,
    tenant_bytes: 3_500,
};

/// Two tenants alike, two members, and one member over several project sets.
fn scopes() -> Vec<String> {
    let id = Uuid::from_u128;
    let only = |ids: &[u128]| ScopeProjects::Only(ids.iter().map(|n| id(*n)).collect());
    let mut scopes = Vec::new();
    for tenant in [1, 2] {
        scopes.push(scope(id(tenant), id(10), &ScopeProjects::All));
        scopes.push(scope(id(tenant), id(10), &only(&[20])));
        scopes.push(scope(id(tenant), id(10), &only(&[20, 21])));
        scopes.push(scope(id(tenant), id(11), &only(&[20])));
    }
    scopes
}

#[derive(Clone, Debug)]
enum Move {
    Start {
        by: Index,
        at: usize,
        rows: Vec<RecordId>,
        query: usize,
    },
    Follow {
        /// Somebody in particular; whose search it is, if nobody.
        by: Option<Index>,
        at: usize,
        cursor: Index,
        choice: Choice,
    },
    Rotate {
        at: usize,
        ring: Index,
    },
    Wait {
        seconds: i64,
    },
}

#[derive(Clone, Debug)]
enum Choice {
    Shown(Vec<Index>),
    Any(Vec<RecordId>),
    Stop,
    Missing,
}

fn any_id() -> impl Strategy<Value = RecordId> {
    let kind = prop_oneof![
        4 => Just(RecordKind::Observation),
        1 => Just(RecordKind::Summary),
        1 => Just(RecordKind::Prompt)
    ];
    (kind, 1_i64..8).prop_map(|(kind, number)| RecordId { kind, number })
}

fn any_choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        6 => prop::collection::vec(any::<Index>(), 1..4).prop_map(Choice::Shown),
        3 => prop::collection::vec(any_id(), 1..5).prop_map(Choice::Any),
        1 => Just(Choice::Stop),
        1 => Just(Choice::Missing),
    ]
}

fn any_move() -> impl Strategy<Value = Move> {
    let start = (
        any::<Index>(),
        0..REPLICAS,
        prop::collection::vec(any_id(), 1..6),
        1_usize..500,
    );
    let somebody = prop_oneof![4 => Just(None), 1 => any::<Index>().prop_map(Some)];
    let follow = (somebody, 0..REPLICAS, any::<Index>(), any_choice());
    prop_oneof![
        4 => start.prop_map(|(by, at, rows, query)| Move::Start { by, at, rows, query }),
        6 => follow.prop_map(|(by, at, cursor, choice)| Move::Follow { by, at, cursor, choice }),
        1 => (0..REPLICAS, any::<Index>()).prop_map(|(at, ring)| Move::Rotate { at, ring }),
        1 => (1_i64..1_000).prop_map(|seconds| Move::Wait { seconds }),
    ]
}

struct Replica {
    store: Continuations,
    ring: &'static [&'static str],
}

struct World {
    scopes: Vec<String>,
    replicas: Vec<Replica>,
    model: Model,
    now: DateTime<Utc>,
}

type Checked<T = ()> = Result<T, TestCaseError>;

impl World {
    fn new(stores: Vec<Continuations>, rules: Rules) -> Self {
        let replica = |store: Continuations| Replica {
            store: store.with_ring(ring(RINGS[0])),
            ring: RINGS[0],
        };
        Self {
            scopes: scopes(),
            replicas: stores.into_iter().map(replica).collect(),
            model: Model::new(rules),
            now: Utc::now(),
        }
    }

    async fn take(&mut self, step: Move) -> Checked {
        match step {
            Move::Start {
                by,
                at,
                rows,
                query,
            } => {
                let scope = by.get(&self.scopes).clone();
                let stored = Stored::begin(options(query), scope, self.now, "t".to_owned());
                self.disclose(at, stored, rows).await
            }
            Move::Follow {
                by,
                at,
                cursor,
                choice,
            } if !self.model.given.is_empty() => {
                let given = cursor.get(&self.model.given).clone();
                let scope = by.map_or_else(
                    || given.stored.scope.clone(),
                    |by| by.get(&self.scopes).clone(),
                );
                self.follow(at, &given, &scope, selected(&given, choice))
                    .await
            }
            Move::Follow { .. } => Ok(()),
            Move::Rotate { at, ring: to } => {
                let to = to.get(&RINGS);
                let replica = &mut self.replicas[at];
                replica.store = replica.store.clone().with_ring(ring(to));
                replica.ring = to;
                Ok(())
            }
            Move::Wait { seconds } => {
                self.now += TimeDelta::seconds(seconds);
                Ok(())
            }
        }
    }

    /// A step shows rows and gives out the cursor with which they may be chosen.
    async fn disclose(&mut self, at: usize, mut stored: Stored, rows: Vec<RecordId>) -> Checked {
        let project = Uuid::from_u128(20);
        stored.shown = rows.into_iter().map(|id| Shown { id, project }).collect();
        let (replica, cursor, json) = (&self.replicas[at], fresh(), stored.to_json());
        let (scope, expires_at) = (&stored.scope, stored.expires_at);
        let saved = replica
            .store
            .save(scope, &cursor, &json, expires_at, self.now);
        saved.await.expect("saved");
        self.model.save(cursor, replica.ring[0], stored, self.now);
        Ok(())
    }

    /// The next step, as the service takes it.
    async fn follow(
        &mut self,
        at: usize,
        given: &Given,
        scope: &str,
        selected: Option<Vec<RecordId>>,
    ) -> Checked {
        let replica = &self.replicas[at];
        let loaded = replica.store.load(scope, &given.cursor, self.now).await;
        let loaded = loaded.expect("answers");
        let expected = self.model.load(given, scope, replica.ring, self.now);
        prop_assert_eq!(&loaded, &expected, "{:?}", given);
        let call = Continue {
            cursor: given.cursor.clone(),
            selected: selected.clone(),
            conditions: Conditions::default(),
        };
        let answer = match loaded {
            Loaded::State(json) => {
                let stored = Stored::from_json(&json).expect("what was saved");
                stored.advance(&call, scope, self.now)
            }
            Loaded::Expired => Err(Rejection::ExpiredContinuation),
            Loaded::Unknown => Err(Rejection::InvalidContinuation),
        };
        let may_pass = given.stored.scope == scope
            && self.now < given.stored.expires_at
            && matches!(expected, Loaded::State(_))
            && selected.is_some_and(|ids| may_choose(&given.stored, &ids));
        prop_assert_eq!(answer.is_ok(), may_pass, "{:?}", answer);
        match answer {
            Ok(Plan::Timeline { anchors, .. }) => {
                prop_assert!(anchors.iter().all(|row| given.stored.shown.contains(row)));
                let around = anchors.iter().flat_map(|row| around(row.id)).collect();
                self.disclose(at, given.stored.follow(), around).await
            }
            Ok(Plan::Details { records }) => {
                prop_assert!(records.iter().all(|row| given.stored.shown.contains(row)));
                prop_assert!(records.iter().all(|row| row.id.kind != RecordKind::Prompt));
                Ok(())
            }
            Ok(Plan::Stop) | Err(_) => Ok(()),
        }
    }

    /// Every cursor, in every scope, for every replica and for one that has all keys: it opens
    /// where the model says, and in no scope but its own.
    async fn look_at_all(&self) -> Checked {
        let whole = Replica {
            store: self.replicas[0].store.clone().with_ring(ring(&WHOLE_RING)),
            ring: &WHOLE_RING,
        };
        for given in &self.model.given {
            for scope in &self.scopes {
                for replica in self.replicas.iter().chain([&whole]) {
                    let loaded = replica.store.load(scope, &given.cursor, self.now).await;
                    let loaded = loaded.expect("answers");
                    let expected = self.model.load(given, scope, replica.ring, self.now);
                    prop_assert_eq!(&loaded, &expected, "{} {:?}", scope, given);
                    if *scope != given.stored.scope {
                        prop_assert_eq!(loaded, Loaded::Unknown);
                    }
                }
            }
        }
        Ok(())
    }
}

fn options(query: usize) -> Options {
    Options {
        query: "q".repeat(query),
        project: None,
        named: None,
        limit: limits::INDEX_ROWS,
        max_details: limits::DEFAULT_DETAILS,
        depth_before: 1,
        depth_after: 1,
    }
}

fn selected(given: &Given, choice: Choice) -> Option<Vec<RecordId>> {
    match choice {
        Choice::Shown(places) => {
            let ids = places.iter().map(|place| place.get(&given.stored.shown).id);
            Some(ids.collect())
        }
        Choice::Any(ids) => Some(ids),
        Choice::Stop => Some(Vec::new()),
        Choice::Missing => None,
    }
}

/// The rule of the disclosure in other words than the code's.
fn may_choose(stored: &Stored, ids: &[RecordId]) -> bool {
    ids.len() <= limits::DEFAULT_DETAILS as usize
        && ids.iter().all(|id| {
            stored.shown.iter().any(|shown| shown.id == *id)
                && (stored.step == Step::Timeline || id.kind != RecordKind::Prompt)
        })
}

fn around(id: RecordId) -> impl Iterator<Item = RecordId> {
    let numbers = id.number - 1..=id.number + 1;
    numbers
        .filter(|number| *number > 0)
        .map(move |number| RecordId { number, ..id })
}

/// Walks so many times through a fresh world.
fn walk(cases: u32, world: impl Fn() -> World) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let moves = prop::collection::vec(any_move(), 1..60);
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    });
    let walked = runner.run(&moves, |moves| {
        runtime.block_on(async {
            let mut world = world();
            for step in moves {
                world.take(step).await?;
            }
            world.look_at_all().await
        })
    });
    if let Err(error) = walked {
        panic!("{error}");
    }
}

#[test]
fn c040_in_memory_no_id_and_no_cursor_passes_that_was_not_given() {
    walk(150, || {
        let store = Continuations::memory(ring(RINGS[0])).with_caps(CAPS);
        World::new(vec![store; REPLICAS], Rules::Memory(CAPS))
    });
}

#[test]
fn c040_in_redis_no_id_and_no_cursor_passes_that_was_not_given() {
    walk(30, || {
        let prefix = prefix();
        let store = || replica(&prefix, RINGS[0]).with_caps(CAPS);
        let stores = (0..REPLICAS).map(|_| store()).collect();
        World::new(stores, Rules::Shared(CAPS))
    });
}

/// How a ring changes: the new key is read everywhere before anybody writes with it, and the old
/// one stays. Each replica takes its own time for a step, and is never two steps ahead.
const ROTATION: [&[&str]; 3] = [&["k1"], &["k1", "k2"], &["k2", "k1"]];

#[test]
fn c040_while_the_ring_changes_no_cursor_is_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(12)
    });
    let turns = prop::collection::vec((0..REPLICAS, any::<bool>()), 1..30);
    let walked = runner.run(&turns, |turns| {
        runtime.block_on(async {
            let prefix = prefix();
            let mut replicas: Vec<_> = (0..REPLICAS)
                .map(|_| (replica(&prefix, ROTATION[0]), 0))
                .collect();
            let mut given = Vec::new();
            for (at, advances) in turns {
                let behind = replicas.iter().map(|(_, step)| *step).min().expect("some");
                let (store, step) = &mut replicas[at];
                if advances && *step == behind && *step + 1 < ROTATION.len() {
                    *step += 1;
                    *store = store.clone().with_ring(ring(ROTATION[*step]));
                }
                given.push(cursors::save_in(store, "acme/ada/*", b"state").await);
                for cursor in &given {
                    for (store, _) in &replicas {
                        prop_assert!(cursors::is_kept(store, "acme/ada/*", cursor).await);
                    }
                }
            }
            Ok(())
        })
    });
    if let Err(error) = walked {
        panic!("{error}");
    }
}
