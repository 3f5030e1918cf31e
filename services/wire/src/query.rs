//! The parameters of an address: lists and filters as all routes read them (contract 10.1, 16).

use cairn_domain::context::Zone;
use cairn_domain::{Rejection, limits};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

/// The parameters in the order in which they came; a name may come several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    /// The values of a name, in order; blank ones count as absent.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        let values = named.map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty())
    }

    /// The value of a name; of several the last.
    #[must_use]
    pub fn text<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).last()
    }

    /// The first of these names that has a value: some have several, as other tools know them.
    #[must_use]
    pub fn known_as<'a>(&self, names: &[&'a str]) -> &'a str {
        let given = names.iter().find(|name| self.text(name).is_some());
        given.or(names.first()).copied().unwrap_or_default()
    }

    /// The values of a name, each of which may hold several between commas.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let items = self.all(name).flat_map(|value| value.split(','));
        items.map(str::trim).filter(|item| !item.is_empty())
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and its bounds.
    pub fn number(&self, name: &str, low: u32, high: u32) -> Result<Option<u32>, Rejection> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let read = text.parse().ok();
        let within = read.filter(|number| (low..=high).contains(number));
        let allowed = || format!("a whole number from {low} to {high}");
        let refuse = || Rejection::invalid_field(format!("/{name}"), allowed());
        within.map(Some).ok_or_else(refuse)
    }

    /// Yes or no.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Rejection> {
        match self.text(name) {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(_) => Err(Rejection::invalid_field(
                format!("/{name}"),
                "true or false",
            )),
        }
    }

    /// Names of a closed set, repeats collapsed.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and `all` that is allowed.
    pub fn named<T: PartialEq + Copy, const N: usize>(
        &self,
        name: &str,
        all: [T; N],
        word: impl Fn(T) -> &'static str,
    ) -> Result<Vec<T>, Rejection> {
        let mut read = Vec::new();
        for text in self.list(name) {
            let known = all.into_iter().find(|one| word(*one) == text);
            let allowed = || format!("one of {}", all.map(&word).join(", "));
            let refuse = || Rejection::invalid_field(format!("/{name}"), allowed());
            let known = known.ok_or_else(refuse)?;
            if !read.contains(&known) {
                read.push(known);
            }
        }
        Ok(read)
    }

    /// How many items a page holds: 1 to 200, 50 if it is not said.
    ///
    /// # Errors
    /// `invalid_field`.
    pub fn page(&self) -> Result<u32, Rejection> {
        let limit = self.number("limit", 1, limits::MAX_LIST_ITEMS)?;
        Ok(limit.unwrap_or(limits::LIST_ITEMS))
    }

    /// The time between `from` and `to`: from when on, and before when. Each is a moment, or a
    /// date that means the whole day in the zone `tz`.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter.
    pub fn period(&self) -> Result<Period, Rejection> {
        self.period_of("from", "to")
    }

    /// [`Self::period`] by other names.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter.
    pub fn period_of(&self, from: &str, to: &str) -> Result<Period, Rejection> {
        let zone = Zone::named(self.text("tz").unwrap_or_default());
        let read = |name: &str| {
            let refuse = || {
                let allowed = "a date like 2026-10-10 or a moment in RFC 3339";
                Rejection::invalid_field(format!("/{name}"), allowed)
            };
            let text = self.text(name);
            text.map(|text| Moment::read(text).ok_or_else(refuse))
                .transpose()
        };
        let kept = crate::time::within;
        Ok(Period {
            from: read(from)?.map(|moment| kept(moment.begin(zone))),
            until: read(to)?.map(|moment| kept(moment.end(zone))),
        })
    }
}

/// A stretch of time, open where it is not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// Its first moment.
    pub from: Option<DateTime<Utc>>,
    /// The first moment that is over it.
    pub until: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy)]
enum Moment {
    Day(NaiveDate),
    Instant(DateTime<Utc>),
}

