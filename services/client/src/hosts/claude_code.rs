//! Claude Code: the payloads of its hooks, and the one answer that it reads.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Event, Report, ToolUse};

/// The host's word on the wire.
pub const HOST: &str = "claude-code";

/// Fields of a tool's input that name a file.
const FILE_FIELDS: &[&str] = &["file_path", "notebook_path", "path"];

/// Reads the payload of one event; `None` for an event that is not recorded, and for a payload
/// without a session.
///
/// # Errors
/// The parser's, for what is not a JSON object.
pub fn parse(event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_str(json)?;
    let event = match event {
        "SessionStart" => Event::SessionStart {
            source: fields.text("source"),
            model: fields.text("model"),
        },
        "UserPromptSubmit" => Event::Prompt {
            text: fields.text("prompt").unwrap_or_default(),
        },
        "PostToolUse" => Event::ToolUse(fields.tool_use("tool_response", false)),
        "PostToolUseFailure" => Event::ToolUse(fields.tool_use("error", true)),
        "Stop" => Event::TurnEnd {
            last_reply: fields.text("last_assistant_message"),
        },
        "SessionEnd" => Event::SessionEnd {
            reason: fields.text("reason"),
        },
        _ => return Ok(None),
    };
    let session = fields.text("session_id").filter(|id| !id.trim().is_empty());
    Ok(session.map(|session| Report {
        host: HOST,
        session,
        cwd: fields.text("cwd"),
        agent_id: fields.text("agent_id"),
        agent_type: fields.text("agent_type"),
        event,
    }))
}

/// The answer that adds `text` to what the model reads at session start.
#[must_use]
pub fn render_context(text: &str) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Specific<'a> {
        hook_event_name: &'static str,
        additional_context: &'a str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer<'a> {
        hook_specific_output: Specific<'a>,
    }
    let answer = Answer {
        hook_specific_output: Specific {
            hook_event_name: "SessionStart",
            additional_context: text,
        },
    };
    serde_json::to_string(&answer).expect("texts serialise")
}

/// The fields of an object as slices of its text. A repeated field counts as last written.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().rfind(|(field, _)| field == name);
        found.map(|(_, value)| value.get())
    }

    /// A field's text; `None` if it is absent or no text.
    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    fn tool_use(&self, output: &str, failed: bool) -> ToolUse {
        let output = self.raw(output).unwrap_or("null");
        ToolUse {
            tool: self.text("tool_name").unwrap_or_default(),
            id: self.text("tool_use_id").filter(|id| !id.is_empty()),
            input: self.raw("tool_input").unwrap_or("null").to_owned(),
            output: output.to_owned(),
            failed: Some(failed || says_failure(output)),
            files: self.raw("tool_input").map(find_files).unwrap_or_default(),
        }
    }
}

/// Whether a tool's own answer calls itself an error.
fn says_failure(output: &str) -> bool {
    // Most outputs are long and say nothing of the kind: one quick look instead of a parser's.
    if !output.starts_with('{') || !output.contains("rror\"") {
        return false;
    }
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(output) else {
        return false;
    };
    ["is_error", "isError"]
        .iter()
        .any(|name| fields.raw(name) == Some("true"))
}

fn find_files(input: &str) -> Vec<String> {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(input) else {
        return Vec::new();
    };
    let named = FILE_FIELDS.iter().filter_map(|name| fields.text(name));
    named.filter(|path| !path.trim().is_empty()).collect()
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_and_output_are_exact_slices_of_the_payload() {
        let json = r#"{"session_id":"s-1","tool_name":"Bash","tool_use_id":"tu_9","session_id":"s-2",
            "tool_input":{"n":1.50, "n":100000000000000000000,"s":"\u00e9"},"tool_response":[ 1 ]}"#;
        let report = parse("PostToolUse", json)
            .expect("reads")
            .expect("is recorded");
        assert_eq!(report.session, "s-2");
        let Event::ToolUse(tool_use) = report.event else {
            panic!("{:?}", report.event);
        };
        assert_eq!(
            tool_use.input,
            r#"{"n":1.50, "n":100000000000000000000,"s":"\u00e9"}"#
        );
        assert_eq!(tool_use.output, "[ 1 ]");
        assert_eq!(tool_use.failed, Some(false));
    }

    #[test]
    fn files_and_failures_are_read_from_the_call() {
        let json = r#"{"session_id":"s","tool_name":"Edit","tool_input":{"file_path":"/a/b.rs"},
            "error":"Exit code 3"}"#;
        let report = parse("PostToolUseFailure", json)
            .expect("reads")
            .expect("is recorded");
        let Event::ToolUse(tool_use) = report.event else {
            panic!("{:?}", report.event);
        };
        assert_eq!(tool_use.files, ["/a/b.rs"]);
        assert_eq!(
            (tool_use.failed, tool_use.output.as_str()),
            (Some(true), "\"Exit code 3\"")
        );
    }

    #[test]
    fn what_is_not_recorded_is_no_error() {
        assert_eq!(
            parse("Notification", "{\"session_id\":\"s\"}").expect("reads"),
            None
        );
        assert_eq!(parse("Stop", "{}").expect("reads"), None);
        assert!(parse("Stop", "[]").is_err());
    }
}
