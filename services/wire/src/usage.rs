//! Usage: what members used, by day.

use cairn_domain::{Rejection, limits};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::query::Pairs;

/// The question of `GET /v1/usage`, as it is documented. It is read by [`UsageAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct UsageQuery {
    /// From this day of UTC on: a date or RFC 3339; thirty days before `to` if absent.
    from: Option<String>,
    /// Up to this day, which is included; today if absent.
    to: Option<String>,
    /// Items of a page: 1 to 200, 50 by default.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// A question for usage, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageAsk {
    /// The first day.
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    /// Items of a page.
    pub limit: u32,
    /// Where the page before ended, as it was answered.
    pub cursor: Option<String>,
}

impl UsageAsk {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn read(pairs: &Pairs, now: DateTime<Utc>) -> Result<Self, Rejection> {
        let period = pairs.period()?;
        // The first moment that is over the period.
        let until = period
            .until
            .map(|until| (until - TimeDelta::milliseconds(1)).date_naive());
        let to = until.unwrap_or_else(|| now.date_naive());
        let before = to.checked_sub_days(Days::new(limits::USAGE_DAYS));
        let from = period.from.map(|from| from.date_naive());
        Ok(Self {
            from: from.or(before).unwrap_or(to),
            to,
            limit: pairs.page()?,
            cursor: pairs.text("cursor").map(str::to_owned),
        })
    }
}

/// A page of usage, the newest day first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageAnswer {
    /// One for each member and day on which there was anything.
    pub items: Vec<UsageItem>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What one member used on one day.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageItem {
    /// The day, of UTC.
    pub day: NaiveDate,
    /// A handle, or `key:<key id>`.
    pub member: String,
    /// Requests that were let in; those of the last seconds may be missing.
    pub requests: i64,
    /// Events that were stored.
    pub events: i64,
    /// Bytes that those events left, as they are kept.
    pub bytes: i64,
    /// Tokens that observers spent.
    pub tokens: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(&str, &str)]) -> Result<UsageAsk, Rejection> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let now = "2026-10-10T08:45:00Z".parse().expect("a moment");
        UsageAsk::read(&Pairs(pairs.iter().map(owned).collect()), now)
    }

    #[test]
    fn a_month_up_to_today_is_meant_if_nothing_is_said() {
        let read = ask(&[]).expect("read");
        assert_eq!(
            (read.from.to_string(), read.to.to_string()),
            ("2026-09-10".to_owned(), "2026-10-10".to_owned())
        );
    }

    #[test]
    fn both_ends_are_days_that_are_included() {
        for (to, day) in [
            ("2026-10-03", "2026-10-03"),
            ("2026-10-03T23:59:59.999Z", "2026-10-03"),
            ("2026-10-04T00:00:00Z", "2026-10-04"),
        ] {
            let read = ask(&[("from", "2026-10-01"), ("to", to)]).expect("read");
            assert_eq!(
                (read.from.to_string(), read.to.to_string()),
                ("2026-10-01".to_owned(), day.to_owned())
            );
        }
        ask(&[("from", "yesterday")]).expect_err("no date");
    }
}
