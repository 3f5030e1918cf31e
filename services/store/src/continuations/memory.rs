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

/// States and markers are numbered by their arrival, so the first of each is the oldest.
struct Inner {
    most_entries: usize,
    most_bytes: usize,
    bytes: usize,
    next_turn: u64,
    turns: HashMap<String, u64>,
    states: BTreeMap<u64, State>,
    /// What is left of states whose time is over. They never cost a state its place.
    markers: BTreeMap<u64, Marker>,
    /// When each changes next: a state to a marker, a marker to nothing.
    deadlines: BTreeSet<(DateTime<Utc>, u64)>,
}

struct State {
    name: String,
    sealed: Vec<u8>,
    deadline: DateTime<Utc>,
}

struct Marker {
    name: String,
    deadline: DateTime<Utc>,
}

impl MemoryShelf {
    /// An empty shelf for so many states, as many markers, and so many sealed bytes.
    pub(super) fn new(most_entries: usize, most_bytes: usize) -> Self {
        let inner = Inner {
            most_entries,
            most_bytes,
            bytes: 0,
            next_turn: 0,
            turns: HashMap::new(),
            states: BTreeMap::new(),
            markers: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Keeps a sealed state under a fresh name; the oldest make room for it.
    pub(super) fn put(
        &self,
        name: String,
        sealed: Vec<u8>,
        expires_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) {
        let mut inner = self.lock();
        inner.insert(name, sealed, expires_at);
        inner.pass_deadlines(now);
        inner.evict();
    }

    /// What stands under a name at this time.
    pub(super) fn get(&self, name: &str, now: DateTime<Utc>) -> Found {
        let mut inner = self.lock();
        inner.pass_deadlines(now);
        match inner.turns.get(name).map(|turn| inner.states.get(turn)) {
            Some(Some(state)) => Found::Sealed(state.sealed.clone()),
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
        let state = State {
            name,
            sealed,
            deadline,
        };
        self.states.insert(turn, state);
    }

    /// The newest state always stays.
    fn evict(&mut self) {
        while self.states.len() > 1
            && (self.states.len() > self.most_entries || self.bytes > self.most_bytes)
        {
            if let Some((turn, state)) = self.states.pop_first() {
                self.bytes -= state.sealed.len();
                self.deadlines.remove(&(state.deadline, turn));
                self.turns.remove(&state.name);
            }
        }
        while self.markers.len() > self.most_entries {
            if let Some((turn, marker)) = self.markers.pop_first() {
                self.deadlines.remove(&(marker.deadline, turn));
                self.turns.remove(&marker.name);
            }
        }
    }

    fn pass_deadlines(&mut self, now: DateTime<Utc>) {
        while let Some(&(deadline, turn)) = self.deadlines.first() {
            if deadline > now {
                return;
            }
            self.deadlines.pop_first();
            self.pass_deadline(turn);
        }
    }

    fn pass_deadline(&mut self, turn: u64) {
        if let Some(State {
            name,
            sealed,
            deadline,
        }) = self.states.remove(&turn)
        {
            self.bytes -= sealed.len();
            let grace = TimeDelta::from_std(limits::EXPIRED_TTL).expect("minutes fit");
            let deadline = deadline + grace;
            self.deadlines.insert((deadline, turn));
            self.markers.insert(turn, Marker { name, deadline });
        } else if let Some(marker) = self.markers.remove(&turn) {
            self.turns.remove(&marker.name);
        }
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
    fn markers_are_bounded_and_cost_no_state_its_place() {
        let shelf = MemoryShelf::new(2, 100);
        put(&shelf, "live", 1, 900, 0);
        for (second, name) in (1..).zip(["a", "b", "c"]) {
            put(&shelf, name, 1, second, second - 1);
        }
        assert!(sealed(&shelf, "live", 3));
        put(&shelf, "new", 1, 900, 3);
        assert!(sealed(&shelf, "live", 3) && sealed(&shelf, "new", 3));
        assert_eq!(shelf.get("a", at(3)), Found::Nothing);
        assert_eq!(shelf.get("b", at(3)), Found::Marker);
        assert_eq!(shelf.get("c", at(3)), Found::Marker);
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
        let left = [inner.states.len(), inner.markers.len(), inner.turns.len()];
        assert_eq!((inner.bytes, left, inner.deadlines.len()), (0, [0; 3], 0));
    }

    #[test]
    fn a_time_long_past_passes_both_deadlines_at_once() {
        let shelf = MemoryShelf::new(10, 100);
        put(&shelf, "a", 1, 900, 0);
        assert_eq!(shelf.get("a", at(10_000)), Found::Nothing);
    }
}
