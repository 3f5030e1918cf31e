//! Hosts: what each coding agent says to a hook, brought into one form.

pub mod claude_code;

/// What a hook was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The host's word on the wire.
    pub host: &'static str,
    /// The host's id of the session.
    pub session: String,
    /// The folder in which it happened.
    pub cwd: Option<String>,
    /// The subagent's id, if one did it.
    pub agent_id: Option<String>,
    /// The subagent's type.
    pub agent_type: Option<String>,
    /// What happened.
    pub event: Event,
}

/// What happened, in the host's own texts.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A session began or came back.
    SessionStart {
        /// Why: `startup`, `resume`, `clear`, `compact`, `fork`.
        source: Option<String>,
        /// The model in use.
        model: Option<String>,
    },
    /// The person asked something.
    Prompt {
        /// The text.
        text: String,
    },
    /// A tool was called.
    ToolUse(ToolUse),
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
}

/// A tool call as the host reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The tool's name.
    pub tool: String,
    /// The host's id of the call.
    pub id: Option<String>,
    /// What went in: exact JSON text.
    pub input: String,
    /// What came out: exact JSON text.
    pub output: String,
    /// Whether it failed, if the host says so.
    pub failed: Option<bool>,
    /// Files named in the input, as they are written there.
    pub files: Vec<String>,
}
