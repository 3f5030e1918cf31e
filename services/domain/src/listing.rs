//! Lists of records: what a row shows, where a page ends.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::Visibility;
use crate::ids::{RecordId, RecordKind};
use crate::observation::Concept;
use crate::record::Row;

/// A record in a list: what there is, and what reading it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// What every list shows of it.
    pub row: Row,
    /// An observation's second line.
    pub subtitle: String,
    /// An observation's concepts.
    pub concepts: Vec<Concept>,
    /// Files that an observation changed, then those that it read; the first few.
    pub files: Vec<String>,
    /// The host's id of its session.
    pub session: Option<String>,
    /// Who may read it.
    pub visibility: Visibility,
    /// What reading an observation costs, in tokens.
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

/// What existed at a moment: the highest number of each kind. What is stored later has higher ones,
/// and no change of a record gives it another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[i64; 3]", into = "[i64; 3]")]
pub struct Horizon {
    /// The last observation.
    pub observation: i64,
    /// The last summary.
    pub summary: i64,
    /// The last prompt.
    pub prompt: i64,
}

impl From<[i64; 3]> for Horizon {
    /// In the order of the kinds' codes.
    fn from([observation, summary, prompt]: [i64; 3]) -> Self {
        Self {
            observation,
            summary,
            prompt,
        }
    }
}

impl From<Horizon> for [i64; 3] {
    fn from(horizon: Horizon) -> Self {
        [horizon.observation, horizon.summary, horizon.prompt]
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
