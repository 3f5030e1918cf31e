//! Templates: texts with the hour left out. What is kept and what is fresh are filled at the same
//! instant with the same bytes, and a text can be measured before the instant is known
//! (contract 6.8, "clock").

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::context::Zone;
use crate::duration::ago;

/// The widest `<now>`: `2026-10-12 12:45pm GMT+12:45` takes less.
const NOW_UNITS: usize = 32;
/// The widest duration: `about 99999 days`.
const AGO_UNITS: usize = 16;

/// A piece of a template. No text of a record can pass for one of the pieces that change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Text(String),
    /// The instant by the reader's clock.
    Now,
    /// How long ago a moment was, in milliseconds since 1970.
    Ago(i64),
    /// A text that stands only until a moment.
    Until(i64, String),
}

/// A text whose hour is filled in when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template(Vec<Part>);

/// How much a text takes, in the two measures that hosts use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    ascii: usize,
    others: usize,
}

impl Size {
    /// The size of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let others = crate::bounds::units(text) - ascii;
        Self { ascii, others }
    }

    /// The size of so many ASCII characters.
    #[must_use]
    pub const fn ascii(count: usize) -> Self {
        Self {
            ascii: count,
            others: 0,
        }
    }

    /// UTF-16 code units.
    #[must_use]
    pub const fn units(self) -> usize {
        self.ascii + self.others
    }

    /// Estimated tokens (contract, "Units").
    #[must_use]
    pub const fn tokens(self) -> usize {
        self.ascii.div_ceil(4) + self.others
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ascii: self.ascii + other.ascii,
            others: self.others + other.others,
        }
    }
}

/// How much a text may take: in both measures at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Room {
    /// UTF-16 code units.
    pub units: usize,
    /// Estimated tokens; `usize::MAX` for a host that counts units alone.
    pub tokens: usize,
}

impl Room {
    /// No limit at all.
    pub const ENDLESS: Self = Self::units(usize::MAX);

    /// Room of so many units.
    #[must_use]
    pub const fn units(units: usize) -> Self {
        Self {
            units,
            tokens: usize::MAX,
        }
    }

    /// Whether a text of this size has room.
    #[must_use]
    pub const fn holds(self, size: Size) -> bool {
        size.units() <= self.units && size.tokens() <= self.tokens
    }

    /// What is left beside a text.
    #[must_use]
    pub const fn less(self, size: Size) -> Self {
        Self {
            units: self.units.saturating_sub(size.units()),
            tokens: match self.tokens {
                usize::MAX => usize::MAX,
                tokens => tokens.saturating_sub(size.tokens()),
            },
        }
    }

    /// So many hundredths of it.
    #[must_use]
    pub fn share(self, hundredths: usize) -> Self {
        let part = |whole: usize| match whole {
            usize::MAX => usize::MAX,
            whole => whole / 100 * hundredths + whole % 100 * hundredths / 100,
        };
        Self {
            units: part(self.units),
            tokens: part(self.tokens),
        }
    }
}

impl Template {
    /// A text without an hour.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Part::Text(text.into())])
    }

    /// Appends a text.
    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.0.push(Part::Text(text.to_owned())),
        }
    }

    /// Appends the instant by the reader's clock.
    pub fn push_now(&mut self) {
        self.0.push(Part::Now);
    }

    /// Appends how long ago a moment was: `5 minutes`.
    pub fn push_ago(&mut self, ms: i64) {
        self.0.push(Part::Ago(ms));
    }

    /// Appends a text that stands only before a moment.
    pub fn push_until(&mut self, ms: i64, text: String) {
        self.0.push(Part::Until(ms, text));
    }

    /// Appends another template.
    pub fn append(&mut self, other: Self) {
        for part in other.0 {
            match part {
                Part::Text(text) => self.push(&text),
                part => self.0.push(part),
            }
        }
    }

    /// Its size with what changes at its widest.
    #[must_use]
    pub fn size(&self) -> Size {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) | Part::Until(_, text) => Size::of(text),
            Part::Now => Size::ascii(NOW_UNITS),
            Part::Ago(_) => Size::ascii(AGO_UNITS),
        });
        parts.fold(Size::default(), |sum, part| sum + part)
    }

    /// About how many bytes it keeps in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) | Part::Until(_, text) => text.len(),
            Part::Now | Part::Ago(_) => 0,
        });
        parts.sum::<usize>() + self.0.len() * size_of::<Part>()
    }

    /// The text at an instant, by a reader's clock.
    #[must_use]
    pub fn fill(&self, now: DateTime<Utc>, zone: Zone) -> String {
        let mut text = String::with_capacity(self.bytes());
        self.fill_into(&mut text, now, zone);
        text
    }

    /// Appends the text at an instant to another.
    pub fn fill_into(&self, text: &mut String, now: DateTime<Utc>, zone: Zone) {
        let ms = now.timestamp_millis();
        for part in &self.0 {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Now => text.push_str(&zone.now(now)),
                Part::Ago(at) => text.push_str(&ago(ms - at)),
                Part::Until(until, part) if ms < *until => text.push_str(part),
                Part::Until(..) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn what_changes_is_filled_in_and_never_wider_than_measured() {
        let mut template = Template::text("a ");
        template.push_now();
        template.push(", ");
        template.push_ago(at("2026-10-10T00:00:00Z").timestamp_millis());
        template.push_until(
            at("2026-10-12T08:00:00Z").timestamp_millis(),
            ", held by 林".to_owned(),
        );
        let zone = Zone::named("Pacific/Chatham");
        let before = template.fill(at("2026-10-12T07:45:00Z"), zone);
        assert_eq!(
            before,
            "a 2026-10-12 9:30pm GMT+13:45, about 2 days, held by 林"
        );
        let after = template.fill(at("2026-10-12T08:00:00Z"), zone);
        assert!(!after.contains("held"));
        assert!(Size::of(&before).units() <= template.size().units());
        assert!(Size::of(&before).tokens() <= template.size().tokens());
    }

    #[test]
    fn both_measures_are_held() {
        let size = Size::of("abcd修");
        assert_eq!((size.units(), size.tokens()), (5, 2));
        let room = Room {
            units: 5,
            tokens: 1,
        };
        assert!(!room.holds(size) && Room::units(5).holds(size) && !Room::units(4).holds(size));
        assert_eq!(Room::units(10_000).share(30).units, 3_000);
        assert_eq!(Room::ENDLESS.share(30), Room::ENDLESS);
        assert_eq!(Room::units(7).less(size).units, 2);
    }
}
