//! Pages of a search's results: the order they stand in, and how far a caller has come (contract
//! 10.2). Scores change from page to page, so a page by relevance names what was shown before it
//! rather than a place; behind the ranked head follow the others, newest first.

use serde::{Deserialize, Serialize};

use crate::ids::{RecordId, RecordKind};
use crate::limits;
use crate::listing::{Horizon, ListPlace};

/// The order of results. Those of one moment stand by kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The best first.
    Relevance,
    /// The newest first.
    DateDescending,
    /// The oldest first.
    DateAscending,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Relevance, Self::DateDescending, Self::DateAscending];

    /// The word of the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::DateDescending => "date_desc",
            Self::DateAscending => "date_asc",
        }
    }
}

/// How much of a query its results hold.
///
/// The contract's third word, `relaxed`, stays reserved: it names what the query finds without its
/// stop words, and those never count here unless a query holds nothing else, so that trying again
/// without them could add nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Matched {
    /// Every word.
    #[serde(rename = "all")]
    All,
    /// Some word: no record holds them all.
    #[serde(rename = "any")]
    Any,
}

impl Matched {
    /// The word of the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
        }
    }
}

/// How many results there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub enum Total {
    /// So many, at most [`limits::COUNTED`].
    Exactly(u32),
    /// More than are counted.
    More,
}

impl From<u32> for Total {
    fn from(count: u32) -> Self {
        match count <= limits::COUNTED {
            true => Self::Exactly(count),
            false => Self::More,
        }
    }
}

impl From<Total> for u32 {
    fn from(total: Total) -> Self {
        match total {
            Total::Exactly(count) => count,
            Total::More => limits::COUNTED + 1,
        }
    }
}

/// How far a caller has come, as the cursor of the next page keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What existed at the first page. By relevance nothing newer joins it.
    #[serde(rename = "h")]
    pub horizon: Horizon,
    /// What of the query was found at the first page; `None` before that.
    #[serde(rename = "m")]
    pub found: Option<(Matched, Total)>,
    /// Whether the newest records alone are looked at, because all would take too long.
    #[serde(rename = "r")]
    pub recent: bool,
    /// What was shown by rank, at most [`limits::RANKED`].
    #[serde(rename = "s", with = "compact")]
    pub shown: Vec<RecordId>,
    /// The last that was shown in the order of time.
    #[serde(rename = "p")]
    pub after: Option<ListPlace>,
}

impl Progress {
    /// Before the first page.
    #[must_use]
    pub const fn begin(horizon: Horizon) -> Self {
        Self {
            horizon,
            found: None,
            recent: false,
            shown: Vec::new(),
            after: None,
        }
    }

    /// How many more may be shown by rank.
    #[must_use]
    pub const fn ranks_left(&self) -> usize {
        match self.after {
            None => limits::RANKED.saturating_sub(self.shown.len()),
            Some(_) => 0,
        }
    }

    /// Goes on behind a result, which was shown by its rank or at its place in time.
    pub fn pass(&mut self, place: ListPlace, is_ranked: bool) {
        match is_ranked {
            true => self.shown.push(place.id),
            false => self.after = Some(place),
        }
    }
}

/// Ids as the gaps between them: a cursor with all of a ranked head is to fit an address.
mod compact {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, RecordId, RecordKind, Serialize};

    /// Room for every kind's code.
    const KINDS: i64 = 4;

    pub(super) fn serialize<S: Serializer>(
        ids: &[RecordId],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let code = |id: &RecordId| id.number * KINDS + i64::from(id.kind.code());
        let mut codes: Vec<i64> = ids.iter().map(code).collect();
        codes.sort_unstable();
        let mut last = 0;
        for code in &mut codes {
            let gap = *code - last;
            last = std::mem::replace(code, gap);
        }
        codes.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<RecordId>, D::Error> {
        let gaps = Vec::<i64>::deserialize(deserializer)?;
        let mut code = 0_i64;
        let id = |gap: i64| {
            code = code.checked_add(gap)?;
            let kind = i16::try_from(code.rem_euclid(KINDS)).ok()?;
            let kind = RecordKind::from_code(kind)?;
            let number = code.div_euclid(KINDS);
            Some(RecordId { kind, number })
        };
        let ids: Option<Vec<RecordId>> = gaps.into_iter().map(id).collect();
        ids.ok_or_else(|| serde::de::Error::custom("no ids"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn horizon() -> Horizon {
        Horizon {
            observation: 1_000_000_000,
            summary: 9,
            prompt: 0,
        }
    }

    proptest! {
        #[test]
        fn progress_reads_back(
            numbers in prop::collection::btree_set((0_i16..3, 1_i64..i64::MAX / 8), 0..300),
            counted in 0_u32..2_000,
            recent: bool,
        ) {
            let shown = numbers.iter().map(|(kind, number)| RecordId {
                kind: RecordKind::from_code(*kind).expect("a kind"),
                number: *number,
            });
            let mut progress = Progress {
                found: Some((Matched::Any, counted.into())),
                recent,
                shown: shown.collect(),
                ..Progress::begin(horizon())
            };
            let json = serde_json::to_string(&progress).expect("serialises");
            let read: Progress = serde_json::from_str(&json).expect("reads");
            progress.shown.sort_by_key(|id| (id.number, id.kind));
            prop_assert_eq!(read, progress);
        }
    }

    #[test]
    fn a_whole_head_fits_a_cursor() {
        // As far apart as the ids of a billion records are.
        let shown = (1..=limits::RANKED as i64).map(|n| RecordId::observation(n * 3_333_333));
        let progress = Progress {
            shown: shown.collect(),
            ..Progress::begin(horizon())
        };
        let json = serde_json::to_string(&progress).expect("serialises");
        assert!(
            json.len() * 4 / 3 + 50 < limits::PAGE_CURSOR_BYTES,
            "{}",
            json.len()
        );
        assert_eq!(progress.ranks_left(), 0);
    }

    #[test]
    fn what_names_no_ids_is_no_progress() {
        for odd in [
            "[3]",
            "[9223372036854775807,9223372036854775807]",
            "[\"x\"]",
        ] {
            let json = format!(r#"{{"h":[1,1,1],"m":null,"r":false,"s":{odd},"p":null}}"#);
            serde_json::from_str::<Progress>(&json).expect_err(odd);
        }
    }

    #[test]
    fn a_total_is_counted_up_to_a_thousand() {
        assert_eq!(Total::from(1_000), Total::Exactly(1_000));
        assert_eq!(Total::from(1_001), Total::More);
        assert_eq!(u32::from(Total::from(7)), 7);
    }
}
