//! Sealed states in this process, for a server without Redis. Bounded in number and bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use cairn_domain::limits;
use chrono::{DateTime, TimeDelta, Utc};

use super::Found;

/// A shared shelf; every call costs O(log n).
#[derive(Clone)]
pub(super) struct MemoryShelf {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    most_entries: usize,
    most_bytes: usize,
    bytes: usize,
    next_turn: u64,
    turns: HashMap<String, u64>,
    /// By turn of arrival: the first is the oldest.
    entries: BTreeMap<u64, Entry>,
    /// When each entry changes next: a state to a marker, a marker to nothing.
    deadlines: BTreeSet<(DateTime<Utc>, u64)>,
}

struct Entry {
    name: String,
    /// `None` once the state is over and only its marker is left.
    sealed: Option<Vec<u8>>,
    deadline: DateTime<Utc>,
}

impl MemoryShelf {
    /// An empty shelf for so many states and markers, and so many sealed bytes.
    pub(super) fn new(most_entries: usize, most_bytes: usize) -> Self {
        let inner = Inner {
            most_entries,
            most_bytes,
            bytes: 0,
            next_turn: 0,
            turns: HashMap::new(),
            entries: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Keeps a sealed state; the oldest make room for it.
    pub(super) fn put(
        &self,
        name: String,
        sealed: Vec<u8>,
        expires_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) {
        let mut inner = self.lock();
        inner.pass_deadlines(now);
        inner.insert(name, sealed, expires_at);
        inner.evict();
    }

    /// What stands under a name at this time.
    pub(super) fn get(&self, name: &str, now: DateTime<Utc>) -> Found {
        let mut inner = self.lock();
        inner.pass_deadlines(now);
        let entry = inner.turns.get(name).map(|turn| &inner.entries[turn]);
        match entry.map(|entry| &entry.sealed) {
            Some(Some(sealed)) => Found::Sealed(sealed.clone()),
            Some(None) => Found::Marker,
            None => Found::Nothing,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while holding the lock would be a bug in this file; the maps stay usable.
        self.inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    fn insert(&mut self, name: String, sealed: Vec<u8>, deadline: DateTime<Utc>) {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.bytes += sealed.len();
        self.deadlines.insert((deadline, turn));
        self.turns.insert(name.clone(), turn);
        let sealed = Some(sealed);
        self.entries.insert(
            turn,
            Entry {
                name,
                sealed,
                deadline,
            },
        );
    }

    fn evict(&mut self) {
        while self.entries.len() > self.most_entries || self.bytes > self.most_bytes {
            let Some((&oldest, _)) = self.entries.first_key_value() else {
                return;
            };
            self.remove(oldest);
        }
    }

    fn pass_deadlines(&mut self, now: DateTime<Utc>) {
        while let Some(&(deadline, turn)) = self.deadlines.first() {
            if deadline > now {
                return;
            }
            self.pass_deadline(turn);
        }
    }

    fn pass_deadline(&mut self, turn: u64) {
        let entry = self.entries.get_mut(&turn);
        let entry = entry.expect("every deadline belongs to an entry");
        let Some(sealed) = entry.sealed.take() else {
            return self.remove(turn);
        };
        self.bytes -= sealed.len();
        self.deadlines.remove(&(entry.deadline, turn));
        entry.deadline += TimeDelta::from_std(limits::EXPIRED_TTL).expect("minutes fit");
        self.deadlines.insert((entry.deadline, turn));
    }

    fn remove(&mut self, turn: u64) {
        let Some(entry) = self.entries.remove(&turn) else {
            return;
        };
        self.bytes -= entry.sealed.map_or(0, |sealed| sealed.len());
        self.deadlines.remove(&(entry.deadline, turn));
        self.turns.remove(&entry.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).expect("a time")
    }

    fn put(shelf: &MemoryShelf, name: &str, bytes: usize, expires: i64, now: i64) {
        shelf.put(name.to_owned(), vec![1; bytes], at(expires), at(now));
    }

    fn sealed(shelf: &MemoryShelf, name: &str, now: i64) -> bool {
        matches!(shelf.get(name, at(now)), Found::Sealed(_))
    }

    #[test]
    fn the_oldest_goes_first_when_there_are_too_many() {
        let shelf = MemoryShelf::new(2, 100);
        for name in ["a", "b", "c"] {
            put(&shelf, name, 1, 900, 0);
        }
        assert!(!sealed(&shelf, "a", 0) && sealed(&shelf, "b", 0) && sealed(&shelf, "c", 0));
    }

    #[test]
    fn the_oldest_go_first_when_they_are_too_large() {
        let shelf = MemoryShelf::new(10, 100);
        put(&shelf, "a", 40, 900, 0);
        put(&shelf, "b", 40, 900, 0);
        put(&shelf, "c", 90, 900, 0);
        assert!(!sealed(&shelf, "a", 0) && !sealed(&shelf, "b", 0) && sealed(&shelf, "c", 0));
    }

    #[test]
    fn expired_states_free_their_bytes_before_a_live_one_must_go() {
        let shelf = MemoryShelf::new(10, 100);
        put(&shelf, "live", 50, 900, 0);
        put(&shelf, "short", 50, 10, 0);
        put(&shelf, "new", 50, 900, 20);
        assert!(sealed(&shelf, "live", 20) && sealed(&shelf, "new", 20));
        assert_eq!(shelf.get("short", at(20)), Found::Marker);
    }

    #[test]
    fn a_state_turns_to_a_marker_and_the_marker_to_nothing() {
        let shelf = MemoryShelf::new(10, 100);
        put(&shelf, "a", 1, 900, 0);
        assert!(sealed(&shelf, "a", 899));
        assert_eq!(shelf.get("a", at(900)), Found::Marker);
        assert_eq!(shelf.get("a", at(1_799)), Found::Marker);
        assert_eq!(shelf.get("a", at(1_800)), Found::Nothing);
        let inner = shelf.lock();
        assert_eq!(
            (inner.bytes, inner.entries.len(), inner.deadlines.len()),
            (0, 0, 0)
        );
        assert!(inner.turns.is_empty());
    }

    #[test]
    fn a_time_long_past_passes_both_deadlines_at_once() {
        let shelf = MemoryShelf::new(10, 100);
        put(&shelf, "a", 1, 900, 0);
        assert_eq!(shelf.get("a", at(10_000)), Found::Nothing);
    }
}
