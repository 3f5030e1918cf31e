//! Held back: records on which the service failed while it took others. Each is tried again a
//! few times, hours apart at the end, and waits beside the rest meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::files;

/// Seconds between one try and the next; after the try that follows the last, it is over.
const WAITS: [i64; 2] = [60, 3_600];

/// How long the note of a record is kept that nobody has seen since, in days.
const LIFE: i64 = 7;

/// Records that are held back, by event id.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    tries: BTreeMap<String, Try>,
    /// Records in a row on which the service failed, without one that it took.
    in_a_row: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Try {
    count: usize,
    at: DateTime<Utc>,
}

impl Held {
    /// What is held back in a spool's folder.
    pub fn load(dir: &Path, now: DateTime<Utc>) -> Self {
        let path = dir.join("held.json");
        let text = files::read(&path, 16 * files::LARGE, files::Links::Refuse).unwrap_or_default();
        let mut tries: BTreeMap<String, Try> = serde_json::from_slice(&text).unwrap_or_default();
        tries.retain(|_, tried| now - tried.at < TimeDelta::days(LIFE));
        Self {
            path,
            tries,
            in_a_row: 0,
        }
    }

    /// How many are held back.
    pub fn count(&self) -> usize {
        self.tries.len()
    }

    /// Whether a record must wait for its next try. A clock that was set back holds nobody back.
    pub fn is_waiting(&self, event_id: &str, now: DateTime<Utc>) -> bool {
        let waiting = |tried: &Try| {
            let wait = TimeDelta::seconds(WAITS.get(tried.count - 1).copied().unwrap_or(0));
            (tried.at..tried.at + wait).contains(&now)
        };
        self.tries.get(event_id).is_some_and(waiting)
    }

    /// Notes that the service failed on this record alone; whether it may be tried again.
    pub fn fail(&mut self, event_id: &str, now: DateTime<Utc>) -> bool {
        self.in_a_row += 1;
        let count = self.tries.get(event_id).map_or(0, |tried| tried.count) + 1;
        let again = count <= WAITS.len();
        if again {
            let tried = Try { count, at: now };
            self.tries.insert(event_id.to_owned(), tried);
        } else {
            self.tries.remove(event_id);
        }
        self.save();
        again
    }

    /// Holds a record back that the service gave no known answer for. It is not at fault, and no
    /// number of tries is its last.
    pub fn hold(&mut self, event_id: &str, now: DateTime<Utc>) {
        let tried = Try {
            count: WAITS.len(),
            at: now,
        };
        self.tries.insert(event_id.to_owned(), tried);
        self.save();
    }

    /// Forgets a record that is dealt with.
    pub fn forget(&mut self, event_id: &str) {
        if self.tries.remove(event_id).is_some() {
            self.save();
        }
    }

    /// Notes that the service has done its work for a request.
    pub const fn note_success(&mut self) {
        self.in_a_row = 0;
    }

    /// Whether it is the service that fails rather than a record.
    pub const fn is_service_at_fault(&self) -> bool {
        self.in_a_row > 1
    }

    /// A note that cannot be kept costs a try, no record.
    fn save(&self) {
        if self.tries.is_empty() {
            drop(fs::remove_file(&self.path));
            return;
        }
        let json = serde_json::to_vec(&self.tries).expect("texts serialise");
        drop(files::replace(&self.path, &json));
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn tries_are_few_and_spread_over_time() {
        let folder = TempDir::new().expect("a folder");
        let start = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let held = || Held::load(folder.path(), start);
        assert!(held().fail("e1", start));
        let after = |seconds| start + TimeDelta::seconds(seconds);
        assert!(held().is_waiting("e1", after(59)) && !held().is_waiting("e1", after(60)));
        assert!(
            !held().is_waiting("e1", after(-9)),
            "the clock was set back"
        );
        assert!(!held().is_waiting("e2", start));
        assert!(held().fail("e1", after(60)));
        assert!(held().is_waiting("e1", after(3_659)) && !held().is_waiting("e1", after(3_660)));
        assert!(
            !held().fail("e1", after(3_660)),
            "the third try is the last"
        );
        assert_eq!(held().count(), 0);
    }
}
