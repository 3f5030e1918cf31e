//! Hosts: what each coding agent says to a hook, brought into one form, and the answer that each
//! reads at session start.

mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod fields;
mod gemini;
mod vscode;

use cairn_wire::domain::room::Room;
use cairn_wire::session::SessionName;
use serde_json::json;

use fields::Fields;

/// The hosts that are known.
const HOSTS: [Host; 6] = [
    claude_code::HOST,
    codex::HOST,
    copilot::HOST,
    cursor::HOST,
    gemini::HOST,
    vscode::HOST,
];

/// An agent host.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Its word on the wire and on the command line.
    pub name: &'static str,
    shape: Shape,
    /// What it takes of a hook's text before it shows something else instead.
    limit: Room,
    /// Whether it reads every output as one JSON object, an empty one included.
    wants_json: bool,
    parse: fn(&str, &str) -> Result<Option<Report>, serde_json::Error>,
}

/// Where in an answer a host looks for text for the model.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// `{"hookSpecificOutput":{"hookEventName":…,"additionalContext":…}}`
    HookOutput,
    /// `{"additionalContext":…}`
    TopLevel,
    /// `{"additional_context":…}`
    SnakeCase,
}

impl Host {
    /// The host of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        HOSTS.into_iter().find(|host| host.name == name)
    }

    /// Reads the payload of one event; `None` for an event that is not recorded, and for a
    /// payload without a session.
    ///
    /// # Errors
    /// The parser's, for what is not a JSON object.
    pub fn parse(&self, event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
        (self.parse)(event, json)
    }

    /// How much may be printed at session start, if a setting says `units`.
    #[must_use]
    pub fn limit(&self, units: usize) -> Room {
        Room {
            units: units.min(self.limit.units),
            ..self.limit
        }
    }

    /// The answer that adds `text` to what the model reads at session start; `None` if nothing is
    /// to be printed.
    #[must_use]
    pub fn render_context(&self, text: Option<&str>) -> Option<String> {
        let Some(text) = text else {
            return self.wants_json.then(|| "{}".to_owned());
        };
        let answer = match self.shape {
            Shape::HookOutput => json!({"hookSpecificOutput":
                {"hookEventName": "SessionStart", "additionalContext": text}}),
            Shape::TopLevel => json!({"additionalContext": text}),
            Shape::SnakeCase => json!({"additional_context": text}),
        };
        Some(answer.to_string())
    }
}

/// Reads the start of a session, under whichever names a host gives its fields.
fn session_start(host: &'static str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_str(json)?;
    let first = |names: &[&str]| names.iter().find_map(|name| fields.text(name));
    let session = first(&["session_id", "sessionId", "conversation_id"]);
    let roots = fields.raw("workspace_roots");
    let roots: Option<Vec<String>> = roots.and_then(|json| serde_json::from_str(json).ok());
    let root = roots.and_then(|roots| roots.into_iter().next());
    let session = session.filter(|id| !id.trim().is_empty());
    Ok(session.map(|session| Report {
        host,
        session,
        cwd: fields.text("cwd").or(root),
        agent_id: None,
        agent_type: None,
        event: Event::SessionStart {
            source: fields.text("source"),
            model: fields.text("model"),
        },
    }))
}

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

impl Report {
    /// The session, as the service knows it.
    #[must_use]
    pub fn session_name(&self) -> SessionName {
        SessionName {
            host: self.host.to_owned(),
            id: self.session.clone(),
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn each_host_finds_its_text_where_it_looks_for_it() {
        for (name, path) in [
            ("claude-code", "/hookSpecificOutput/additionalContext"),
            ("codex", "/hookSpecificOutput/additionalContext"),
            ("gemini-cli", "/hookSpecificOutput/additionalContext"),
            ("vscode", "/hookSpecificOutput/additionalContext"),
            ("copilot-cli", "/additionalContext"),
            ("cursor", "/additional_context"),
        ] {
            let host = Host::find(name).expect("known");
            let answer = host.render_context(Some("text")).expect("an answer");
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer.pointer(path), Some(&json!("text")), "{name}");
            assert_eq!(
                answer.as_object().map(serde_json::Map::len),
                Some(1),
                "{name}"
            );
        }
    }

    #[test]
    fn a_session_start_is_read_in_each_hosts_words() {
        for (name, event, payload) in [
            (
                "codex",
                "SessionStart",
                json!({"session_id": "s", "cwd": "/a", "source": "startup"}),
            ),
            (
                "gemini-cli",
                "SessionStart",
                json!({"session_id": "s", "cwd": "/a", "source": "startup", "timestamp": "t"}),
            ),
            (
                "copilot-cli",
                "SessionStart",
                json!({"session_id": "s", "cwd": "/a", "source": "new"}),
            ),
            (
                "copilot-cli",
                "sessionStart",
                json!({"sessionId": "s", "cwd": "/a", "source": "new", "timestamp": 1}),
            ),
            (
                "vscode",
                "SessionStart",
                json!({"sessionId": "s", "cwd": "/a", "hookEventName": "SessionStart"}),
            ),
            (
                "cursor",
                "sessionStart",
                json!({"conversation_id": "s", "workspace_roots": ["/a", "/b"]}),
            ),
        ] {
            let host = Host::find(name).expect("known");
            let report = host.parse(event, &payload.to_string()).expect("reads");
            let report = report.expect("is a session");
            assert_eq!((report.host, report.session.as_str()), (name, "s"));
            assert_eq!(report.cwd.as_deref(), Some("/a"), "{name}");
            assert!(matches!(report.event, Event::SessionStart { .. }));
            assert!(host.parse(event, "[]").is_err());
            assert_eq!(host.parse("Notification", "{}").expect("reads"), None);
        }
    }
}