impl Moment {
    fn read(text: &str) -> Option<Self> {
        let day = text.parse().map(Self::Day).ok();
        let instant = || {
            // A plus that was not encoded arrives as a space.
            let read = DateTime::parse_from_rfc3339(&text.replace(' ', "+")).ok();
            read.map(|at| Self::Instant(at.to_utc()))
        };
        day.or_else(instant)
    }

    fn begin(self, zone: Zone) -> DateTime<Utc> {
        match self {
            Self::Day(day) => zone.day_begins(day),
            Self::Instant(at) => at,
        }
    }

    /// Times are printed to the millisecond, so all of the one that is named is meant.
    fn end(self, zone: Zone) -> DateTime<Utc> {
        match self {
            Self::Day(day) => match day.succ_opt() {
                Some(next) => zone.day_begins(next),
                None => DateTime::<Utc>::MAX_UTC,
            },
            Self::Instant(at) => at
                .checked_add_signed(TimeDelta::milliseconds(1))
                .unwrap_or(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_domain::observation::Concept;

    use super::*;

    fn pairs(given: &[(&str, &str)]) -> Pairs {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Pairs(given.iter().map(owned).collect())
    }

    #[test]
    fn a_name_may_come_several_times_and_hold_several() {
        let pairs = pairs(&[("a", "1, 2"), ("b", " "), ("a", "3")]);
        assert_eq!(pairs.list("a").collect::<Vec<_>>(), ["1", "2", "3"]);
        assert_eq!(pairs.all("a").collect::<Vec<_>>(), ["1, 2", "3"]);
        assert_eq!((pairs.text("a"), pairs.text("b")), (Some("3"), None));
    }

    #[test]
    fn what_is_not_allowed_is_refused_by_name() {
        let pairs = pairs(&[("concept", "gotcha,gotcha"), ("limit", "0"), ("all", "x")]);
        let concepts = |name| pairs.named(name, Concept::ALL, Concept::name);
        assert_eq!(concepts("concept"), Ok(vec![Concept::Gotcha]));
        for refused in [
            concepts("all").err(),
            pairs.page().err(),
            pairs.flag("all").err(),
        ] {
            assert!(
                matches!(refused, Some(Rejection::InvalidField { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_date_is_the_whole_day_of_its_reader() {
        for (text, tz, from, until) in [
            (
                "2026-10-10",
                "UTC",
                "2026-10-10T00:00:00Z",
                "2026-10-11T00:00:00Z",
            ),
            (
                "2026-10-10",
                "Asia/Shanghai",
                "2026-10-09T16:00:00Z",
                "2026-10-10T16:00:00Z",
            ),
            // That day the clocks go from midnight to one.
            (
                "2026-03-29",
                "Asia/Beirut",
                "2026-03-28T22:00:00Z",
                "2026-03-29T21:00:00Z",
            ),
            (
                "2026-10-10T08:45:00.12+02:00",
                "UTC",
                "2026-10-10T06:45:00.12Z",
                "2026-10-10T06:45:00.121Z",
            ),
            (
                "2026-10-10T08:45:00 02:00",
                "UTC",
                "2026-10-10T06:45:00Z",
                "2026-10-10T06:45:00.001Z",
            ),
        ] {
            let given = pairs(&[("from", text), ("to", text), ("tz", tz)]);
            let wanted = Period {
                from: Some(from.parse().expect("a moment")),
                until: Some(until.parse().expect("a moment")),
            };
            assert_eq!(given.period(), Ok(wanted), "{text} {tz}");
        }
    }

    #[test]
    fn other_times_are_refused_by_name() {
        for text in ["yesterday", "2026-13-01", "1791618300000", "2026-10-10T08"] {
            let refused = pairs(&[("to", text)]).period().expect_err(text);
            assert!(matches!(refused, Rejection::InvalidField { pointer, .. } if pointer == "/to"));
        }
        assert_eq!(pairs(&[]).period(), Ok(Period::default()));
        let wide = pairs(&[("from", "-10000-01-01"), ("to", "+200000-01-01")]);
        let wide = wide.period().expect("read");
        assert_eq!(wide.from, Some(DateTime::UNIX_EPOCH));
        assert_eq!(wide.until, Some(crate::time::LAST));
    }
}
