//! Time on the wire: RFC 3339, UTC, milliseconds.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer;

/// The end of the year 9999.
pub(crate) const LAST: DateTime<Utc> =
    DateTime::from_timestamp(253_402_300_799, 0).expect("a moment");

/// The moment within which it makes no difference: nothing happened before 1970, and no database
/// knows all the years that can be written.
#[must_use]
pub fn within(at: DateTime<Utc>) -> DateTime<Utc> {
    at.clamp(DateTime::UNIX_EPOCH, LAST)
}

/// A moment as it is written on the wire.
#[must_use]
pub fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Serialises a moment; for `serialize_with`.
///
/// # Errors
/// Only those of the serialiser.
pub fn millis<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*at))
}

/// [`millis`] for a moment that may be absent.
///
/// # Errors
/// Only those of the serialiser.
pub fn optional_millis<S: Serializer>(
    at: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => millis(at, serializer),
        None => serializer.serialize_none(),
    }
}
