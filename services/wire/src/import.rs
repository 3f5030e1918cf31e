//! Import: the lines of an export read back (contract 20.4). Each goes the way of any other event:
//! the same limits, the same removal of private passages.

use std::collections::BTreeMap;

use cairn_domain::event::{EventBody, EventDraft, Visibility};
use cairn_domain::hlc::Hlc;
use cairn_domain::kind::Kind;
use cairn_domain::project::ProjectKey;
use cairn_domain::{Rejection, bounds, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::Code;
use crate::events::{Item, ProjectName, Surroundings};
use crate::export::ExportLine;
use crate::reading::Reader;
use crate::session::SessionName;

/// How lines are to be imported.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ImportQuery {
    /// Id, key or name of a project that everything goes into; a key in full may be a new one. If
    /// absent, each line's own.
    pub project: Option<String>,
    /// `me`: everything becomes the caller's, as it does for callers who are no admins.
    pub author: Option<String>,
    /// Say what would become of each line, and store nothing.
    pub dry_run: Option<bool>,
}

/// What became of an import.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImportAnswer {
    /// By kind, sessions too.
    pub counts: BTreeMap<String, StatusCounts>,
    /// New ids of what was stored under another one than it had, at most 10,000.
    pub ids: Vec<NewId>,
    /// How many more there are. What is imported is found by its old id, too.
    #[serde(default)]
    pub ids_left_out: u64,
    /// Lines that were not stored, at most 100; the others are counted.
    pub refused: Vec<RefusedLine>,
    /// Fields that this version does not know, each named once. They were not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Whether nothing was stored because nothing was to be.
    #[serde(default)]
    pub dry_run: bool,
}

/// Lines of one kind, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StatusCounts {
    /// Stored now.
    pub stored: u64,
    /// Stored before.
    pub duplicate: u64,
    /// Stored before, and deleted since: they stay so.
    pub deleted: u64,
    /// Refused.
    pub refused: u64,
}

/// An id that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewId {
    /// As it was printed where it came from.
    pub old: String,
    /// As it is printed here.
    pub new: String,
}

/// A line that was not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedLine {
    /// Which, from 1.
    pub line: u64,
    /// Why.
    pub code: Code,
    /// What is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A line, read and within its limits.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its kind.
    pub kind: Kind,
    /// Its id where it comes from.
    pub id: Option<String>,
    /// Its author where it comes from.
    pub author: String,
    /// When it arrived there.
    pub arrived_at: DateTime<Utc>,
    /// The moment of a work entry.
    pub hlc: Option<Hlc>,
    /// The turn of a tool use.
    pub turn: Option<i32>,
    /// The number of a prompt in its session.
    pub number: Option<i32>,
    /// The event.
    pub event: EventDraft,
}

/// A session, read and within its limits.
#[derive(Clone, Debug)]
pub struct SessionLine {
    /// Its project.
    pub project: ProjectKey,
    /// The host and its id of it.
    pub session: cairn_domain::event::SessionKey,
    /// Its author where it comes from.
    pub author: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// Why it began.
    pub source: Option<String>,
    /// The model in use.
    pub model: Option<String>,
}

/// What an import says about its lines.
#[derive(Clone, Copy, Debug)]
pub struct Importing<'a> {
    /// The time.
    pub now: DateTime<Utc>,
    /// The project that everything goes into.
    pub project: Option<&'a ProjectName>,
    /// Makes the digest of kind and body by which a repeat is known.
    pub digest: fn(&str, &str) -> [u8; 16],
}

impl ExportLine {
    /// Reads a line.
    ///
    /// # Errors
    /// `invalid_field`, with a pointer to a value of the wrong kind; as malformed if it is no JSON.
    pub fn read(json: &str, reader: &mut Reader) -> Result<Self, crate::Problem> {
        reader.read(json, "").map_err(Into::into)
    }

