//! A recorded Claude Code session: hook payloads, one process each, in the order they came.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::client::Client;

/// The folder that the session was recorded in; it stands in the payloads.
const RECORDED_IN: &str = "/workspace/my-app";
/// The payloads, in order.
const PAYLOADS: [&str; 9] = [
    include_str!("../../fixtures/claude-code-session/01-session-start.json"),
    include_str!("../../fixtures/claude-code-session/02-user-prompt-submit.json"),
    include_str!("../../fixtures/claude-code-session/03-post-tool-use-read.json"),
    include_str!("../../fixtures/claude-code-session/04-post-tool-use-failure-bash.json"),
    include_str!("../../fixtures/claude-code-session/05-post-tool-use-edit.json"),
    include_str!("../../fixtures/claude-code-session/06-post-tool-use-bash.json"),
    include_str!("../../fixtures/claude-code-session/07-user-prompt-submit.json"),
    include_str!("../../fixtures/claude-code-session/08-stop.json"),
    include_str!("../../fixtures/claude-code-session/09-session-end.json"),
];

/// Replays the session as one of `checkout`; answers the number of hook calls.
///
/// # Errors
/// If a hook complains.
pub fn replay(client: &Client, checkout: &Path) -> anyhow::Result<usize> {
    for payload in PAYLOADS {
        let event = event_of(payload)?;
        client.hook(checkout, &event, &moved(payload, checkout)?)?;
    }
    Ok(PAYLOADS.len())
}

/// Starts a session that has seen nothing yet; answers the context it is given.
///
/// # Errors
/// If the hook complains or gives no context.
pub fn start_fresh(client: &Client, checkout: &Path) -> anyhow::Result<String> {
    let mut payload: Value = serde_json::from_str(&moved(PAYLOADS[0], checkout)?)?;
    payload["session_id"] = json!("b1f6a1de-5f0c-4f7c-9d2e-6f6f2b1c7a02");
    let printed = client.hook(checkout, "SessionStart", &payload.to_string())?;
    let answer: Value = serde_json::from_str(&printed).context("what SessionStart printed")?;
    let context = answer
        .pointer("/hookSpecificOutput/additionalContext")
        .and_then(Value::as_str);
    let context = context.with_context(|| format!("SessionStart gave no context: {printed}"))?;
    if !context.contains("recent context") {
        bail!("SessionStart could not reach the service: {context}");
    }
    Ok(context.to_owned())
}

fn event_of(payload: &str) -> anyhow::Result<String> {
    let payload: Value = serde_json::from_str(payload)?;
    let event = payload["hook_event_name"].as_str();
    Ok(event
        .context("a payload without hook_event_name")?
        .to_owned())
}

/// The payload as it would have come from another folder.
fn moved(payload: &str, checkout: &Path) -> anyhow::Result<String> {
    let path = checkout
        .to_str()
        .context("a folder whose name is not UTF-8")?;
    let quoted = serde_json::to_string(path)?;
    Ok(payload.replace(RECORDED_IN, &quoted[1..quoted.len() - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads() -> Vec<Value> {
        PAYLOADS
            .iter()
            .map(|payload| serde_json::from_str(payload).expect("JSON"))
            .collect()
    }

    #[test]
    fn the_session_has_every_event_in_an_order_a_host_would_send() {
        let events: Vec<String> = PAYLOADS
            .iter()
            .map(|p| event_of(p).expect("named"))
            .collect();
        assert_eq!(
            events,
            [
                "SessionStart",
                "UserPromptSubmit",
                "PostToolUse",
                "PostToolUseFailure",
                "PostToolUse",
                "PostToolUse",
                "UserPromptSubmit",
                "Stop",
                "SessionEnd"
            ]
        );
    }

    #[test]
    fn every_payload_has_the_fields_of_its_event() {
        for payload in payloads() {
            let needs: &[&str] = match payload["hook_event_name"].as_str().expect("named") {
                "SessionStart" => &["/source", "/model"],
                "UserPromptSubmit" => &["/prompt", "/prompt_id"],
                "PostToolUse" => &[
                    "/tool_name",
                    "/tool_input",
                    "/tool_use_id",
                    "/tool_response",
                ],
                "PostToolUseFailure" => &["/tool_name", "/tool_input", "/tool_use_id", "/error"],
                "Stop" => &["/stop_hook_active", "/last_assistant_message"],
                "SessionEnd" => &["/reason"],
                other => panic!("{other} is not part of the session"),
            };
            for pointer in ["/session_id", "/transcript_path", "/cwd"]
                .iter()
                .chain(needs)
            {
                assert!(payload.pointer(pointer).is_some(), "{pointer} of {payload}");
            }
        }
    }

    #[test]
    fn a_tool_answers_in_the_shape_of_its_kind() {
        let used: Vec<Value> = payloads()
            .into_iter()
            .filter(|p| p["tool_response"].is_object())
            .collect();
        let tools: Vec<&str> = used
            .iter()
            .filter_map(|p| p["tool_name"].as_str())
            .collect();
        assert_eq!(tools, ["Read", "Edit", "Bash"]);
        for key in [
            "stdout",
            "stderr",
            "interrupted",
            "isImage",
            "noOutputExpected",
        ] {
            assert!(used[2]["tool_response"].get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_moved_payload_names_the_new_folder_alone() {
        for payload in PAYLOADS {
            let text = moved(payload, Path::new("/tmp/a \"b\"")).expect("moved");
            let payload: Value = serde_json::from_str(&text).expect("still JSON");
            assert_eq!(payload["cwd"], "/tmp/a \"b\"");
            assert!(!text.contains(RECORDED_IN), "{text}");
        }
    }
}
