//! The fold: what a list says, from its entries in any order. A folded list is also the snapshot
//! that stands beside the log: another entry merges into it exactly as into the entries.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Held;
use super::entry::TASK;
use crate::hlc::Hlc;

/// The key whose value closes a task or a list.
const STATUS: &str = "status";
/// What closes.
const CLOSING: [&str; 2] = ["done", "dropped"];

/// An entry's place in the fold: no two entries share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "(i64, u32, Uuid)", from = "(i64, u32, Uuid)")]
pub struct Place {
    /// When, by the hybrid logical clock.
    pub hlc: Hlc,
    /// Its event id tells entries of one moment apart.
    pub event: Uuid,
}

impl From<Place> for (i64, u32, Uuid) {
    fn from(place: Place) -> Self {
        (place.hlc.ms, place.hlc.counter, place.event)
    }
}

impl From<(i64, u32, Uuid)> for Place {
    fn from((ms, counter, event): (i64, u32, Uuid)) -> Self {
        let hlc = Hlc { ms, counter };
        Self { hlc, event }
    }
}

/// An appended entry.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkEntry {
    /// Its list.
    pub list: String,
    /// Its task; `None` for the list's own state.
    pub task: Option<String>,
    /// Its fields, in the order given.
    pub fields: Map<String, Value>,
    /// Its place in the fold.
    pub place: Place,
    /// Who wrote it.
    pub author: String,
}

/// A key with its last value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredKey", from = "StoredKey")]
struct Key {
    name: String,
    value: Value,
    written: Place,
    /// Where it first appeared: the entry, and which of its keys.
    first: (Place, u32),
}

/// A key as it is kept.
type StoredKey = (String, Value, Place, Place, u32);

impl From<Key> for StoredKey {
    fn from(key: Key) -> Self {
        (key.name, key.value, key.written, key.first.0, key.first.1)
    }
}

impl From<StoredKey> for Key {
    fn from((name, value, written, place, nth): StoredKey) -> Self {
        let first = (place, nth);
        Self {
            name,
            value,
            written,
            first,
        }
    }
}

/// A task, or the state of a list: its keys, folded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The task's name; `None` for the list's own state.
    pub task: Option<String>,
    /// Where it first appeared.
    pub first: Place,
    /// Its newest entry.
    pub last: Place,
    /// Who wrote the newest entry.
    pub author: String,
    /// Who works on it, if the claim still holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Held>,
    keys: Vec<Key>,
}

impl Item {
    /// The item of one entry.
    #[must_use]
    pub fn of(entry: &WorkEntry) -> Self {
        let mut item = Self {
            task: entry.task.clone(),
            first: entry.place,
            last: entry.place,
            author: entry.author.clone(),
            claim: None,
            keys: Vec::new(),
        };
        item.add(entry);
        item
    }

    /// Merges one more entry of the same item; one that is in it already changes nothing.
    pub fn add(&mut self, entry: &WorkEntry) {
        let place = entry.place;
        self.first = self.first.min(place);
        if place > self.last {
            self.last = place;
            self.author.clone_from(&entry.author);
        }
        for (nth, (name, value)) in (0..).zip(&entry.fields) {
            let first = (place, nth);
            match self.keys.iter_mut().find(|key| key.name == *name) {
                Some(key) => {
                    key.first = key.first.min(first);
                    if place > key.written {
                        key.written = place;
                        key.value.clone_from(value);
                    }
                }
                None => self.keys.push(Key {
                    name: name.clone(),
                    value: value.clone(),
                    written: place,
                    first,
                }),
            }
        }
        self.keys.sort_by_key(|key| key.first);
    }

    /// The value of a key, as text; `None` if it has none.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        as_text(&key.value)
    }

    /// Whether its status closes it. Anything else, unknown or missing, is open.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let status = self.value(STATUS).map(|status| status.to_lowercase());
        status.is_some_and(|status| CLOSING.contains(&status.as_str()))
    }

    /// The keys that are shown, by first appearance: the task's name and cleared ones are not.
    pub fn visible(&self) -> impl Iterator<Item = (&str, &Value)> {
        let shown = |key: &&Key| key.name != TASK && !key.value.is_null();
        let shown = self.keys.iter().filter(shown);
        shown.map(|key| (key.name.as_str(), &key.value))
    }

    /// Whether nothing of it would be shown: the state of a list without a value.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.task.is_none() && self.visible().next().is_none()
    }

    /// Its keys as they are kept beside the log.
    ///
    /// # Panics
    /// Never: keys are texts and values are scalars.
    #[must_use]
    pub fn stored_keys(&self) -> String {
        serde_json::to_string(&self.keys).expect("texts and scalars serialise")
    }

    /// An item as it was kept, without a claim.
    ///
    /// # Errors
    /// The parser's, for keys that were not written by [`Item::stored_keys`].
    pub fn from_stored(
        task: Option<String>,
        first: Place,
        last: Place,
        author: String,
        keys: &str,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            task,
            first,
            last,
            author,
            claim: None,
            keys: serde_json::from_str(keys)?,
        })
    }
}

/// A value as it is shown and compared; null is none.
pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A list of a project, folded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct List {
    /// Its name.
    pub name: String,
    /// The project it belongs to, where that is not the one that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its newest entry.
    pub newest: Place,
    /// Its own state, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Item>,
    /// Its tasks, by first appearance.
    #[serde(default)]
    pub tasks: Vec<Item>,
}

impl List {
    /// Lines that show what is open in it: none if nothing is.
    #[must_use]
    pub fn open_lines(&self) -> usize {
        let tasks = self.tasks.iter().filter(|task| !task.is_closed()).count();
        let state = self.state.as_ref();
        let has_state = state.is_some_and(|state| !state.is_blank() && !state.is_closed());
        tasks + usize::from(has_state || tasks > 0)
    }

    fn of(entry: &WorkEntry) -> Self {
        let mut list = Self {
            name: entry.list.clone(),
            project: None,
            newest: entry.place,
            state: None,
            tasks: Vec::new(),
        };
        list.add(entry);
        list
    }

    fn add(&mut self, entry: &WorkEntry) {
        self.newest = self.newest.max(entry.place);
        let item = match &entry.task {
            None => self.state.as_mut(),
            task => self.tasks.iter_mut().find(|item| item.task == *task),
        };
        match (item, &entry.task) {
            (Some(item), _) => item.add(entry),
            (None, None) => self.state = Some(Item::of(entry)),
            (None, Some(_)) => self.tasks.push(Item::of(entry)),
        }
        self.tasks.sort_by_key(|item| item.first);
    }
}

/// The lists of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkState {
    /// The lists, newest entry first.
    pub lists: Vec<List>,
    /// Lines of lists and tasks that exist but were not read: an endless list is not read whole.
    #[serde(default)]
    pub unread_lines: usize,
    /// Those among them that are open, or hold what is.
    #[serde(default)]
    pub unread_open_lines: usize,
}

impl WorkState {
    /// Merges one more entry.
    pub fn add(&mut self, entry: &WorkEntry) {
        let own = |list: &&mut List| list.name == entry.list && list.project.is_none();
        match self.lists.iter_mut().find(own) {
            Some(list) => list.add(entry),
            None => self.lists.push(List::of(entry)),
        }
        self.lists
            .sort_by_key(|list| std::cmp::Reverse(list.newest));
    }

    /// The highest moment in it.
    #[must_use]
    pub fn newest(&self) -> Option<Hlc> {
        self.lists.iter().map(|list| list.newest.hlc).max()
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
