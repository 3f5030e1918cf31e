//! Pace: when the service may be tried again, and what it said last.

use std::path::PathBuf;
use std::time::Duration;

use cairn_wire::domain::hex::hex;
use cairn_wire::domain::redact::safe;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::service::{Outcome, Stop, Trouble};
use crate::config::Dirs;
use crate::files;

/// The longest wait between two attempts, in seconds, where the service names none.
const LONGEST: u64 = 300;

/// The longest wait that the service may ask for, in seconds.
const LONGEST_ASKED: u64 = 3_600;

/// What is added at most to such a wait, as a part of it.
const JITTER: f64 = 0.2;

/// The wait after a sign-in that was not accepted, in seconds.
const SIGN_IN_WAIT: u64 = 60;

/// The state of delivery, kept between processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// Before this, nothing is sent.
    pub not_before: Option<DateTime<Utc>>,
    /// When that was noted.
    noted_at: Option<DateTime<Utc>>,
    /// Attempts that failed in a row.
    pub failures: u32,
    /// What kind of trouble there is.
    pub trouble: Option<Trouble>,
    /// The trouble in words.
    pub error: Option<String>,
    /// When the service last took a record.
    pub sent_at: Option<DateTime<Utc>>,
    /// To whom all this applies: another key or service starts afresh.
    who: String,
}

impl Pace {
    /// What is known about delivery to `service` with `key`.
    #[must_use]
    pub fn load(dirs: &Dirs, service: &str, key: Option<&str>) -> Self {
        let who = Sha256::digest(format!("{service}\0{}", key.unwrap_or_default()));
        let who = hex(&who)[..32].to_owned();
        let text = files::read(&path(dirs), files::LARGE, files::Links::Refuse).unwrap_or_default();
        let known: Self = serde_json::from_slice(&text).unwrap_or_default();
        if known.who == who {
            return known;
        }
        Self {
            who,
            sent_at: known.sent_at,
            ..Self::default()
        }
    }

    /// How long to wait before the next attempt. A wait that a clock which was set back would
    /// draw out counts as none.
    #[must_use]
    pub fn wait(&self, now: DateTime<Utc>) -> Duration {
        let set_back = self.noted_at.is_some_and(|noted| now < noted);
        let left = self.not_before.and_then(|at| (at - now).to_std().ok());
        let longest = Duration::from_secs(LONGEST_ASKED).mul_f64(1.0 + JITTER);
        left.filter(|left| !set_back && *left <= longest)
            .unwrap_or_default()
    }

    /// Takes in what became of an attempt.
    pub fn note(&mut self, outcome: &Outcome, now: DateTime<Utc>) {
        if outcome.sent > 0 {
            self.sent_at = Some(now);
        }
        let Some(stop) = &outcome.stop else {
            let (who, sent_at) = (std::mem::take(&mut self.who), self.sent_at);
            *self = Self {
                who,
                sent_at,
                ..Self::default()
            };
            return;
        };
        // Progress before the trouble means that the service is there: waits start anew.
        self.failures = if outcome.sent > 0 {
            1
        } else {
            self.failures.saturating_add(1)
        };
        self.not_before = Some(now + wait_after(stop, self.failures, rand::random()));
        self.noted_at = Some(now);
        self.trouble = Some(stop.trouble);
        self.error = Some(safe(&stop.why).into_owned());
    }

    /// Keeps it for the next process. A state that cannot be kept costs an attempt, no record.
    pub fn save(&self, dirs: &Dirs) {
        let json = serde_json::to_vec(self).expect("texts serialise");
        drop(files::replace(&path(dirs), &json));
    }
}

/// The wait after a failed attempt; `chance` is between 0 and 1 and spreads clients out.
fn wait_after(stop: &Stop, failures: u32, chance: f64) -> Duration {
    match (stop.trouble, stop.retry_after) {
        (Trouble::SignIn, _) => Duration::from_secs(SIGN_IN_WAIT),
        (_, Some(asked)) => asked
            .min(Duration::from_secs(LONGEST_ASKED))
            .mul_f64(1.0 + JITTER * chance),
        (_, None) => {
            let doubled = 1 << failures.saturating_sub(1).min(16);
            Duration::from_secs(LONGEST.min(doubled))
        }
    }
}

fn path(dirs: &Dirs) -> PathBuf {
    dirs.state.join("delivery.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(trouble: Trouble, retry_after: Option<u64>) -> Stop {
        Stop {
            trouble,
            why: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn waits_double_from_one_second_to_five_minutes() {
        let away = stop(Trouble::Away, None);
        let waits = [1, 2, 3, 9, 10, 4_000].map(|n| wait_after(&away, n, 0.5).as_secs());
        assert_eq!(waits, [1, 2, 4, 256, 300, 300]);
    }

    #[test]
    fn c024_what_the_service_asks_for_is_honoured_with_jitter() {
        let busy = stop(Trouble::Busy, Some(2));
        assert_eq!(wait_after(&busy, 1, 0.0), Duration::from_secs(2));
        assert_eq!(wait_after(&busy, 7, 1.0), Duration::from_millis(2_400));
    }

    #[test]
    fn a_clock_that_was_set_back_stops_nothing() {
        let now = DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
        let mut pace = Pace::default();
        let outcome = Outcome {
            stop: Some(stop(Trouble::Busy, Some(3_600))),
            ..Outcome::default()
        };
        pace.note(&outcome, now);
        assert!(pace.wait(now) >= Duration::from_secs(3_600));
        let back = |hours| pace.wait(now - chrono::TimeDelta::hours(hours));
        assert_eq!([1, 5, 24].map(back), [Duration::ZERO; 3]);
        // As an older client noted it.
        let mut known = Pace {
            noted_at: None,
            ..pace.clone()
        };
        assert!(!known.wait(now).is_zero());
        known.not_before = Some(now + chrono::TimeDelta::hours(2));
        assert_eq!(known.wait(now), Duration::ZERO);
    }

    #[test]
    fn c021_a_refused_sign_in_waits_a_minute() {
        let refused = stop(Trouble::SignIn, None);
        assert_eq!(wait_after(&refused, 1, 0.0), Duration::from_secs(60));
        assert_eq!(wait_after(&refused, 9, 1.0), Duration::from_secs(60));
    }
}
