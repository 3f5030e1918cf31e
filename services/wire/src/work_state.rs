//! Work state: what is written to lists and what is read of them (contract 5, 16).

use cairn_domain::Rejection;
use cairn_domain::hlc::Hlc;
use cairn_domain::limits;
use cairn_domain::search::input::{self, flag, number, object};
use cairn_domain::work_state::{Action, Held, Item, List, Place, WorkEntryDraft, WorkState};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::session::SessionName;

/// An entry to append, by `POST /v1/work-state/entries`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WorkWrite {
    /// The list's name.
    pub list: String,
    /// Keys and values; `task` names a task of the list.
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
    /// `claim` or `release` the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// How long a claim lasts: 1 to 1,440 minutes, 60 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_minutes: Option<u32>,
    /// Id, key or name of a project; the current project if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When it was made, if that was not just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The highest moment its writer had seen, `<ms>.<counter>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When the request was sent, by the clock that gave `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<DateTime<Utc>>,
    /// A UUID that makes the write repeatable; header `Idempotency-Key` does too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    /// The session it is written in; header `Cairn-Session` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
}

impl WorkWrite {
    /// Reads the arguments of tool `work_state_write`.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let texts = ["list", "action", "project"];
        let mut arguments = object(arguments, &texts, &["fields", "leaseMinutes"])?;
        let lease = arguments.get("leaseMinutes");
        Ok(Self {
            lease_minutes: number("leaseMinutes", lease, 1, limits::MAX_LEASE_MINUTES)?,
            fields: input::fields("fields", arguments.get("fields"))?.unwrap_or_default(),
            list: take_text(&mut arguments, "list").unwrap_or_default(),
            action: take_text(&mut arguments, "action"),
            project: take_text(&mut arguments, "project"),
            ..Self::default()
        })
    }

    /// Checks list, fields and action.
    ///
    /// # Errors
    /// `invalid_field` naming the field and its limit.
    pub fn parse(&self) -> Result<WorkEntryDraft, Rejection> {
        let after = self.after.as_deref().map(|text| {
            text.parse::<Hlc>()
                .map_err(|e| Rejection::invalid_field("/after", e.to_string()))
        });
        let entry = WorkEntryDraft::parse(&self.list, self.fields.clone(), after.transpose()?)?;
        entry.with_action(Action::parse(self.action.as_deref(), self.lease_minutes)?)
    }
}

/// What became of a write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkWritten {
    /// The entry's event id.
    pub id: Uuid,
    /// Its moment, or the highest of its project if it was written before: `<ms>.<counter>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hlc: Option<String>,
    /// The list.
    pub list: String,
    /// The name of its project.
    pub project: String,
    /// Whether the event id was stored before with other content; it changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub event_id_reused: bool,
    /// The tasks still open in the list.
    pub open: Vec<WorkTask>,
    /// Who holds the task that was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Until when.
    #[serde(
        serialize_with = "crate::time::optional_millis",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub until: Option<DateTime<Utc>>,
    /// The same for an agent to read.
    pub text: String,
}

/// The question of `GET /v1/work-state`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct WorkQuery {
    /// Id, key or name of a project, `*` for all; the current project if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// This list alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Closed lists and tasks too.
    pub include_closed: bool,
    /// The lists in the form into which more entries can be merged.
    pub snapshot: bool,
}

impl WorkQuery {
    /// Reads the arguments of tool `work_state_read`.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let mut arguments = object(arguments, &["list", "project"], &["includeClosed"])?;
        let closed = flag("includeClosed", arguments.get("includeClosed"))?;
        Ok(Self {
            project: take_text(&mut arguments, "project"),
            list: take_text(&mut arguments, "list"),
            include_closed: closed.unwrap_or(false),
            snapshot: false,
        })
    }
}

fn take_text(arguments: &mut Map<String, Value>, name: &str) -> Option<String> {
    match arguments.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// What lists say.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkAnswer {
    /// The name of the project, `*` for all.
    pub project: String,
    /// The lists, newest entry first.
    pub lists: Vec<WorkList>,
    /// Lines of `text` that are not among `lists`: more than any answer has room for.
    #[serde(default)]
    pub more_lines: usize,
    /// The highest moment among the lists, `<ms>.<counter>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hlc: Option<String>,
    /// The same for an agent to read.
    pub text: String,
    /// The lists as they can be merged into, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub snapshot: Option<WorkState>,
}

/// A list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkList {
    /// Its name.
    pub name: String,
    /// The project it belongs to, where that is another one than was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether its status is done or dropped.
    pub closed: bool,
    /// Its state: keys and values by first appearance.
    #[schema(value_type = Object)]
    pub state: Map<String, Value>,
    /// Its tasks.
    pub tasks: Vec<WorkTask>,
}

