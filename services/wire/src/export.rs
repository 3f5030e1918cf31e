//! Export: JSON lines that hold what a caller may read of a tenant, and that an import reads back
//! (contract 20.4).
//!
//! In this order: the head; sessions, by when they were first heard of; tool uses, by their
//! numbers; observations, summaries, prompts and work entries, by their positions; the end, with
//! counts and a digest of every byte before it.

use std::collections::BTreeMap;

use cairn_domain::kind::{Counts, Kind};
use cairn_domain::record::Imported;
use cairn_domain::tool_use::ToolUse;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::observations::{ObservationFields, Record, SummaryFields};
use crate::time::{millis, optional_millis};

/// The form of the lines. Readers know one by its number.
pub const FORM: u32 = 1;

/// What an export is to hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ExportQuery {
    /// Id, key or name of a project; `*` for all. If absent, the current project, or all.
    pub project: Option<String>,
    /// A handle, `key:<key id>`, or `me`; everybody's if absent.
    pub author: Option<String>,
    /// Of `observation`, `summary`, `prompt`, `tool_use` and `work_entry`, with commas between
    /// them; all if absent.
    pub kinds: Option<String>,
}

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExportHead {
    /// The form of the lines: 1.
    pub cairn_export: u32,
    /// The tenant's name, or what else the lines come from.
    pub tenant: String,
    /// A UUID for where the lines come from: ids in them are of its numbering.
    pub source: Uuid,
    /// When the export began.
    #[serde(serialize_with = "millis")]
    pub exported_at: DateTime<Utc>,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportEnd {
    /// The form of the lines: 1.
    pub cairn_export_end: u32,
    /// Lines of each kind, sessions too.
    pub counts: BTreeMap<String, u64>,
    /// SHA-256 of all bytes before this line, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// A line between the first and the last. Fields of other kinds are absent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ExportLine {
    /// `session`, `observation`, `summary`, `prompt`, `tool_use` or `work_entry`.
    pub kind: String,
    /// As printed: `41`, `S7`, `P3`, `T118`; a session's UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The client's id of the event that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    /// Its place in the tenant's order of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// The project's key.
    pub project: String,
    /// The project's display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// The host's id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The host, e.g. `claude-code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened; when a session began.
    #[serde(serialize_with = "optional_millis")]
    pub at: Option<DateTime<Utc>>,
    /// When it arrived.
    #[serde(
        serialize_with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub arrived_at: Option<DateTime<Utc>>,
    /// `team` or `private`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// What produced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The subagent's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The subagent's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where the checkout is, the home folder as `~`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// Its id where it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_id: Option<String>,
    /// Its author where it was imported from, if nobody here has that handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_author: Option<String>,
    /// The fields of an observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<ObservationFields>,
    /// How many files were read beyond those of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_read_more: Option<u32>,
    /// How many files were modified beyond those of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_modified_more: Option<u32>,
    /// What reading an observation costs, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_tokens: Option<u32>,
    /// The fields of a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryFields>,
    /// What was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of a prompt in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
    /// The tool use's own fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use: Option<ToolUseLine>,
    /// A work entry's own fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_entry: Option<WorkEntryLine>,
    /// When a session ended.
    #[serde(
        serialize_with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
    /// Why a session ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// Why a session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The model of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A tool use's own fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ToolUseLine {
    /// The tool's name as the host gives it.
    pub tool: String,
    /// The host's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_tool_use_id: Option<String>,
    /// What went in: JSON text.
    pub input: String,
    /// What came out: JSON text.
    pub output: String,
    /// Whether the call failed; absent if the host did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
    /// Files the call touched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Bytes of the whole input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_bytes: Option<i64>,
    /// Bytes of the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<i64>,
    /// SHA-256 of the whole input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
    /// SHA-256 of the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_sha256: Option<String>,
    /// The observation that was made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<String>,
    /// Its turn in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<i32>,
}

/// A work entry's own fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WorkEntryLine {
    /// Its list.
    pub list: String,
    /// Its fields, as they were written.
    #[schema(value_type = Object)]
    pub fields: Option<Box<RawValue>>,
    /// What it did beside writing: told, never done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Its moment, `<ms>.<counter>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hlc: Option<String>,
    /// The highest moment its writer had seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The machine it was made on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

impl ExportLine {
    /// The line of a record.
    #[must_use]
    pub fn of_record(record: Record) -> Self {
        Self {
            kind: record.kind,
            id: Some(record.id),
            event_id: Some(record.event_id),
            position: Some(record.position),
            project: record.project,
            project_name: Some(record.project_name),
            session: record.session,
            host: record.host,
            author: record.author,
            at: Some(record.at),
            arrived_at: Some(record.arrived_at),
            visibility: Some(record.visibility),
            origin: Some(record.origin),
            agent_id: record.agent_id,
            agent_type: record.agent_type,
            branch: record.branch,
            checkout: record.checkout,
            imported_id: record.imported_id,
            imported_author: record.imported_author,
            observation: record.observation,
            files_read_more: record.files_read_more,
            files_modified_more: record.files_modified_more,
            read_tokens: record.read_tokens,
            summary: record.summary,
            text: record.text,
            number: record.number,
            ..Self::default()
        }
    }

    /// The line of a tool use.
    #[must_use]
    pub fn of_tool_use(tool_use: ToolUse, turn: i32, imported: Option<Imported>) -> Self {
        let hex = cairn_domain::hex::hex;
        let call = tool_use.call;
        let imported = imported.unwrap_or_default();
        Self {
            kind: Kind::ToolUse.name().to_owned(),
            id: Some(tool_use.id.to_string()),
            event_id: Some(tool_use.event_id),
            project: tool_use.project.key,
            project_name: Some(tool_use.project.name),
            session: Some(tool_use.session),
            host: Some(tool_use.host),
            author: tool_use.author,
            at: Some(tool_use.at),
            arrived_at: Some(tool_use.arrived_at),
            visibility: Some(tool_use.visibility.name().to_owned()),
            agent_id: tool_use.agent_id,
            agent_type: tool_use.agent_type,
            branch: tool_use.branch,
            checkout: tool_use.checkout,
            imported_id: imported.id,
            imported_author: imported.author,
            tool_use: Some(ToolUseLine {
                tool: call.tool,
                host_tool_use_id: call.host_tool_use_id,
                input_bytes: Some(call.input.bytes),
                output_bytes: Some(call.output.bytes),
                input_sha256: Some(hex(&call.input.sha256)),
                output_sha256: Some(hex(&call.output.sha256)),
                input: call.input.text,
                output: call.output.text,
                failed: call.failed,
                files: call.files,
                observation: tool_use.observation.map(|id| id.to_string()),
                turn: Some(turn),
            }),
            ..Self::default()
        }
    }
}

/// Counts by kind, as they are written: kinds of which there are none are left out.
#[must_use]
pub fn counts_by_kind(counts: &Counts) -> BTreeMap<String, u64> {
    let some = Kind::ALL.into_iter().filter(|kind| counts[*kind] > 0);
    some.map(|kind| (kind.name().to_owned(), counts[kind]))
        .collect()
}
