//! Guards: how often one let somebody through, or held somebody off, because it could not decide
//! or because a limit was met. Kept as plain counters, for whoever measures the process.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use chrono::{DateTime, Utc};

/// The shortest time between two lines of the log about one guard, in milliseconds.
const LOG_PERIOD_MS: i64 = 10_000;

/// The counters of a process, from its start.
#[derive(Debug, Default)]
pub struct Guards {
    /// Requests that were let in uncounted, because Redis did not answer.
    pub rate_open: Guard,
    /// Requests and batches that came too fast.
    pub rate_refused: Guard,
    /// Attempts to sign in that came too often from one address.
    pub sign_in_refused: Guard,
    /// Programs and devices that came too often from one address.
    pub stranger_refused: Guard,
    /// Writes that would have passed a quota, or met one that cannot be read.
    pub quota_refused: Guard,
    /// Requests that were not counted for usage, because Postgres did not take them.
    pub usage_lost: Guard,
}

/// How often one guard acted.
#[derive(Debug, Default)]
pub struct Guard {
    count: AtomicU64,
    /// When the log was last told, in milliseconds since 1970.
    told_at: AtomicI64,
}

impl Guard {
    /// How often, since the start.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts once more; whether the log is to be told of it.
    #[must_use = "says whether to log"]
    pub fn note(&self, now: DateTime<Utc>) -> bool {
        self.note_some(1, now)
    }

    /// Counts several; whether the log is to be told of them.
    #[must_use = "says whether to log"]
    pub fn note_some(&self, count: u64, now: DateTime<Utc>) -> bool {
        self.count.fetch_add(count, Ordering::Relaxed);
        let now = now.timestamp_millis();
        let last = self.told_at.load(Ordering::Relaxed);
        let is_due = now.saturating_sub(last) >= LOG_PERIOD_MS || now < last;
        let exchange = |to| {
            let (order, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            self.told_at.compare_exchange(last, to, order, failure)
        };
        is_due && exchange(now).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn the_log_is_told_of_the_first_and_then_now_and_then() {
        let guard = Guard::default();
        let at = |seconds: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(1_000 + seconds);
        let told = [0, 1, 9, 10, 11, 30].map(|seconds| guard.note(at(seconds)));
        assert_eq!(told, [true, false, false, true, false, true]);
        assert_eq!(guard.count(), 6);
    }
}