/// A task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkTask {
    /// Its name.
    pub task: String,
    /// Keys and values by first appearance.
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
    /// Whether its status is done or dropped.
    pub closed: bool,
    /// Who wrote to it last.
    pub author: String,
    /// Its newest moment, `<ms>.<counter>`.
    pub hlc: String,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Until when.
    #[serde(
        serialize_with = "crate::time::optional_millis",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub until: Option<DateTime<Utc>>,
}

impl WorkTask {
    /// A task as it stands at an instant: a claim whose time is over is none.
    #[must_use]
    pub fn of(item: &Item, now: DateTime<Utc>) -> Self {
        let live = |claim: &&Held| now < claim.until && !item.is_closed();
        let claim = item.claim.as_ref().filter(live);
        Self {
            task: item.task.clone().unwrap_or_default(),
            fields: fields(item),
            closed: item.is_closed(),
            author: item.author.clone(),
            hlc: item.last.hlc.to_string(),
            holder: claim.map(|claim| claim.holder.clone()),
            until: claim.map(|claim| claim.until),
        }
    }
}

impl WorkList {
    /// A list as it stands at an instant.
    #[must_use]
    pub fn of(list: &List, now: DateTime<Utc>) -> Self {
        Self {
            name: list.name.clone(),
            project: list.project.clone(),
            closed: list.state.as_ref().is_some_and(Item::is_closed),
            state: list.state.as_ref().map(fields).unwrap_or_default(),
            tasks: list
                .tasks
                .iter()
                .map(|task| WorkTask::of(task, now))
                .collect(),
        }
    }
}

fn fields(item: &Item) -> Map<String, Value> {
    let shown = item.visible();
    shown
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// The question of `GET /v1/work-state/history`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct HistoryQuery {
    /// Id, key or name of a project, `*` for all; the current project if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// This list alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Entries of a page: 1 to 200, 50 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl HistoryQuery {
    /// The place after which the page begins.
    ///
    /// # Errors
    /// `invalid_cursor`.
    pub fn after(&self) -> Result<Option<Place>, Rejection> {
        let Some(cursor) = self.cursor.as_deref() else {
            return Ok(None);
        };
        let place = || {
            let (hlc, event) = cursor.rsplit_once('.')?;
            Some(Place {
                hlc: hlc.parse().ok()?,
                event: event.parse().ok()?,
            })
        };
        place().map(Some).ok_or(Rejection::InvalidCursor)
    }
}

/// A page of the history, in the order of the fold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HistoryAnswer {
    /// The entries.
    pub items: Vec<HistoryItem>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An entry as it was appended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryItem {
    /// The client's id of the event.
    pub event_id: Uuid,
    /// The key of its project.
    pub project: String,
    /// Its list.
    pub list: String,
    /// Its fields.
    #[schema(value_type = Object)]
    pub fields: Value,
    /// `claim` or `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Its moment, `<ms>.<counter>`.
    pub hlc: String,
    /// The highest moment its writer had seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When it was made, by its machine's clock.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// When it arrived.
    #[serde(serialize_with = "crate::time::millis")]
    pub arrived_at: DateTime<Utc>,
    /// Who wrote it.
    pub author: String,
    /// The host's id of the session it was written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl HistoryItem {
    /// The cursor of the page after this entry.
    #[must_use]
    pub fn cursor(&self) -> String {
        format!("{}.{}", self.hlc, self.event_id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_needs_a_task_and_a_lease_of_at_most_a_day() {
        let write = |value| {
            serde_json::from_value::<WorkWrite>(value)
                .expect("reads")
                .parse()
        };
        let claim = json!({"list": "l", "fields": {"task": "t"}, "action": "claim"});
        let claim = write(claim).expect("whole").action;
        assert_eq!(claim, Some(Action::Claim { minutes: 60 }));
        for (bad, pointer) in [
            (
                json!({"list": "l", "fields": {"n": 1}, "action": "claim"}),
                "/fields/task",
            ),
            (
                json!({"list": "l", "fields": {"task": "t"}, "action": "take"}),
                "/action",
            ),
            (
                json!({"list": "l", "fields": {"task": "t"}, "action": "claim", "lease_minutes": 1_441}),
                "/lease_minutes",
            ),
            (
                json!({"list": "l", "fields": {"n": 1}, "after": "x"}),
                "/after",
            ),
        ] {
            match write(bad).expect_err("refused") {
                Rejection::InvalidField { pointer: at, .. } => assert_eq!(at, pointer),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_cursor_is_read_back_and_a_forged_one_refused() {
        let query = |cursor: &str| HistoryQuery {
            cursor: Some(cursor.to_owned()),
            ..HistoryQuery::default()
        };
        let cursor = "1791618300000.3.0198f3a0-1c00-7000-8000-00000000c0de";
        let place = query(cursor).after().expect("read").expect("a place");
        assert_eq!((place.hlc.ms, place.hlc.counter), (1_791_618_300_000, 3));
        for forged in ["", "1.2", "x.y.z", "1.2.0198f3a0"] {
            assert_eq!(
                query(forged).after(),
                Err(Rejection::InvalidCursor),
                "{forged}"
            );
        }
    }
}
