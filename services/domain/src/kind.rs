//! Kind: what a purge, an export and an import tell apart, and counts of it.

use std::ops::{AddAssign, Index, IndexMut};

use crate::Rejection;
use crate::ids::RecordKind;

/// A kind of what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One remembered fact.
    Observation,
    /// What one session came to.
    Summary,
    /// What the person asked.
    Prompt,
    /// The input and output of a tool call.
    ToolUse,
    /// An entry of a work list.
    WorkEntry,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Observation,
        Self::Summary,
        Self::Prompt,
        Self::ToolUse,
        Self::WorkEntry,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observation => "observation",
            Self::Summary => "summary",
            Self::Prompt => "prompt",
            Self::ToolUse => "tool_use",
            Self::WorkEntry => "work_entry",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The number by which the ledger names the kind. Stored: never change one.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Observation => 0,
            Self::Summary => 1,
            Self::Prompt => 2,
            Self::ToolUse => 3,
            Self::WorkEntry => 7,
        }
    }

    /// The kind that a stored number names.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The kind of record, if it is one that lists and searches show.
    #[must_use]
    pub const fn record(self) -> Option<RecordKind> {
        match self {
            Self::Observation => Some(RecordKind::Observation),
            Self::Summary => Some(RecordKind::Summary),
            Self::Prompt => Some(RecordKind::Prompt),
            Self::ToolUse | Self::WorkEntry => None,
        }
    }

    /// Reads names; none means every kind.
    ///
    /// # Errors
    /// `invalid_field` at `pointer` for a word that names none.
    pub fn parse_all<'a>(
        pointer: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Self>, Rejection> {
        let mut kinds = Vec::new();
        for name in names.into_iter().map(str::trim).filter(|n| !n.is_empty()) {
            let kind = Self::from_name(name).ok_or_else(|| {
                let all = Self::ALL.map(Self::name).join(", ");
                Rejection::invalid_field(pointer, format!("of {all}"))
            })?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            kinds.extend(Self::ALL);
        }
        Ok(kinds)
    }
}

/// How many there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Kind::ALL.len()]);

impl Counts {
    /// Of all kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

const fn place(kind: Kind) -> usize {
    match kind {
        Kind::Observation => 0,
        Kind::Summary => 1,
        Kind::Prompt => 2,
        Kind::ToolUse => 3,
        Kind::WorkEntry => 4,
    }
}

impl Index<Kind> for Counts {
    type Output = u64;

    fn index(&self, kind: Kind) -> &u64 {
        &self.0[place(kind)]
    }
}

impl IndexMut<Kind> for Counts {
    fn index_mut(&mut self, kind: Kind) -> &mut u64 {
        &mut self.0[place(kind)]
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        for kind in Kind::ALL {
            self[kind] += more[kind];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_by_name_and_number() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
            if let Some(record) = kind.record() {
                assert_eq!(record.code(), kind.code());
            }
        }
    }

    #[test]
    fn no_name_means_every_kind_and_a_strange_one_is_refused() {
        assert_eq!(Kind::parse_all("/kinds", []), Ok(Kind::ALL.to_vec()));
        let two = Kind::parse_all("/kinds", ["prompt", "tool_use", "prompt"]);
        assert_eq!(two, Ok(vec![Kind::Prompt, Kind::ToolUse]));
        assert!(Kind::parse_all("/kinds", ["skill"]).is_err());
    }

    #[test]
    fn counts_add_up() {
        let mut counts = Counts::default();
        counts[Kind::Prompt] = 2;
        counts += counts;
        assert_eq!((counts[Kind::Prompt], counts.total()), (4, 4));
    }
}
