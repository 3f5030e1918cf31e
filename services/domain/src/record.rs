//! Record: what is read back — a row as lists show it, and the whole of it.

use chrono::{DateTime, Utc};

use crate::event::Visibility;
use crate::ids::{RecordId, RecordKind, ToolUseId};
use crate::observation::{Concept, ObservationType};
use crate::project::Project;

/// A record as a row of an index or a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its id.
    pub id: RecordId,
    /// Its title, a summary's request, or the head of a prompt. May be empty.
    pub title: String,
    /// The type of an observation.
    pub kind: Option<ObservationType>,
    /// Its project.
    pub project: Project,
    /// Its author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    pub at: DateTime<Utc>,
}

/// A record whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What a list shows of it.
    pub row: Row,
    /// The client's id of the event that made it.
    pub event_id: uuid::Uuid,
    /// When it arrived.
    pub arrived_at: DateTime<Utc>,
    /// Its place in the tenant's order of changes.
    pub position: i64,
    /// Who may read it.
    pub visibility: Visibility,
    /// The host's id of its session.
    pub session: Option<String>,
    /// The host, e.g. `claude-code`.
    pub host: Option<String>,
    /// The subagent's id, if one did it.
    pub agent_id: Option<String>,
    /// The subagent's type.
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Where the checkout is, the home folder as `~`.
    pub checkout: Option<String>,
    /// What produced it.
    pub origin: String,
    /// What an import kept of the place it came from.
    pub imported: Option<Imported>,
    /// Its own fields.
    pub body: RecordBody,
}

/// Where an imported record came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Its id there, as printed.
    pub id: Option<String>,
    /// Its author there, if nobody here has that handle.
    pub author: Option<String>,
}

/// A record's own fields.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordBody {
    /// Of an observation.
    Observation(ObservationBody),
    /// Of a summary.
    Summary(crate::summary::SummaryDraft),
    /// Of a prompt.
    Prompt {
        /// What was asked.
        text: String,
        /// Its number in its session, from 1.
        number: i32,
    },
}

/// The fields of an observation beside its title and type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservationBody {
    /// A second line.
    pub subtitle: String,
    /// The story.
    pub narrative: String,
    /// Single facts.
    pub facts: Vec<String>,
    /// Its concepts.
    pub concepts: Vec<Concept>,
    /// Files that were read.
    pub files_read: Vec<String>,
    /// How many more were read than the list holds.
    pub files_read_more: u32,
    /// Files that were modified.
    pub files_modified: Vec<String>,
    /// How many more were modified than the list holds.
    pub files_modified_more: u32,
    /// What producing it cost, in tokens.
    pub work_tokens: u32,
    /// What reading it costs, in tokens.
    pub read_tokens: u32,
    /// The tool uses it rests on.
    pub tool_uses: Vec<ToolUseId>,
}

impl Record {
    /// The record's kind.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        self.row.id.kind
    }
}
