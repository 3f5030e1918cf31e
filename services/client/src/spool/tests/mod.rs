//! Tests of the spool as a whole: whatever happens, no record is lost and none is sent again
//! once the service has answered for it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use cairn_wire::events::ProjectName;
use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::answer::ItemAnswer;
use super::record::tests::record;
use super::*;
use crate::account::{Account, Tenants};

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
    /// The service fails.
    Fault,
    /// A hook appends while the request is under way; then taken.
    Busy,
}

/// A service that remembers, and notices what must not happen.
struct Memory {
    spool: Spool,
    fates: RefCell<Vec<Fate>>,
    now: Cell<DateTime<Utc>>,
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
        let mut answer = Answer::default();
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
                let status = if new { "stored" } else { "duplicate" };
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
        let aside = self.spool.aside().list().expect("reads");
        let aside = aside
            .iter()
            .filter_map(|entry| Record::parse(entry.line.as_bytes()).ok());
        let waiting = self
            .spool
            .waiting()
            .expect("reads")
            .into_iter()
            .chain(aside);
        let waiting: BTreeSet<String> = waiting.map(|r| r.item.event_id).collect();
        for id in self.appended.borrow().iter() {
            assert!(
                self.stored.borrow().contains(id) || waiting.contains(id),
                "{id} is lost"
            );
        }
    }
}

fn taken(id: String, status: &str) -> ItemAnswer {
    ItemAnswer {
        event_id: id,
        status: status.to_owned(),
        ..ItemAnswer::default()
    }
}

/// The account of tenant `acme`, as far as its client knows.
fn addressee(memory: &Memory, tenant: Option<&str>) -> Addressee {
    let home = memory.spool.dir.clone();
    let dirs = Dirs {
        config: home.join("config"),
        data: home.join("data"),
        state: home.join("state"),
        home,
    };
    let service = "https://memory.example.com";
    Addressee {
        service: service.to_owned(),
        account: Account::for_tests("key", "ourkey", tenant),
        tenants: Tenants::of(&dirs, service),
        machine: "m".to_owned(),
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
            Fate::Fault => Delivery::Fault {
                why: "internal - why".to_owned(),
                version: None,
            },
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
    let to = addressee(memory, None);
    let flush = Flush {
        spool: &memory.spool,
        service: memory,
        to: &to,
        name: &|root| match root {
            "named" => Naming::Project(ProjectName {
                key: "repo:1".to_owned(),
                name: None,
            }),
            "none" => Naming::Folder,
            _ => Naming::Later,
        },
        now: memory.now.get(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = flush.run() => Some(outcome.expect("the disk works")),
            () = std::future::ready(()) => None,
        }
    })
}

/// Passes time.
fn pass(memory: &Memory, hours: i64) {
    memory.now.set(memory.now.get() + TimeDelta::hours(hours));
}

fn memory(folder: &TempDir) -> Memory {
    Memory {
        spool: Spool::at(folder.path(), u64::MAX),
        fates: RefCell::new(vec![Fate::Taken]),
        now: Cell::new(Utc::now()),
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
        Just(Fate::Fault),
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
            pass(&memory, 1);
        }
        // Of what was set aside, lines that were torn cannot come back.
        memory.spool.put_back(|_| true).expect("appends");
        pass(&memory, 1);
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

/// A service that fails on some records, by event id, however they come.
struct Faulty<'a> {
    memory: &'a Memory,
    bad: &'a [&'a str],
    requests: Cell<usize>,
}

impl Service for Faulty<'_> {
    async fn send(&self, body: Vec<u8>) -> Delivery {
        self.requests.set(self.requests.get() + 1);
        let request: Value = serde_json::from_slice(&body).expect("JSON");
        let mut ids = request["items"].as_array().expect("items").iter();
        if ids.any(|item| self.bad.iter().any(|bad| item["event_id"] == *bad)) {
            return Delivery::Fault {
                why: "internal - why".to_owned(),
                version: Some("0.1.0".to_owned()),
            };
        }
        self.memory.take(&body, 1)
    }
}

