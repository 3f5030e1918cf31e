//! The reader's zone: it comes from the client, never from the machine that renders.

use chrono::{DateTime, NaiveDate, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{OffsetName, Tz};

/// Abbreviations of North American time with their hours from UTC. Other places use the same
/// letters for other times, so both must agree.
const NORTH_AMERICA: [(&str, i32); 14] = [
    ("AST", -4),
    ("ADT", -3),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("AKST", -9),
    ("AKDT", -8),
    ("HST", -10),
    ("HDT", -9),
];

/// Names of UTC itself.
const UTC_NAMES: [Tz; 8] = [
    Tz::UTC,
    Tz::Etc__UTC,
    Tz::UCT,
    Tz::Etc__UCT,
    Tz::Zulu,
    Tz::Etc__Zulu,
    Tz::Universal,
    Tz::Etc__Universal,
];

/// A time zone by its IANA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone(Tz);

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(Tz::UTC);

    /// The zone of this IANA name; UTC if there is none.
    #[must_use]
    pub fn named(name: &str) -> Self {
        name.trim().parse().map_or(Self::UTC, Self)
    }

    /// The IANA name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// An instant by the clock of this zone.
    #[must_use]
    pub fn clock(self, at: DateTime<Utc>) -> DateTime<Tz> {
        at.with_timezone(&self.0)
    }

    /// The first instant of a day by the clock of this zone. Where the clocks skip midnight, that
    /// is when they go on.
    #[must_use]
    pub fn day_begins(self, day: NaiveDate) -> DateTime<Utc> {
        // No zone skips more than a day.
        let quarters = (0..=4 * 24).filter_map(|quarter| {
            let clock = day.and_time(NaiveTime::MIN) + TimeDelta::minutes(15 * quarter);
            self.0.from_local_datetime(&clock).earliest()
        });
        let begins = quarters.map(|at| at.to_utc()).next();
        begins.unwrap_or_else(|| day.and_time(NaiveTime::MIN).and_utc())
    }

    /// An instant as the title of a context tells it: `2026-10-12 3:45pm GMT+8`.
    #[must_use]
    pub fn now(self, at: DateTime<Utc>) -> String {
        format!(
            "{} {}",
            self.clock(at).format("%Y-%m-%d %-I:%M%P"),
            self.word(at)
        )
    }

    /// The word for the zone at an instant: `UTC`, `EST`, `GMT`, `GMT+8`, `GMT-3:30`.
    #[must_use]
    pub fn word(self, at: DateTime<Utc>) -> String {
        if UTC_NAMES.contains(&self.0) {
            return "UTC".to_owned();
        }
        let clock = self.clock(at);
        let seconds = clock.offset().fix().local_minus_utc();
        let known = clock.offset().abbreviation().filter(|word| {
            NORTH_AMERICA
                .iter()
                .any(|(name, hours)| name == word && hours * 3_600 == seconds)
        });
        known.map_or_else(|| gmt(seconds), str::to_owned)
    }
}

fn gmt(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, 0) => "GMT".to_owned(),
        (hours, 0) => format!("GMT{sign}{hours}"),
        (hours, minutes) => format!("GMT{sign}{hours}:{minutes:02}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const JANUARY: &str = "2026-01-15T12:00:00Z";
    const JULY: &str = "2026-07-15T12:00:00Z";

    #[rstest]
    #[case("UTC", "UTC", "UTC")]
    #[case("Etc/UTC", "UTC", "UTC")]
    #[case("Mars/Olympus", "UTC", "UTC")]
    #[case("", "UTC", "UTC")]
    #[case("Asia/Shanghai", "GMT+8", "GMT+8")]
    #[case("Asia/Manila", "GMT+8", "GMT+8")]
    #[case("Asia/Kolkata", "GMT+5:30", "GMT+5:30")]
    #[case("Europe/London", "GMT", "GMT+1")]
    #[case("Europe/Berlin", "GMT+1", "GMT+2")]
    #[case("America/St_Johns", "GMT-3:30", "GMT-2:30")]
    #[case("America/New_York", "EST", "EDT")]
    #[case("America/Chicago", "CST", "CDT")]
    #[case("America/Denver", "MST", "MDT")]
    #[case("America/Phoenix", "MST", "MST")]
    #[case("America/Los_Angeles", "PST", "PDT")]
    #[case("America/Anchorage", "AKST", "AKDT")]
    #[case("Pacific/Honolulu", "HST", "HST")]
    #[case("America/Halifax", "AST", "ADT")]
    #[case("America/Havana", "GMT-5", "GMT-4")]
    #[case("America/Sao_Paulo", "GMT-3", "GMT-3")]
    #[case("Australia/Sydney", "GMT+11", "GMT+10")]
    fn each_zone_has_its_word(#[case] name: &str, #[case] january: &str, #[case] july: &str) {
        let zone = Zone::named(name);
        let word = |at: &str| zone.word(at.parse().expect("a time"));
        assert_eq!(
            (word(JANUARY).as_str(), word(JULY).as_str()),
            (january, july)
        );
    }
}
