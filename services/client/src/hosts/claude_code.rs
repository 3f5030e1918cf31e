//! Claude Code: the payloads of its hooks.

use cairn_wire::domain::limits;
use cairn_wire::domain::room::Room;

use super::fields::Fields;
use super::{Event, Host, Report, Shape, ToolUse};

/// Claude Code. Beyond its limit a host shows a stub instead of the text.
pub const HOST: Host = Host {
    name: "claude-code",
    shape: Shape::HookOutput,
    limit: Room::units(limits::CONTEXT_UNITS),
    wants_json: false,
    parse,
};

/// Fields of a tool's input that name a file.
const FILE_FIELDS: &[&str] = &["file_path", "notebook_path", "path"];

/// Reads the payload of one event; `None` for an event that is not recorded, and for a payload
/// without a session.
///
/// # Errors
/// The parser's, for what is not a JSON object.
fn parse(event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_str(json)?;
    let event = match event {
        "SessionStart" => Event::SessionStart {
            source: fields.text("source"),
            model: fields.text("model"),
        },
        "UserPromptSubmit" => Event::Prompt {
            text: fields.text("prompt").unwrap_or_default(),
        },
        "PostToolUse" => Event::ToolUse(tool_use(&fields, "tool_response", false)),
        "PostToolUseFailure" => Event::ToolUse(tool_use(&fields, "error", true)),
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
        host: HOST.name,
        session,
        cwd: fields.text("cwd"),
        agent_id: fields.text("agent_id"),
        agent_type: fields.text("agent_type"),
        event,
    }))
}

fn tool_use(fields: &Fields<'_>, output: &str, failed: bool) -> ToolUse {
    let output = fields.raw(output).unwrap_or("null");
    ToolUse {
        tool: fields.text("tool_name").unwrap_or_default(),
        id: fields.text("tool_use_id").filter(|id| !id.is_empty()),
        input: fields.raw("tool_input").unwrap_or("null").to_owned(),
        output: output.to_owned(),
        failed: Some(failed || says_failure(output)),
        files: fields.raw("tool_input").map(find_files).unwrap_or_default(),
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