    /// Checks a line that is no session and brings its texts within their limits.
    ///
    /// # Errors
    /// As for an event of its kind; `unsupported_kind` for any other.
    pub fn parse(self, around: Importing<'_>, reader: &mut Reader) -> Result<Line, Rejection> {
        let kind = Kind::from_name(&self.kind).ok_or_else(|| {
            Rejection::UnsupportedKind(bounds::head_bytes(&self.kind, 64).to_owned())
        })?;
        let missing = |field: &str| Rejection::invalid_field(format!("/{field}"), "required");
        let event_id = self.event_id.ok_or_else(|| missing("event_id"))?;
        let arrived_at = self.arrived_at.unwrap_or(around.now).min(around.now);
        let body = self.body(kind)?.to_string();
        let digest = (around.digest)(&self.kind, &body);
        let project = around.project.cloned().unwrap_or(ProjectName {
            key: self.project,
            name: self.project_name,
        });
        let session = self.host.zip(self.session);
        let work = self.work_entry.unwrap_or_default();
        let machine = work.machine;
        let item = Item {
            event_id,
            kind: self.kind,
            at: self.at.or(Some(arrived_at)),
            project: Some(project),
            session: session.map(|(host, id)| SessionName { host, id }),
            after: work.after,
            agent_id: self.agent_id,
            agent_type: self.agent_type,
            branch: self.branch,
            checkout: self.checkout,
            visibility: self.visibility,
            body: RawValue::from_string(body).ok(),
        };
        let surroundings = Surroundings {
            arrived_at,
            sent_at: arrived_at,
            project: None,
            machine: machine.as_deref(),
            visibility: Visibility::Team,
        };
        let mut event = item.parse(surroundings, digest, reader)?;
        if let EventBody::Observation(own) = &mut event.body {
            let more = |kept: u32, more: Option<u32>| kept.saturating_add(more.unwrap_or(0));
            own.files_read_more = more(own.files_read_more, self.files_read_more);
            own.files_modified_more = more(own.files_modified_more, self.files_modified_more);
        }
        let word = |pointer: &str, text: Option<String>| {
            bounds::optional_word(pointer, text, limits::WORD_BYTES)
        };
        Ok(Line {
            kind,
            id: word("/id", self.id)?,
            author: word("/author", self.imported_author.or(Some(self.author)))?
                .unwrap_or_default(),
            arrived_at,
            hlc: work.hlc.and_then(|text| text.parse().ok()),
            turn: self.tool_use.and_then(|own| own.turn),
            number: self.number.filter(|number| *number > 0),
            event,
        })
    }

    /// The body of the event that the line stands for.
    fn body(&self, kind: Kind) -> Result<Value, Rejection> {
        let missing = |field: &str| Rejection::invalid_field(format!("/{field}"), "required");
        Ok(match kind {
            Kind::Observation => json!(
                self.observation
                    .as_ref()
                    .ok_or_else(|| missing("observation"))?
            ),
            Kind::Summary => json!(self.summary.as_ref().ok_or_else(|| missing("summary"))?),
            Kind::Prompt => json!({ "text": self.text.as_ref().ok_or_else(|| missing("text"))? }),
            Kind::ToolUse => {
                let own = self.tool_use.as_ref().ok_or_else(|| missing("tool_use"))?;
                json!({
                    "tool": own.tool, "host_tool_use_id": own.host_tool_use_id,
                    "input": own.input, "output": own.output, "failed": own.failed,
                    "files": own.files, "input_bytes": own.input_bytes,
                    "output_bytes": own.output_bytes, "input_sha256": own.input_sha256,
                    "output_sha256": own.output_sha256,
                })
            }
            Kind::WorkEntry => {
                let own = self
                    .work_entry
                    .as_ref()
                    .ok_or_else(|| missing("work_entry"))?;
                json!({ "list": own.list, "fields": own.fields })
            }
        })
    }

    /// Checks the line of a session.
    ///
    /// # Errors
    /// `invalid_field` naming the field.
    pub fn parse_session(self, around: Importing<'_>) -> Result<SessionLine, Rejection> {
        let project = around.project.cloned().unwrap_or(ProjectName {
            key: self.project,
            name: self.project_name,
        });
        let word = |pointer: &str, text: Option<String>| {
            bounds::optional_word(pointer, text, limits::WORD_BYTES)
        };
        let session = SessionName {
            host: self.host.unwrap_or_default(),
            id: self.session.unwrap_or_default(),
        };
        let sane = |at: &DateTime<Utc>| at.timestamp() >= 0;
        Ok(SessionLine {
            project: ProjectKey::parse(project.key, project.name)
                .map_err(|refused| refused.under("/project"))?,
            session: session.parse()?,
            author: word("/author", Some(self.author))?.unwrap_or_default(),
            started_at: self.at.filter(sane).unwrap_or(around.now).min(around.now),
            ended_at: self.ended_at.filter(sane).map(|at| at.min(around.now)),
            end_reason: word("/end_reason", self.end_reason)?,
            source: word("/source", self.source)?,
            model: word("/model", self.model)?,
        })
    }
}
