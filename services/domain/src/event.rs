//! Event: what a client sends, parsed and within its limits, about to be stored.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::observation::ObservationDraft;
use crate::project::ProjectKey;
use crate::summary::SummaryDraft;
use crate::tool_use::ToolUseDraft;
use crate::work_state::WorkEntryDraft;

/// Who may read a record (contract 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Everyone in the tenant who may read the project.
    #[default]
    Team,
    /// The author alone.
    Private,
}

impl Visibility {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Private => "private",
        }
    }

    /// The visibility of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Team, Self::Private]
            .into_iter()
            .find(|v| v.name() == name)
    }
}

/// What produced a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The observer without a model.
    Extractive,
    /// An observer with the Messages API.
    Anthropic,
    /// An observer with a chat-completions API.
    Openai,
    /// A person or agent through `save_memory`.
    Manual,
    /// A client, through the API.
    Api,
    /// An import.
    Import,
}

impl Origin {
    /// The word on the wire and in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extractive => "extractive",
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Manual => "manual",
            Self::Api => "api",
            Self::Import => "import",
        }
    }
}

/// The session an event belongs to, as the host names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The host, e.g. `claude-code`.
    pub host: String,
    /// The host's id of the session.
    pub id: String,
}

/// One event, ready to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDraft {
    /// The client's id of the event: unique in the tenant for ever.
    pub event_id: Uuid,
    /// When it happened, never later than its arrival.
    pub at: DateTime<Utc>,
    /// Its project; made by its first event.
    pub project: ProjectKey,
    /// Its session; made by its first event. Always there for what a host reports.
    pub session: Option<SessionKey>,
    /// The subagent's id, if one did it.
    pub agent_id: Option<String>,
    /// The subagent's type.
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Where the checkout is, the home folder as `~`.
    pub checkout: Option<String>,
    /// Who may read what it leaves.
    pub visibility: Visibility,
    /// First 16 bytes of SHA-256 of the content, to notice a repeat that differs.
    pub digest: [u8; 16],
    /// What happened.
    pub body: EventBody,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum EventBody {
    /// A session began or came back.
    SessionStart {
        /// Why: `startup`, `resume`, `clear`, `compact`, `fork`.
        source: Option<String>,
        /// The model in use.
        model: Option<String>,
    },
    /// The person asked something; opens a turn.
    Prompt {
        /// The text; `None` when it is wholly private, which leaves no record.
        text: Option<String>,
    },
    /// A tool was called.
    ToolUse(ToolUseDraft),
    /// The agent finished its turn.
    TurnEnd {
        /// Its last words.
        last_reply: Option<String>,
    },
    /// The session ended.
    SessionEnd {
        /// Why.
        reason: Option<String>,
    },
    /// A finished observation.
    Observation(ObservationDraft),
    /// A finished summary.
    Summary(SummaryDraft),
    /// An entry of a work list, with the order in which it sorts.
    WorkEntry {
        /// What was appended.
        entry: WorkEntryDraft,
        /// When it was made, by its machine's clock: not held to the service's, or a clock that
        /// runs ahead would be corrected twice.
        made_at: DateTime<Utc>,
        /// When its request was sent, by the same clock.
        sent_at: DateTime<Utc>,
        /// The machine it was made on, as the client names it.
        machine: Option<String>,
    },
}

impl EventBody {
    /// The kind's word on the wire.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SessionStart { .. } => "session_start",
            Self::Prompt { .. } => "prompt",
            Self::ToolUse(_) => "tool_use",
            Self::TurnEnd { .. } => "turn_end",
            Self::SessionEnd { .. } => "session_end",
            Self::Observation(_) => "observation",
            Self::Summary(_) => "summary",
            Self::WorkEntry { .. } => "work_entry",
        }
    }
}
