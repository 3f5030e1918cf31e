//! Hybrid logical clock: the order of work entries, whatever the writers' clocks say
//! (contract 5.3).

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

/// Clock differences up to this many milliseconds are taken for the network's.
const TOLERATED_OFFSET_MS: i64 = 5_000;

/// A moment in the order of work entries, printed as `<ms>.<counter>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hlc {
    /// Milliseconds since 1970 by the service's clock.
    pub ms: i64,
    /// Tells entries of one millisecond apart.
    pub counter: u32,
}

/// What the service knows about an entry when it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When the entry was made, by its machine's clock.
    pub at: DateTime<Utc>,
    /// When the request was sent, by the same clock.
    pub sent_at: DateTime<Utc>,
    /// When it arrived, by the service's clock.
    pub arrived_at: DateTime<Utc>,
    /// The highest moment the writer had seen.
    pub after: Option<Hlc>,
    /// The previous entry of the same machine.
    pub previous: Option<Hlc>,
}

impl Hlc {
    /// The moment of an entry: its own time put on the service's clock, but always after what its
    /// writer had seen and after its machine's previous entry.
    #[must_use]
    pub fn of(entry: Arrival) -> Self {
        let arrival = entry.arrived_at.timestamp_millis();
        let offset = arrival - entry.sent_at.timestamp_millis();
        let offset = if offset.abs() <= TOLERATED_OFFSET_MS {
            0
        } else {
            offset
        };
        // A clock of another age must not count from before the first.
        let ms = entry.at.timestamp_millis().saturating_add(offset);
        let own = Self {
            ms: ms.min(arrival).max(0),
            counter: 0,
        };
        let seen = entry.after.map(|after| {
            if after.ms > arrival {
                Self::at(arrival)
            } else {
                after
            }
        });
        match seen.max(entry.previous) {
            Some(floor) if own <= floor => floor.next(),
            _ => own,
        }
    }

    /// The moment right after this one.
    fn next(self) -> Self {
        match self.counter.checked_add(1) {
            Some(counter) => Self { counter, ..self },
            None => Self::at(self.ms + 1),
        }
    }

    const fn at(ms: i64) -> Self {
        Self { ms, counter: 0 }
    }
}

impl fmt::Display for Hlc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ms, self.counter)
    }
}

impl FromStr for Hlc {
    type Err = MalformedHlc;

    fn from_str(text: &str) -> Result<Self, MalformedHlc> {
        let (ms, counter) = text.split_once('.').ok_or(MalformedHlc)?;
        let ms = ms.parse().map_err(|_| MalformedHlc)?;
        let counter = counter.parse().map_err(|_| MalformedHlc)?;
        if ms < 0 {
            Err(MalformedHlc)
        } else {
            Ok(Self { ms, counter })
        }
    }
}

/// A text that is no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be <milliseconds>.<counter>")]
pub struct MalformedHlc;

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn time(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).expect("a time in range")
    }

    fn arrival(at: i64, sent_at: i64, arrived_at: i64) -> Arrival {
        Arrival {
            at: time(at),
            sent_at: time(sent_at),
            arrived_at: time(arrived_at),
            after: None,
            previous: None,
        }
    }

    #[test]
    fn an_entry_of_ten_replayed_at_twelve_sorts_before_elevens() {
        let late = Hlc::of(arrival(10 * HOUR, 12 * HOUR, 12 * HOUR));
        let done = Hlc::of(arrival(11 * HOUR, 11 * HOUR, 11 * HOUR));
        assert!(late < done);
    }

    #[test]
    fn a_clock_that_is_hours_wrong_changes_nothing() {
        // This machine's clock runs five hours ahead.
        let late = Hlc::of(arrival(15 * HOUR, 17 * HOUR, 12 * HOUR));
        assert_eq!(
            late,
            Hlc {
                ms: 10 * HOUR,
                counter: 0
            }
        );
    }

    #[test]
    fn what_was_written_after_reading_sorts_after_it() {
        let seen = Hlc {
            ms: 11 * HOUR,
            counter: 4,
        };
        let entry = Arrival {
            after: Some(seen),
            ..arrival(10 * HOUR, 12 * HOUR, 12 * HOUR)
        };
        assert_eq!(
            Hlc::of(entry),
            Hlc {
                ms: 11 * HOUR,
                counter: 5
            }
        );
    }

    #[test]
    fn nobody_can_claim_to_have_seen_the_future() {
        let entry = Arrival {
            after: Some(Hlc::at(99 * HOUR)),
            ..arrival(12 * HOUR, 12 * HOUR, 12 * HOUR)
        };
        assert_eq!(
            Hlc::of(entry),
            Hlc {
                ms: 12 * HOUR,
                counter: 1
            }
        );
    }

    #[test]
    fn two_entries_of_one_machine_keep_their_order() {
        let first = Hlc::of(arrival(HOUR, HOUR, HOUR));
        let entry = Arrival {
            previous: Some(first),
            ..arrival(HOUR, HOUR, HOUR)
        };
        assert_eq!(
            Hlc::of(entry),
            Hlc {
                ms: HOUR,
                counter: 1
            }
        );
    }

    #[test]
    fn clocks_of_another_age_and_full_counters_keep_the_order() {
        let odd = Hlc::of(arrival(0, 253_402_300_799_000, 12 * HOUR));
        assert_eq!(odd, Hlc::at(0));
        let full = Hlc {
            ms: 11 * HOUR,
            counter: u32::MAX,
        };
        let entry = Arrival {
            after: Some(full),
            ..arrival(10 * HOUR, 12 * HOUR, 12 * HOUR)
        };
        assert!(Hlc::of(entry) > full);
    }

    #[test]
    fn reads_back_what_it_prints() {
        let moment = Hlc {
            ms: 1_791_618_300_000,
            counter: 3,
        };
        assert_eq!(moment.to_string().parse(), Ok(moment));
        assert!("1791618300000".parse::<Hlc>().is_err() && "-1.0".parse::<Hlc>().is_err());
    }
}
