//! Templates: texts with the hour left out. What is kept and what is fresh are filled at the same
//! instant with the same bytes, and a text can be measured before the instant is known
//! (contract 6.8, "clock").

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::context::Zone;
use crate::duration::ago;
use crate::room::Size;

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
}
