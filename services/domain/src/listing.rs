//! Lists of observations: which of them are wanted, what a row shows, where a page ends.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::event::Visibility;
use crate::ids::{RecordId, RecordKind};
use crate::observation::{Concept, ObservationType};
use crate::record::Row;

/// Which observations a list wants. What is left out restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPick {
    /// Of one of these types.
    pub types: Vec<ObservationType>,
    /// With one of these concepts.
    pub concepts: Vec<Concept>,
    /// About a file whose path ends in these segments, or lies below this folder.
    pub file: Option<String>,
    /// By one author.
    pub author: Option<ByAuthor>,
    /// Of a session, by the host's id of it, alone or behind the host's name and `/`.
    pub session: Option<String>,
    /// Not before this moment.
    pub from: Option<DateTime<Utc>>,
    /// Before this moment.
    pub until: Option<DateTime<Utc>>,
}

/// Whose records are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByAuthor {
    /// The caller's own.
    Me,
    /// Those of this handle, or `key:<key id>`.
    Named(String),
}

/// An observation in a list: what there is, and what reading it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedObservation {
    /// What every list shows of it.
    pub row: Row,
    /// Its second line.
    pub subtitle: String,
    /// Its concepts.
    pub concepts: Vec<Concept>,
    /// Files that it changed, then those that it read.
    pub files: Vec<String>,
    /// The host's id of its session.
    pub session: Option<String>,
    /// Who may read it.
    pub visibility: Visibility,
    /// What reading it costs, in tokens.
    pub read_tokens: u32,
}

/// An observation about a file that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct FileObservation {
    /// What every list shows of it.
    pub row: Row,
    /// The host's id of its session.
    pub session: Option<String>,
    /// Files that it changed.
    pub files_modified: Vec<String>,
    /// How many files it is about, changed or read.
    pub files: u32,
}

/// A file's path as records keep it: its segments between slashes, none before the first, NFC.
#[must_use]
pub fn file_path(path: &str) -> String {
    let path = path.trim().replace('\\', "/");
    let path = path.trim_start_matches("./").trim_matches('/');
    path.nfc().collect()
}

/// The spellings in which records may hold a path: not every client composes letters with their
/// marks. None for a path that names nothing.
pub fn file_spellings(path: &str) -> impl Iterator<Item = String> {
    let composed = file_path(path);
    let decomposed: String = composed.nfd().collect();
    let other = (decomposed != composed).then_some(decomposed);
    let spellings = std::iter::once(composed).chain(other);
    spellings.filter(|spelling| !spelling.is_empty())
}

/// The place of a record in the order of (`at`, kind, number), which no two records share: the
/// page after it begins behind it, whatever was stored meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(i64, i16, i64)", try_from = "(i64, i16, i64)")]
pub struct ListPlace {
    /// When the record happened, to the microsecond.
    pub at: DateTime<Utc>,
    /// Its id.
    pub id: RecordId,
}

impl From<&Row> for ListPlace {
    fn from(row: &Row) -> Self {
        Self {
            at: row.at,
            id: row.id,
        }
    }
}

impl From<ListPlace> for (i64, i16, i64) {
    fn from(place: ListPlace) -> Self {
        let ListPlace { at, id } = place;
        (at.timestamp_micros(), id.kind.code(), id.number)
    }
}

impl TryFrom<(i64, i16, i64)> for ListPlace {
    type Error = &'static str;

    fn try_from((micros, kind, number): (i64, i16, i64)) -> Result<Self, Self::Error> {
        let at = DateTime::from_timestamp_micros(micros).ok_or("no moment")?;
        let kind = RecordKind::from_code(kind).ok_or("no kind")?;
        let id = RecordId { kind, number };
        Ok(Self { at, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_to_the_microsecond() {
        let place = ListPlace {
            at: "2026-10-10T08:45:00.120457Z".parse().expect("a moment"),
            id: RecordId::summary(7),
        };
        let json = serde_json::to_string(&place).expect("serialises");
        assert_eq!(json, "[1791621900120457,1,7]");
        assert_eq!(
            serde_json::from_str::<ListPlace>(&json).expect("reads"),
            place
        );
        for odd in ["[1,9,7]", "[9223372036854775807,0,1]", "[1,0]", "7"] {
            serde_json::from_str::<ListPlace>(odd).expect_err(odd);
        }
    }
}