fn flush_faulty(memory: &Memory, bad: &[&str]) -> (Outcome, usize) {
    let service = Faulty {
        memory,
        bad,
        requests: Cell::new(0),
    };
    let to = addressee(memory, None);
    let flush = Flush {
        spool: &memory.spool,
        service: &service,
        to: &to,
        name: &|_| Naming::Later,
        now: memory.now.get(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let outcome = runtime.expect("a runtime").block_on(flush.run());
    (outcome.expect("the disk works"), service.requests.get())
}

#[test]
fn a_record_on_which_the_service_fails_does_not_hold_up_the_rest() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    (0..40).for_each(|_| memory.append());
    let (outcome, _) = flush_faulty(&memory, &["e7"]);
    assert_eq!(
        (outcome.sent, outcome.set_aside, outcome.stop),
        (39, 0, None)
    );
    assert_eq!(memory.spool.held(), 1);
    // It is not tried again at once, and others pass it.
    memory.append();
    let (outcome, requests) = flush_faulty(&memory, &["e7"]);
    assert_eq!((outcome.sent, requests), (1, 1));
    pass(&memory, 2);
    let (outcome, requests) = flush_faulty(&memory, &["e7"]);
    assert_eq!((outcome.set_aside, requests), (0, 1));
    pass(&memory, 2);
    let (outcome, _) = flush_faulty(&memory, &["e7"]);
    assert_eq!((outcome.set_aside, outcome.stop), (1, None));
    let aside = memory.spool.aside().list().expect("reads");
    assert_eq!(aside[0].reason, "internal - why");
    assert_eq!(aside[0].code.as_deref(), Some("internal"));
    assert!(memory.spool.is_empty());
    assert_eq!(memory.spool.held(), 0);
}

#[test]
fn a_service_that_fails_on_everything_is_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    (0..400).for_each(|_| memory.append());
    let outcome = flush(&memory, vec![Fate::Fault]).expect("ends");
    let stop = outcome.stop.expect("stops");
    assert_eq!(stop.trouble, Trouble::Fault);
    assert_eq!((outcome.sent, outcome.set_aside), (0, 0));
    assert_eq!(memory.spool.held(), 2);
    assert_eq!(memory.spool.waiting().expect("reads").len(), 400);
}

#[test]
fn a_segment_is_rewritten_only_if_something_changed() {
    use std::os::unix::fs::MetadataExt;

    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    let mut foreign = record("e1", "t");
    foreign.service = Some("https://other.example.com".to_owned());
    memory.spool.append(&foreign).expect("appends");
    memory.spool.rotate().expect("rotates");
    let path = memory.spool.segments().expect("reads").remove(0);
    let file = || fs::metadata(&path).expect("is there").ino();
    let before = file();
    flush(&memory, vec![Fate::Taken]).expect("ends");
    assert_eq!(file(), before);
}

#[test]
fn what_comes_back_is_gone_from_set_aside_only_if_it_was_appended() {
    let folder = TempDir::new().expect("a folder");
    let mut memory = memory(&folder);
    let mut call = record("e1", "t");
    call.item.kind = "tool_use".to_owned();
    let entry = |line: String| AsideEntry {
        line: line.trim_end().to_owned(),
        reason: "why".to_owned(),
        code: None,
        version: None,
    };
    let entries = vec![entry(call.line()), entry("{\"torn".to_owned())];
    memory.spool.aside().add(entries).expect("adds");
    // A record that comes back takes the room it had, so a full spool is no reason to lose it.
    memory.spool.max_bytes = 1;
    assert_eq!(memory.spool.put_back(|_| true).expect("appends"), 1);
    assert_eq!(memory.spool.waiting().expect("reads").len(), 1);
    assert_eq!(memory.spool.counted(), 0);
    assert_eq!(memory.spool.aside().count().expect("reads"), 1);
    // Nothing can be appended where a file stands in the way.
    memory
        .spool
        .aside()
        .add(vec![entry(call.line())])
        .expect("adds");
    fs::remove_dir_all(&memory.spool.dir).expect("removes");
    fs::write(&memory.spool.dir, "").expect("writes");
    assert!(memory.spool.put_back(|_| true).is_err());
    assert_eq!(memory.spool.aside().count().expect("reads"), 2);
}

#[test]
fn set_aside_records_take_room_in_the_spool() {
    let folder = TempDir::new().expect("a folder");
    let mut memory = memory(&folder);
    memory.spool.max_bytes = 2_000;
    let mut call = record("e1", "t");
    call.item.kind = "tool_use".to_owned();
    assert_eq!(memory.spool.append(&call).expect("appends"), Appended::Kept);
    let aside = AsideEntry {
        line: "x".repeat(2_000),
        reason: "why".to_owned(),
        code: None,
        version: None,
    };
    memory.spool.aside().add(vec![aside]).expect("adds");
    assert_eq!(
        memory.spool.append(&call).expect("appends"),
        Appended::Counted
    );
}

