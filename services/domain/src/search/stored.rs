//! What the service keeps between two steps of a search, as JSON of a versioned form. Sealing
//! and storing it is the store's work.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::Step;
use crate::Rejection;
use crate::ids::RecordId;
use crate::limits;
use crate::project::fold;

/// The version of the JSON. A state of any other is an unknown continuation.
const VERSION: u32 = 1;

/// What a search was started with, after normalisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The query, trimmed.
    pub query: String,
    /// The argument `project`, trimmed.
    pub project: Option<String>,
    /// The id of the project that the argument names; whoever looks it up fills it in.
    pub named: Option<Uuid>,
    /// Rows of the index, 1 to 20.
    pub limit: u32,
    /// Anchors of the timeline and records of the details, 1 to 5.
    pub max_details: u32,
    /// Neighbours before an anchor, 0 to 3.
    pub depth_before: u32,
    /// Neighbours after an anchor, 0 to 3.
    pub depth_after: u32,
}

impl Options {
    /// Whether a project, sent again, is the one the search was started with.
    pub(super) fn is_project(&self, sent: &str) -> bool {
        self.project.as_deref().map(fold) == Some(fold(sent))
    }
}

/// A row of the step before: only such a row may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shown {
    /// Its id.
    #[serde(serialize_with = "write_id", deserialize_with = "read_id")]
    pub id: RecordId,
    /// The project it was shown under; a row that has moved since is left out.
    pub project: Uuid,
}

/// The state of a search that waits for its next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    v: u32,
    /// Who may continue it, and over which projects.
    pub scope: String,
    /// When it can no longer be continued; the same for every step of a search.
    #[serde(with = "chrono::serde::ts_milliseconds")]
    pub expires_at: DateTime<Utc>,
    /// The step it waits for: timeline or details.
    #[serde(serialize_with = "write_step", deserialize_with = "read_step")]
    pub step: Step,
    /// What the search was started with.
    pub options: Options,
    /// What the step before showed.
    pub shown: Vec<Shown>,
    /// Names the search in logs, across its steps and replicas.
    pub trace: String,
}

impl Stored {
    /// The state after step 1, yet without its rows. It lives [`limits::SEARCH_TTL`] from `now`.
    #[must_use]
    pub fn begin(options: Options, scope: String, now: DateTime<Utc>, trace: String) -> Self {
        Self {
            v: VERSION,
            scope,
            expires_at: now + limits::SEARCH_TTL,
            step: Step::Timeline,
            options,
            shown: Vec::new(),
            trace,
        }
    }

    /// The state after step 2, yet without its rows. It expires when the search does.
    #[must_use]
    pub fn follow(&self) -> Self {
        Self {
            step: Step::Details,
            shown: Vec::new(),
            ..self.clone()
        }
    }

    /// The step whose rows it holds: the one before the step it waits for.
    #[must_use]
    pub const fn listed_step(&self) -> Step {
        match self.step {
            Step::Details => Step::Timeline,
            Step::Index | Step::Timeline => Step::Index,
        }
    }

    /// The state as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a state has only string keys")
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// `invalid_continuation` if it is of another version or form.
    pub fn from_json(json: &[u8]) -> Result<Self, Rejection> {
        match serde_json::from_slice::<Self>(json) {
            Ok(stored) if stored.v == VERSION => Ok(stored),
            _ => Err(Rejection::InvalidContinuation),
        }
    }
}

fn write_id<S: Serializer>(id: &RecordId, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(id)
}

fn read_id<'de, D: Deserializer<'de>>(input: D) -> Result<RecordId, D::Error> {
    let text = String::deserialize(input)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn write_step<S: Serializer>(step: &Step, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u8(step.number())
}

fn read_step<'de, D: Deserializer<'de>>(input: D) -> Result<Step, D::Error> {
    match u8::deserialize(input)? {
        2 => Ok(Step::Timeline),
        3 => Ok(Step::Details),
        other => Err(serde::de::Error::custom(format!(
            "no search waits for step {other}"
        ))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Options with the defaults of the contract.
    pub(in super::super) fn options(query: &str) -> Options {
        Options {
            query: query.to_owned(),
            project: None,
            named: None,
            limit: limits::INDEX_ROWS,
            max_details: limits::DEFAULT_DETAILS,
            depth_before: limits::DEFAULT_DEPTH,
            depth_after: limits::DEFAULT_DEPTH,
        }
    }

    pub(in super::super) fn stored() -> Stored {
        let now = DateTime::from_timestamp(1_791_590_400, 0).expect("a time");
        let mut stored = Stored::begin(
            options("pool leak"),
            "t/p/*".to_owned(),
            now,
            "tr".to_owned(),
        );
        stored.shown = ["41", "S7", "P3"]
            .map(|id| Shown {
                id: id.parse().expect("an id"),
                project: Uuid::from_u128(0xa1),
            })
            .to_vec();
        stored
    }

    #[test]
    fn the_json_of_a_state_never_changes_within_a_version() {
        let json = stored().to_json();
        insta::assert_snapshot!(String::from_utf8(json.clone()).expect("JSON"), @r#"{"v":1,"scope":"t/p/*","expires_at":1791591300000,"step":2,"options":{"query":"pool leak","project":null,"named":null,"limit":20,"max_details":3,"depth_before":2,"depth_after":2},"shown":[{"id":"41","project":"00000000-0000-0000-0000-0000000000a1"},{"id":"S7","project":"00000000-0000-0000-0000-0000000000a1"},{"id":"P3","project":"00000000-0000-0000-0000-0000000000a1"}],"trace":"tr"}"#);
        assert_eq!(Stored::from_json(&json), Ok(stored()));
    }

    #[test]
    fn another_version_or_form_is_an_unknown_continuation() {
        let json = String::from_utf8(stored().to_json()).expect("JSON");
        for other in [
            json.replace("\"v\":1", "\"v\":2"),
            json.replace("\"step\":2", "\"step\":1"),
            json.replace("\"S7\"", "\"X7\""),
            "{\"v\":1}".to_owned(),
            String::new(),
        ] {
            assert_eq!(
                Stored::from_json(other.as_bytes()),
                Err(Rejection::InvalidContinuation),
                "{other}"
            );
        }
    }

    #[test]
    fn the_next_state_waits_for_step_3_and_expires_with_the_search() {
        let next = stored().follow();
        assert_eq!(
            (next.step, next.expires_at),
            (Step::Details, stored().expires_at)
        );
        assert!(next.shown.is_empty());
    }
}
