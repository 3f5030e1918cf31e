//! Identities: which tenant, principal, project and record is meant.
//!
//! Inside the database a tenant, a principal and a project are small integers; outside they are
//! UUIDs. Each type here carries both, so that neither side ever guesses the other.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::{Rejection, limits};

/// A tenant that has been proven: it came from a verified credential or from a row read by a
/// cross-tenant call of the store. It deliberately has no parser and no deserializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId {
    key: i32,
    uuid: Uuid,
}

impl TenantId {
    /// Names a tenant. Call it only where a credential or a cross-tenant row has just been
    /// verified: clippy refuses it elsewhere.
    #[must_use]
    pub const fn verified(key: i32, uuid: Uuid) -> Self {
        Self { key, uuid }
    }

    /// The tenant's number inside the database.
    #[must_use]
    pub const fn key(self) -> i32 {
        self.key
    }

    /// The tenant's name outside the database.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.uuid
    }
}

macro_rules! paired_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// The number inside the database, unique in its tenant.
            pub key: i32,
            /// The name outside the database.
            pub uuid: Uuid,
        }
    };
}

paired_id!(
    /// Who acts: a member or a service key of one tenant.
    PrincipalId
);
paired_id!(
    /// A project of one tenant.
    ProjectId
);

/// The three kinds of record that search, context and timeline show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// One remembered fact; its id prints as `41`.
    Observation,
    /// What one session came to; its id prints as `S7`.
    Summary,
    /// What the person asked; its id prints as `P3`.
    Prompt,
}

impl RecordKind {
    /// The word of the contract for this kind.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Observation => "observation",
            Self::Summary => "summary",
            Self::Prompt => "prompt",
        }
    }

    /// The number by which rows name this kind. Stored: never change one.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Observation => 0,
            Self::Summary => 1,
            Self::Prompt => 2,
        }
    }

    /// The kind that a stored number names.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Observation),
            1 => Some(Self::Summary),
            2 => Some(Self::Prompt),
            _ => None,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Observation => "",
            Self::Summary => "S",
            Self::Prompt => "P",
        }
    }
}

/// The id of an observation, a summary or a prompt within its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId {
    /// Which series the number belongs to.
    pub kind: RecordKind,
    /// The number: 1, 2, 3 … in commit order, never reused.
    pub number: i64,
}

impl RecordId {
    /// The observation of this number.
    #[must_use]
    pub const fn observation(number: i64) -> Self {
        Self {
            kind: RecordKind::Observation,
            number,
        }
    }

    /// The summary of this number.
    #[must_use]
    pub const fn summary(number: i64) -> Self {
        Self {
            kind: RecordKind::Summary,
            number,
        }
    }

    /// The prompt of this number.
    #[must_use]
    pub const fn prompt(number: i64) -> Self {
        Self {
            kind: RecordKind::Prompt,
            number,
        }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.prefix(), self.number)
    }
}

impl FromStr for RecordId {
    type Err = Rejection;

    /// Accepts `41`, `S7`, `P3`, each with or without a leading `#`, in either case.
    fn from_str(text: &str) -> Result<Self, Rejection> {
        let bare = text.trim();
        let bare = bare.strip_prefix('#').unwrap_or(bare);
        let (kind, digits) = match bare.as_bytes().first() {
            Some(b'S' | b's') => (RecordKind::Summary, &bare[1..]),
            Some(b'P' | b'p') => (RecordKind::Prompt, &bare[1..]),
            _ => (RecordKind::Observation, bare),
        };
        match parse_number(digits) {
            Some(number) => Ok(Self { kind, number }),
            None => Err(Rejection::invalid_input(
                "id",
                "a number, S and a number, or P and a number",
            )),
        }
    }
}

/// The id of a tool use within its tenant, printed as `T118`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolUseId(pub i64);

impl fmt::Display for ToolUseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

impl FromStr for ToolUseId {
    type Err = Rejection;

    /// Accepts `T118` and `118`, each with or without a leading `#`, in either case.
    fn from_str(text: &str) -> Result<Self, Rejection> {
        let bare = text.trim();
        let bare = bare.strip_prefix('#').unwrap_or(bare);
        let digits = bare.strip_prefix(['T', 't']).unwrap_or(bare);
        let refuse = || Rejection::invalid_input("id", "an id like T118");
        parse_number(digits).map(Self).ok_or_else(refuse)
    }
}

/// Whether a text is a member's handle: `[a-z0-9][a-z0-9._-]{0,38}`.
#[must_use]
pub fn is_handle(text: &str) -> bool {
    let is_first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_other = |b: u8| is_first(b) || matches!(b, b'.' | b'_' | b'-');
    text.len() <= limits::HANDLE_BYTES
        && text.bytes().next().is_some_and(is_first)
        && text.bytes().all(is_other)
}

/// A positive decimal number without sign or leading zero; `None` for anything else.
fn parse_number(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty()
        && !digits.starts_with('0')
        && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_ids_read_back_what_they_print() {
        for text in ["41", "S7", "P3"] {
            assert_eq!(text.parse::<RecordId>().expect("an id").to_string(), text);
            assert_eq!(
                format!("#{text}")
                    .parse::<RecordId>()
                    .expect("an id")
                    .to_string(),
                text
            );
        }
    }

    #[test]
    fn tool_use_ids_read_back_and_nothing_else_does() {
        for text in ["T118", "118", "#t118"] {
            assert_eq!(text.parse(), Ok(ToolUseId(118)), "{text}");
        }
        for text in ["", "T", "TT5", "T+5", "T0", "S7"] {
            assert!(text.parse::<ToolUseId>().is_err(), "{text}");
        }
    }

    #[test]
    fn handles_are_plain() {
        for text in ["lin", "a", "0x", "a.b_c-d"] {
            assert!(is_handle(text), "{text}");
        }
        for text in ["", ".a", "Lin", "a b", "ä", &"a".repeat(40)] {
            assert!(!is_handle(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in [
            "",
            "#",
            "0",
            "-1",
            "+1",
            "07",
            "S",
            "T1",
            "1.0",
            "99999999999999999999",
        ] {
            assert!(text.parse::<RecordId>().is_err(), "{text:?}");
        }
    }
}
