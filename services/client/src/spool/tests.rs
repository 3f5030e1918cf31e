//! Tests of the spool as a whole: whatever happens, no record is lost and none is sent again
//! once the service has answered for it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use cairn_wire::events::{BatchAnswer, ItemAnswer, ItemStatus};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::record::tests::record;
use super::*;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A hook appends a record.
    Append,
    /// A hook is killed in the middle of its line; a part of it is left.
    Torn(usize),
    /// A flush, whose requests fare like this, one after the other; the last one stays.
    Flush(Vec<Fate>),
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Taken, answered.
    Taken,
    /// Taken, but the flusher dies before the answer is there.
    Killed,
    /// Taken, but the answer is lost on the way.
    Lost,
    /// Taken and answered for every other item only.
    Half,
    /// Refused as too large.
    TooLarge,
    /// A hook appends while the request is under way; then taken.
    Busy,
}

/// A service that remembers, and notices what must not happen.
struct Memory {
    spool: Spool,
    fates: RefCell<Vec<Fate>>,
    /// Every record that a hook has been told is safe.
    appended: RefCell<BTreeSet<String>>,
    stored: RefCell<BTreeSet<String>>,
    answered: RefCell<BTreeSet<String>>,
}

impl Memory {
    fn append(&self) {
        let id = format!("e{}", self.appended.borrow().len() + 1);
        let done = self.spool.append(&record(&id, "text")).expect("appends");
        assert_eq!(done, Appended::Kept);
        self.appended.borrow_mut().insert(id);
    }

    fn next_fate(&self) -> Fate {
        let mut fates = self.fates.borrow_mut();
        if fates.len() > 1 {
            fates.remove(0)
        } else {
            fates[0]
        }
    }

    fn take(&self, body: &[u8], every: usize) -> Delivery {
        let request: Value = serde_json::from_slice(body).expect("JSON");
        let items = request["items"].as_array().expect("items");
        let ids = items
            .iter()
            .map(|item| item["event_id"].as_str().expect("an id").to_owned());
        let mut answer = BatchAnswer::default();
        for (place, id) in ids.enumerate() {
            assert!(
                self.appended.borrow().contains(&id),
                "{id} was never appended"
            );
            assert!(
                !self.answered.borrow().contains(&id),
                "{id} was answered for before"
            );
            let new = self.stored.borrow_mut().insert(id.clone());
            if place % every == 0 {
                self.answered.borrow_mut().insert(id.clone());
                let status = if new {
                    ItemStatus::Stored
                } else {
                    ItemStatus::Duplicate
                };
                answer.items.push(taken(id, status));
            }
        }
        // The order of answers carries no meaning.
        answer.items.reverse();
        Delivery::Answered {
            answer,
            version: None,
        }
    }

    /// Every record is with the service or still on the disk.
    fn check(&self) {
        let waiting = self.spool.waiting().expect("reads");
        let waiting: BTreeSet<String> = waiting.into_iter().map(|r| r.item.event_id).collect();
        for id in self.appended.borrow().iter() {
            assert!(
                self.stored.borrow().contains(id) || waiting.contains(id),
                "{id} is lost"
            );
        }
    }
}

fn taken(id: String, status: ItemStatus) -> ItemAnswer {
    ItemAnswer {
        event_id: Some(id),
        status,
        id: Some("1".to_owned()),
        event_id_reused: false,
        code: None,
        pointer: None,
        detail: None,
        retry: None,
    }
}

impl Service for Memory {
    async fn send(&self, body: Vec<u8>) -> Delivery {
        match self.next_fate() {
            Fate::Taken => self.take(&body, 1),
            Fate::Half => self.take(&body, 2),
            Fate::Busy => {
                self.append();
                self.take(&body, 1)
            }
            Fate::TooLarge if body.len() > 400 => Delivery::TooLarge,
            Fate::TooLarge => self.take(&body, 1),
            Fate::Lost | Fate::Killed => {
                let request: Value = serde_json::from_slice(&body).expect("JSON");
                for item in request["items"].as_array().expect("items") {
                    let id = item["event_id"].as_str().expect("an id").to_owned();
                    self.stored.borrow_mut().insert(id);
                }
                if matches!(self.fates.borrow().first(), Some(Fate::Killed)) {
                    std::future::pending::<()>().await;
                }
                Delivery::Stopped(Stop {
                    trouble: Trouble::Away,
                    why: "lost".to_owned(),
                    retry_after: None,
                })
            }
        }
    }
}

