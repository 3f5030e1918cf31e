//! Records as they are read back, one or several.

use cairn_domain::ids::RecordId;
use cairn_domain::record::{Record as StoredRecord, RecordBody};
use cairn_domain::{Rejection, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ObservationFields, SummaryFields};

/// A record as it is read back. Fields of other kinds are absent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// `41`, `S7` or `P3`.
    pub id: String,
    /// `observation`, `summary` or `prompt`.
    pub kind: String,
    /// The client's id of the event that made it.
    pub event_id: Uuid,
    /// The project's key.
    pub project: String,
    /// The project's display name.
    pub project_name: String,
    /// The host's id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The host, e.g. `claude-code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// When it arrived.
    #[serde(serialize_with = "crate::time::millis")]
    pub arrived_at: DateTime<Utc>,
    /// Its place in the tenant's order of changes.
    pub position: i64,
    /// `team` or `private`.
    pub visibility: String,
    /// What produced it.
    pub origin: String,
    /// Its id where it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_id: Option<String>,
    /// Its author where it was imported from, if nobody here has that handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_author: Option<String>,
    /// The subagent's id, if one did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The subagent's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where the checkout is, the home folder as `~`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// The fields of an observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<ObservationFields>,
    /// How many files were read beyond those of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_read_more: Option<u32>,
    /// How many files were modified beyond those of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_modified_more: Option<u32>,
    /// What reading an observation costs, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_tokens: Option<u32>,
    /// The fields of a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryFields>,
    /// What was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of a prompt in its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
}

impl Record {
    /// The record for a caller who may not read tool uses.
    #[must_use]
    pub fn without_evidence(mut self) -> Self {
        if let Some(observation) = &mut self.observation {
            observation.tool_uses.clear();
        }
        self
    }
}

impl From<StoredRecord> for Record {
    fn from(record: StoredRecord) -> Self {
        let imported = record.imported.unwrap_or_default();
        let mut sent = Self {
            id: record.row.id.to_string(),
            kind: record.row.id.kind.word().to_owned(),
            event_id: record.event_id,
            project: record.row.project.key,
            project_name: record.row.project.name,
            session: record.session,
            host: record.host,
            author: record.row.author,
            at: record.row.at,
            arrived_at: record.arrived_at,
            position: record.position,
            visibility: record.visibility.name().to_owned(),
            origin: record.origin,
            imported_id: imported.id,
            imported_author: imported.author,
            agent_id: record.agent_id,
            agent_type: record.agent_type,
            branch: record.branch,
            checkout: record.checkout,
            observation: None,
            files_read_more: None,
            files_modified_more: None,
            read_tokens: None,
            summary: None,
            text: None,
            number: None,
        };
        match record.body {
            RecordBody::Observation(body) => {
                sent.read_tokens = Some(body.read_tokens);
                sent.files_read_more = Some(body.files_read_more).filter(|more| *more > 0);
                sent.files_modified_more = Some(body.files_modified_more).filter(|more| *more > 0);
                sent.observation = Some(ObservationFields {
                    kind: record.row.kind.map(|kind| kind.name().to_owned()),
                    title: record.row.title,
                    subtitle: body.subtitle,
                    narrative: body.narrative,
                    facts: body.facts,
                    concepts: body.concepts.iter().map(|c| c.name().to_owned()).collect(),
                    files_read: body.files_read,
                    files_modified: body.files_modified,
                    work_tokens: Some(body.work_tokens),
                    tool_uses: body.tool_uses.iter().map(ToString::to_string).collect(),
                });
            }
            RecordBody::Summary(body) => {
                sent.summary = Some(SummaryFields {
                    request: body.request,
                    investigated: body.investigated,
                    learned: body.learned,
                    completed: body.completed,
                    next_steps: body.next_steps,
                    notes: body.notes,
                });
            }
            RecordBody::Prompt { text, number } => {
                sent.text = Some(text);
                sent.number = Some(number);
            }
        }
        sent
    }
}

/// Asks for several records.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RecordBatch {
    /// At most 100 of `41`, `S7`, `P3`.
    pub ids: Vec<String>,
    /// Id, key or name of a project that confines the answer.
    #[serde(default)]
    pub project: Option<String>,
    /// `given` (default), `date_asc` or `date_desc`.
    #[serde(default)]
    pub order: Option<String>,
}

/// In which order records are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordOrder {
    /// As they were asked for.
    #[default]
    Given,
    /// The oldest first.
    DateAscending,
    /// The newest first.
    DateDescending,
}

impl RecordOrder {
    /// Reads the word for an order.
    ///
    /// # Errors
    /// `invalid_field` for any other word.
    pub fn parse(word: Option<&str>) -> Result<Self, Rejection> {
        match word.unwrap_or("given") {
            "given" => Ok(Self::Given),
            "date_asc" => Ok(Self::DateAscending),
            "date_desc" => Ok(Self::DateDescending),
            _ => Err(Rejection::invalid_field(
                "/order",
                "given, date_asc or date_desc",
            )),
        }
    }
}

impl RecordBatch {
    /// The ids, repeats collapsed.
    ///
    /// # Errors
    /// `invalid_field` for more than 100, or for what is no id.
    pub fn parse(&self) -> Result<Vec<RecordId>, Rejection> {
        if self.ids.is_empty() || self.ids.len() > limits::READ_IDS {
            let detail = format!("1 to {} ids", limits::READ_IDS);
            return Err(Rejection::invalid_field("/ids", detail));
        }
        let mut ids = Vec::with_capacity(self.ids.len());
        for (index, text) in self.ids.iter().enumerate() {
            let id = text.parse().map_err(|_| {
                Rejection::invalid_field(format!("/ids/{index}"), "an id like 41, S7 or P3")
            })?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

/// Several records.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecordBatchAnswer {
    /// Those the caller may read, in the order asked.
    pub items: Vec<Record>,
    /// The ids of the others.
    pub missing: Vec<String>,
}
