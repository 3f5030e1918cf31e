//! Redaction: secrets that nobody put a mark around are replaced by `[redacted:<kind>]`, and the
//! names around them stay (contract 4.5). Client and server both pass everything through here.
//!
//! One walk over a text looks for the few hundred substrings with which secrets, or names of
//! secrets, begin; what stands there is judged by its surroundings. All steps take time in
//! proportion to the text, and a text in which nothing is found is not copied. Measured: 4 µs a KiB
//! of code or prose, 8 µs as JSON, ten times that where every line speaks of secrets; half a
//! millisecond once a process, for the automaton.

mod address;
mod assigned;
mod curl;
mod extra;
mod find;
mod folded;
mod header;
mod json;
mod names;
mod pem;
mod runs;
mod shapes;
mod tokens;
mod triggers;
mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::wrapper_tags;

pub use extra::extend;

/// The version of the patterns, stored with whatever has passed them. Raise it whenever a text
/// could lose more than before; rows of an older version are then due for `admin redact`.
pub const VERSION: i16 = 1;

/// What stands in the place of a text that cannot be checked.
pub const WITHHELD: &str = "[withheld]";

/// What every replacement begins with.
const MARK: &str = "[redacted:";

/// How often a text is looked at again after something was found: what is left may read
/// differently.
const ROUNDS: usize = 4;

/// The text as it may be kept: without wrapper tags and their content, without secrets.
#[must_use]
pub fn safe(text: &str) -> Cow<'_, str> {
    closed(text, |text| then(wrapper_tags::strip(text), redact))
}

/// [`safe`] for every string of a JSON text, keys included: names of members are looked at
/// together with their values. Strings that do not change stay as they were written. What is not
/// JSON is treated as plain text.
#[must_use]
pub fn safe_json(text: &str) -> Cow<'_, str> {
    closed(text, |text| match json::is_json(text) {
        true => settled(text, |text| json::redacted(text, true)),
        false => safe(text),
    })
}

/// The text with a mark in the place of each secret.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    closed(text, |text| {
        settled(text, |text| {
            let found = find::secrets(text);
            (!found.is_empty()).then(|| replaced(text, &found))
        })
    })
}

/// [`redact`] for every string of a JSON text.
#[must_use]
pub fn redact_json(text: &str) -> Cow<'_, str> {
    closed(text, |text| match json::is_json(text) {
        true => settled(text, |text| json::redacted(text, false)),
        false => redact(text),
    })
}

/// A text that its judge fails on is withheld: it may hold anything.
fn closed<'a>(text: &'a str, judge: impl FnOnce(&'a str) -> Cow<'a, str>) -> Cow<'a, str> {
    catch_unwind(AssertUnwindSafe(|| judge(text))).unwrap_or(Cow::Borrowed(WITHHELD))
}

/// Does a step to what the step before has left.
fn then<'a>(text: Cow<'a, str>, step: impl for<'b> Fn(&'b str) -> Cow<'b, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => step(text),
        Cow::Owned(text) => match step(&text) {
            Cow::Borrowed(same) if same.len() == text.len() => Cow::Owned(text),
            other => Cow::Owned(other.into_owned()),
        },
    }
}

/// Repeats a step until it changes nothing more.
fn settled(text: &str, step: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let Some(mut kept) = step(text) else {
        return Cow::Borrowed(text);
    };
    for _ in 1..ROUNDS {
        match step(&kept) {
            Some(next) if next != kept => kept = next,
            _ => break,
        }
    }
    Cow::Owned(kept)
}

/// A secret: where it stands and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Secret {
    span: Range<usize>,
    kind: &'static str,
    /// Of two readings of the same text the lower counts: the more particular one.
    rank: usize,
}

impl Secret {
    fn mark(&self) -> String {
        mark(self.kind)
    }
}

fn mark(kind: &str) -> String {
    format!("{MARK}{kind}]")
}

/// The text with marks in the places of secrets, which are in order and apart.
fn replaced(text: &str, found: &[Secret]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut copied = 0;
    for secret in found {
        kept.push_str(&text[copied..secret.span.start]);
        kept.push_str(&secret.mark());
        copied = secret.span.end;
    }
    kept.push_str(&text[copied..]);
    kept
}