#[test]
fn a_record_leaves_under_the_name_of_its_repository_or_not_yet() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    for (id, root) in [("e1", "named"), ("e2", "none"), ("e3", "late")] {
        let mut unnamed = record(id, "t");
        unnamed.checkout_root = Some(root.to_owned());
        memory.spool.append(&unnamed).expect("appends");
        memory.appended.borrow_mut().insert(id.to_owned());
    }
    let outcome = flush(&memory, vec![Fate::Lost]).expect("ends");
    assert_eq!(outcome.sent, 0);
    let waiting = memory.spool.waiting().expect("reads");
    let names: Vec<_> = waiting
        .iter()
        .map(|record| {
            let key = record
                .item
                .project
                .as_ref()
                .map(|project| project.key.as_str());
            (key, record.checkout_root.as_deref())
        })
        .collect();
    assert_eq!(
        names,
        [(Some("repo:1"), None), (None, None), (None, Some("late"))]
    );
    let outcome = flush(&memory, vec![Fate::Taken]).expect("ends");
    assert_eq!(outcome.sent, 2);
    assert!(!memory.spool.has_more_than(&outcome).expect("reads"));
}

#[test]
fn neighbours_on_which_the_service_fails_hold_up_the_rest_for_one_flush_only() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    (0..40).for_each(|_| memory.append());
    let (outcome, _) = flush_faulty(&memory, &["e7", "e8"]);
    assert_eq!(outcome.stop.map(|stop| stop.trouble), Some(Trouble::Fault));
    let (outcome, _) = flush_faulty(&memory, &["e7", "e8"]);
    assert_eq!(outcome.stop, None);
    assert_eq!(memory.spool.waiting().expect("reads").len(), 2);
}

#[test]
fn a_record_is_for_the_tenant_it_was_spooled_for_or_for_nobody_yet() {
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    let unknown = addressee(&memory, None);
    let acme = addressee(&memory, Some("acme"));
    acme.tenants.note("oldkey", "acme");
    acme.tenants.note("theirs", "beta");
    let of = |tenant: Option<&str>, key_id: Option<&str>| {
        let mut record = record("e1", "t");
        record.tenant = tenant.map(str::to_owned);
        record.key_id = key_id.map(str::to_owned);
        record
    };
    for (tenant, key_id, for_acme, for_unknown) in [
        (Some("acme"), None, true, false),
        (Some("beta"), None, false, false),
        (Some("beta"), Some("ourkey"), false, false),
        (None, Some("ourkey"), true, true),
        (None, Some("oldkey"), true, false),
        (None, Some("theirs"), false, false),
        (None, Some("neverseen"), false, false),
        (None, Some("../theirs"), false, false),
    ] {
        let record = of(tenant, key_id);
        let found = (acme.is_for(&record), unknown.is_for(&record));
        assert_eq!(found, (for_acme, for_unknown), "{tenant:?} {key_id:?}");
    }
    let mut free = of(None, None);
    assert!(acme.claim(&mut free) && free.tenant.as_deref() == Some("acme"));
    let mut free = of(None, None);
    assert!(unknown.claim(&mut free) && free.key_id.as_deref() == Some("ourkey"));
    let mut elsewhere = of(None, None);
    elsewhere.service = None;
    assert!(!acme.is_for(&elsewhere));
}

#[test]
fn a_record_with_an_outcome_of_a_later_version_stays_and_the_rest_goes_on() {
    struct Later;
    impl Service for Later {
        async fn send(&self, _: Vec<u8>) -> Delivery {
            let items = [("e1", "pondered"), ("e2", "stored")];
            let items = items.map(|(id, status)| taken(id.to_owned(), status));
            Delivery::Answered {
                answer: Answer {
                    items: items.to_vec(),
                },
                version: None,
            }
        }
    }
    let folder = TempDir::new().expect("a folder");
    let memory = memory(&folder);
    (0..2).for_each(|_| memory.append());
    let flush = Flush {
        spool: &memory.spool,
        service: &Later,
        to: &addressee(&memory, None),
        name: &|_| Naming::Later,
        now: memory.now.get(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let outcome = runtime.expect("a runtime").block_on(flush.run());
    let outcome = outcome.expect("the disk works");
    assert_eq!(
        (outcome.sent, outcome.set_aside, outcome.stop),
        (1, 0, None)
    );
    let waiting = memory.spool.waiting().expect("reads");
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].item.event_id, "e1");
    assert_eq!(memory.spool.held(), 1);
}