/// Flushes; a request that never comes back is where the flusher was killed.
fn flush(memory: &Memory, fates: Vec<Fate>) -> Option<Outcome> {
    *memory.fates.borrow_mut() = fates;
    let to = Addressee {
        service: "https://memory.example.com".to_owned(),
        tenant: None,
        machine: "m".to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = run(&memory.spool, memory, &to) => Some(outcome.expect("the disk works")),
            () = std::future::ready(()) => None,
        }
    })
}

fn memory(folder: &TempDir) -> Memory {
    Memory {
        spool: Spool::at(folder.path(), u64::MAX),
        fates: RefCell::new(vec![Fate::Taken]),
        appended: RefCell::default(),
        stored: RefCell::default(),
        answered: RefCell::default(),
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Taken),
        Just(Fate::Killed),
        Just(Fate::Lost),
        Just(Fate::Half),
        Just(Fate::TooLarge),
        Just(Fate::Busy),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Append),
        1 => (1_usize..100).prop_map(Step::Torn),
        2 => prop::collection::vec(fate(), 1..4).prop_map(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_record_is_lost_and_none_is_sent_again(steps in prop::collection::vec(step(), 1..24)) {
        let folder = TempDir::new().expect("a folder");
        let memory = memory(&folder);
        let mut torn = 0;
        for step in steps {
            match step {
                Step::Append => memory.append(),
                Step::Torn(length) => {
                    files::make_private_dir(&memory.spool.dir).expect("a folder");
                    let path = memory.spool.dir.join("open.ndjson");
                    let mut file = files::private().create(true).append(true).open(path);
                    let line = record("torn", &"x".repeat(100)).line();
                    // Two torn ends in a row are one line, so each is closed by an append.
                    let part = &line.as_bytes()[..length];
                    file.as_mut().expect("opens").write_all(part).expect("writes");
                    memory.append();
                    torn += 1;
                }
                Step::Flush(fates) => drop(flush(&memory, fates)),
            }
            memory.check();
        }
        let outcome = flush(&memory, vec![Fate::Taken]).expect("ends");
        prop_assert_eq!(outcome.stop, None);
        prop_assert!(memory.spool.is_empty());
        prop_assert_eq!(&*memory.stored.borrow(), &*memory.appended.borrow());
        // Parts of equal length are equal lines, and those are set aside once.
        let aside = memory.spool.aside().list().expect("reads").len();
        prop_assert!(aside <= torn && (aside > 0) == (torn > 0));
        let unfinished = fs::read_dir(&memory.spool.dir).expect("reads").flatten();
        let unfinished = unfinished.filter(|e| e.file_name().to_string_lossy().starts_with('.'));
        prop_assert_eq!(unfinished.count(), 0);
    }
}

#[test]
fn c024_hooks_that_run_during_a_flush_lose_nothing() {
    let folder = TempDir::new().expect("a folder");
    let spool = Spool::at(folder.path(), u64::MAX);
    let flushed = memory(&folder);
    for writer in 0..4 {
        for n in 0..25 {
            flushed
                .appended
                .borrow_mut()
                .insert(format!("{writer}-{n}"));
        }
    }
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let spool = spool.clone();
            scope.spawn(move || {
                for n in 0..25 {
                    spool
                        .append(&record(&format!("{writer}-{n}"), "t"))
                        .expect("appends");
                }
            });
        }
        for _ in 0..20 {
            flush(&flushed, vec![Fate::Taken]);
        }
    });
    flush(&flushed, vec![Fate::Taken]);
    assert_eq!(*flushed.stored.borrow(), *flushed.appended.borrow());
    assert!(spool.is_empty());
}

#[test]
fn a_hook_does_not_wait_for_a_lock_that_stays_held() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    memory.append();
    let lock = files::lock(&memory.spool.dir.join("lock"), Duration::ZERO).expect("locks");
    assert!(lock.is_some());
    memory.append();
    drop(lock);
    flush(&memory, vec![Fate::Taken]).expect("ends");
    assert_eq!(memory.stored.borrow().len(), 2);
}

#[test]
fn a_long_spool_is_cut_into_segments() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    let long = "x".repeat(900_000);
    for n in 1..=6 {
        let id = format!("e{n}");
        memory.spool.append(&record(&id, &long)).expect("appends");
        memory.appended.borrow_mut().insert(id);
    }
    assert_eq!(memory.spool.segments().expect("reads").len(), 1);
    flush(&memory, vec![Fate::Taken]).expect("ends");
    assert_eq!(memory.stored.borrow().len(), 6);
}
