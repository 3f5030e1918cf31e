//! Changes: what is asked about the positions of a tenant, and what stands at them (contract 13).

use cairn_domain::{Rejection, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::observations::Record;
use crate::query::Pairs;
use crate::work_state::HistoryItem;

/// The question of `GET /v1/changes`, as it is documented. It is read by [`ChangesAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct ChangesQuery {
    /// The position after which the answer begins: `next` of the answer before; 0 if absent.
    after: Option<i64>,
    /// `epoch` of the answer before: of another one, positions mean nothing.
    epoch: Option<String>,
    /// Items of an answer, at most: 1 to 500, 100 by default.
    limit: Option<u32>,
    /// Id, key or name of a project, `*` for all; the current project if absent.
    project: Option<String>,
}

/// The question of `GET /v1/stream`, as it is documented. It is read by [`StreamAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct StreamQuery {
    /// The position after which it begins; 0 if absent.
    after: Option<i64>,
    /// In place of header `Last-Event-ID`, which counts before it: the id of the last event that
    /// came. Both count before `after`.
    #[param(rename = "lastEventId")]
    last_event_id: Option<i64>,
    /// The epoch that the position is of, as header `Cairn-Epoch` of the stream before said.
    epoch: Option<String>,
    /// Id, key or name of a project, `*` for all; the current project if absent.
    project: Option<String>,
}

/// A place among positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// The position after which it goes on.
    pub after: i64,
    /// The epoch that the position is of, if it is known.
    pub epoch: Option<String>,
}

/// A question for changes that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesAsk {
    /// Where it begins.
    pub since: Since,
    /// Items, at most.
    pub limit: u32,
    /// The project that is named.
    pub project: Option<String>,
}

/// A question for a stream that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamAsk {
    /// Where it begins.
    pub since: Since,
    /// The project that is named.
    pub project: Option<String>,
}

impl ChangesAsk {
    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        let limit = pairs.number("limit", 1, limits::MAX_CHANGES)?;
        Ok(Self {
            since: Since::read(pairs, position("after", pairs.text("after"))?),
            limit: limit.unwrap_or(limits::CHANGES),
            project: pairs.text("project").map(str::to_owned),
        })
    }
}

impl StreamAsk {
    /// Reads the parameters of an address, and header `Last-Event-ID` as it was sent.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter.
    pub fn read(pairs: &Pairs, last_event_id: Option<&str>) -> Result<Self, Rejection> {
        let last = last_event_id.map(str::trim).filter(|id| !id.is_empty());
        let last = position("Last-Event-ID", last)?;
        let named = position("lastEventId", pairs.text("lastEventId"))?;
        let after = position("after", pairs.text("after"))?;
        Ok(Self {
            since: Since::read(pairs, last.or(named).or(after)),
            project: pairs.text("project").map(str::to_owned),
        })
    }
}

impl Since {
    fn read(pairs: &Pairs, after: Option<i64>) -> Self {
        Self {
            after: after.unwrap_or_default(),
            epoch: pairs.text("epoch").map(str::to_owned),
        }
    }

    /// Whether a tenant that is so far in this epoch knows the place.
    ///
    /// # Errors
    /// `position_unknown`.
    pub fn check(&self, latest: i64, epoch: &str) -> Result<(), Rejection> {
        let is_other = self.epoch.as_deref().is_some_and(|own| own != epoch);
        if is_other || self.after > latest {
            return Err(Rejection::PositionUnknown);
        }
        Ok(())
    }
}

fn position(name: &str, text: Option<&str>) -> Result<Option<i64>, Rejection> {
    let Some(text) = text else { return Ok(None) };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let read = text.parse().ok().filter(|_| digits);
    let refuse = || Rejection::invalid_field(format!("/{name}"), "a position: 0 or more");
    read.map(Some).ok_or_else(refuse)
}

/// What has changed after a position.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangesAnswer {
    /// What the caller may read of it, in ascending position.
    pub items: Vec<ChangeItem>,
    /// The last position that was looked at: the answer after this one begins there.
    pub next: i64,
    /// The last position that there is.
    pub latest: i64,
    /// Changes only when a backup is restored: then positions of before mean nothing.
    pub epoch: String,
}

/// A change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeItem {
    /// Its place in the tenant's order of changes.
    pub position: i64,
    /// `upsert` or `delete`.
    pub op: ChangeOp,
    /// `observation`, `summary`, `prompt`, `work_entry` or `project`.
    pub kind: String,
    /// `41`, `S7` or `P3`; of a work entry its event id, of a project its UUID.
    pub id: String,
    /// The client's id of the event that made it; a project has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    /// The key of its project.
    pub project: String,
    /// The author's handle, or `key:<key id>`; a project has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it happened; of a deletion, when that was.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// What it is now; a deletion has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<ChangedRecord>,
}

/// What became of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeOp {
    /// It is there, new or changed.
    Upsert,
    /// It is gone.
    Delete,
}

/// What a thing is now.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ChangedRecord {
    /// An observation, a summary or a prompt.
    Record(Box<Record>),
    /// An entry of a work list.
    WorkEntry(HistoryItem),
    /// A project.
    Project(ChangedProject),
}

impl ChangedRecord {
    /// The same for a caller who may not read tool uses.
    #[must_use]
    pub fn without_evidence(self) -> Self {
        match self {
            Self::Record(record) => Self::Record(Box::new(record.without_evidence())),
            other => other,
        }
    }
}

/// A project as it stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedProject {
    /// Its id.
    pub id: Uuid,
    /// Its key, as first written.
    pub key: String,
    /// Its display name.
    pub name: String,
    /// The key of the project that it was merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
}

/// The last event of a stream: why it ends.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StreamEnd {
    /// `credential_revoked`, `lagged`, `shutdown`, or the code of the problem that a new stream
    /// would meet.
    pub code: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(given: &[(&str, &str)]) -> Pairs {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Pairs(given.iter().map(own).collect())
    }

    #[test]
    fn the_header_counts_before_the_parameters() {
        let all = pairs(&[("after", "1"), ("lastEventId", "2"), ("project", "*")]);
        let after = |header| StreamAsk::read(&all, header).expect("read").since.after;
        assert_eq!((after(Some("3")), after(Some(" ")), after(None)), (3, 2, 2));
        let bare = StreamAsk::read(&pairs(&[]), None).expect("read");
        assert_eq!((bare.since, bare.project), (Since::default(), None));
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in ["-1", "+1", "x", "1.5", "99999999999999999999"] {
            for name in ["after", "lastEventId"] {
                let refused = StreamAsk::read(&pairs(&[(name, text)]), None);
                assert_eq!(refused.expect_err(text).code(), "invalid_field");
            }
            let refused = StreamAsk::read(&pairs(&[]), Some(text));
            assert_eq!(refused.expect_err(text).code(), "invalid_field");
        }
        for limit in ["0", "501"] {
            let refused = ChangesAsk::read(&pairs(&[("limit", limit)]));
            assert_eq!(refused.expect_err(limit).code(), "invalid_field");
        }
    }

    #[test]
    fn a_place_is_known_up_to_the_latest_position_of_its_epoch() {
        let place = |after, epoch: Option<&str>| Since {
            after,
            epoch: epoch.map(str::to_owned),
        };
        for known in [place(0, None), place(7, Some("a")), place(7, None)] {
            assert_eq!(known.check(7, "a"), Ok(()));
        }
        for unknown in [place(8, None), place(0, Some("b")), place(7, Some("b"))] {
            assert_eq!(unknown.check(7, "a"), Err(Rejection::PositionUnknown));
        }
    }
}
