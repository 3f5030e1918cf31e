//! Capture: from what a host reports to the item that is spooled.
//!
//! Texts are treated here, before anything touches the disk: blobs, wrapper tags, secrets, length.

use std::borrow::Cow;

use cairn_wire::domain::bounds::{self, Bound};
use cairn_wire::domain::event::Visibility;
use cairn_wire::domain::hex::hex;
use cairn_wire::domain::tool_use::Evidence;
use cairn_wire::domain::{limits, redact};
use chrono::Utc;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Hook, base};
use crate::blobs;
use crate::hosts::{Event, ToolUse};
use crate::spool::Item;
use crate::state::{self, Turn};

/// Cairn's own tools: their results are in memory already. Under any server's prefix.
const OWN_TOOLS: &[&str] = &[
    "mem_search",
    "get_observations",
    "get_tool_uses",
    "work_state_write",
    "work_state_read",
    "save_memory",
    "skill_list",
    "skill_load",
    "skill_resource",
    "skill_publish",
    "smart_outline",
    "smart_unfold",
    "smart_search",
    "important_workflow",
    "__IMPORTANT",
    "observation_add",
    "observation_search",
    "observation_context",
    "memory_context",
];

/// Own tools with names that other servers use as well: only a server named after us counts.
const OWN_TOOLS_WITH_COMMON_NAMES: &[&str] = &["search", "timeline", "memory_add", "memory_search"];

/// The item for what a host reports; `None` if nothing is kept of it.
pub fn item(hook: &Hook) -> Option<Item> {
    let (kind, body) = body(hook)?;
    let report = &hook.report;
    Some(Item {
        event_id: event_id(hook).to_string(),
        kind: kind.to_owned(),
        at: cairn_wire::time::text(Utc::now()),
        project: Some(hook.project.name.clone()),
        session: Some(report.session_name()),
        after: None,
        agent_id: report.agent_id.clone(),
        agent_type: report.agent_type.clone(),
        branch: hook.project.branch.clone(),
        checkout: Some(hook.project.checkout()),
        visibility: match hook.settings.visibility {
            Visibility::Team => None,
            private @ Visibility::Private => Some(private.name().to_owned()),
        },
        body,
    })
}

fn body(hook: &Hook) -> Option<(&'static str, Map<String, Value>)> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), Value::String(value));
        }
    };
    let kind = match &hook.report.event {
        Event::SessionStart { source, model } => {
            put("source", source.clone());
            put("model", model.clone());
            "session_start"
        }
        Event::Prompt { text } => return Some(("prompt", prompt_body(hook, text))),
        Event::ToolUse(tool_use) => {
            let wanted = is_recorded(&tool_use.tool, &hook.settings.skip_tools);
            let body = (wanted && may_keep(hook)).then(|| tool_use_body(hook, tool_use));
            return body.map(|body| ("tool_use", body));
        }
        Event::TurnEnd { last_reply } => {
            if may_keep(hook) {
                put(
                    "last_reply",
                    last_reply
                        .as_deref()
                        .map(|text| plain(text, limits::TEXT_BYTES)),
                );
            }
            "turn_end"
        }
        Event::SessionEnd { reason } => {
            put("reason", reason.clone());
            "session_end"
        }
    };
    Some((kind, body))
}

/// Whether what happens in the open turn may be kept. Where no mark can be kept either, nobody
/// knows whether the turn is private, so nothing of it is; what is left out is counted.
fn may_keep(hook: &Hook) -> bool {
    match state::turn(&hook.dirs, &hook.session()) {
        Turn::Open => true,
        Turn::Private => false,
        Turn::Unknown => {
            hook.spool().count_left_out();
            let state = hook.dirs.state.display();
            let line = format!("cairn: cannot write {state}; until it can, turns are left out");
            hook.tell_once("turns", &line);
            false
        }
    }
}

/// A prompt that is empty without its private parts leaves nothing but its existence, and so
/// does all that happens until the next one.
fn prompt_body(hook: &Hook, text: &str) -> Map<String, Value> {
    let text = plain(text, limits::PROMPT_BYTES);
    let private = text.trim().is_empty();
    state::mark_turn(&hook.dirs, &hook.session(), private);
    let mut body = Map::new();
    match private {
        true => body.insert("private".to_owned(), Value::Bool(true)),
        false => body.insert("text".to_owned(), Value::String(text)),
    };
    body
}

fn tool_use_body(hook: &Hook, tool_use: &ToolUse) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("tool".to_owned(), Value::String(tool_use.tool.clone()));
    if let Some(id) = &tool_use.id {
        body.insert("host_tool_use_id".to_owned(), Value::String(id.clone()));
    }
    for (name, json) in [("input", &tool_use.input), ("output", &tool_use.output)] {
        let treated = treat(json);
        let evidence = Evidence::of(&treated);
        if evidence.text.len() < treated.len() {
            // What the service cannot measure any more once the text is cut.
            body.insert(format!("{name}_bytes"), Value::from(evidence.bytes));
            let digest = Value::String(hex(&evidence.sha256));
            body.insert(format!("{name}_sha256"), digest);
        }
        body.insert(name.to_owned(), Value::String(evidence.text));
    }
    if let Some(failed) = tool_use.failed {
        body.insert("failed".to_owned(), Value::Bool(failed));
    }
    let files = tool_use
        .files
        .iter()
        .map(|path| hook.project.file(path, base(hook)));
    let files: Vec<Value> = files.map(Value::String).collect();
    if !files.is_empty() {
        body.insert("files".to_owned(), Value::Array(files));
    }
    body
}

/// A tool's JSON without blobs, wrapper tags and secrets; what stays is the host's exact text.
fn treat(json: &str) -> Cow<'_, str> {
    match blobs::mark(json) {
        Cow::Borrowed(json) => redact::safe_json(json),
        Cow::Owned(json) => Cow::Owned(redact::safe_json(&json).into_owned()),
    }
}

fn plain(text: &str, limit: usize) -> String {
    bounds::cut(&redact::safe(text), Bound::Bytes(limit))
}

fn is_recorded(tool: &str, skipped: &[String]) -> bool {
    if tool.trim().is_empty() || skipped.iter().any(|name| name == tool) {
        return false;
    }
    let Some(rest) = tool.strip_prefix("mcp__") else {
        return true;
    };
    let server = |name: &str| {
        rest.strip_suffix(name)
            .and_then(|rest| rest.strip_suffix("__"))
    };
    let ours = |server: &str| server.to_lowercase().contains("cairn");
    !(OWN_TOOLS.iter().any(|name| server(name).is_some())
        || OWN_TOOLS_WITH_COMMON_NAMES
            .iter()
            .filter_map(|name| server(name))
            .any(ours))
}

/// Two hooks that report one tool call give it one id, if the host names the call (contract 4.2).
fn event_id(hook: &Hook) -> Uuid {
    match &hook.report.event {
        Event::ToolUse(ToolUse { id: Some(id), .. }) => {
            tool_use_event_id(hook.report.host, &hook.report.session, id)
        }
        _ => Uuid::now_v7(),
    }
}

fn tool_use_event_id(host: &str, session: &str, id: &str) -> Uuid {
    let text = ["cairn:tool-use:v1", host, session, id].join("\0");
    let digest = Sha256::digest(text.as_bytes());
    let head = digest.first_chunk::<16>().expect("a digest has 32 bytes");
    Uuid::new_v8(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c012_one_call_has_one_event_id() {
        let id = tool_use_event_id("claude-code", "s-1", "tu_9");
        assert_eq!(id.to_string(), "e437d10e-f478-80e1-b7c9-fb2ce3ebe44d");
    }

    #[test]
    fn own_tools_are_not_recorded_under_any_prefix() {
        for tool in [
            "mcp__cairn__mem_search",
            "mcp__plugin_cairn_cairn__work_state_write",
            "mcp__mem__get_observations",
            "mcp__cairn____IMPORTANT",
            "mcp__cairn__search",
            "",
            "TodoWrite",
        ] {
            assert!(!is_recorded(tool, &["TodoWrite".to_owned()]), "{tool}");
        }
        for tool in [
            "Bash",
            "mcp__forge__search",
            "mcp__x__memory_search",
            "mem_search",
        ] {
            assert!(is_recorded(tool, &[]), "{tool}");
        }
    }

    #[test]
    fn only_what_must_change_changes() {
        let json = r#"{"n":1.50,"n":2,"s":"\u00e9 <private>S</private>","t":"\u00e9"}"#;
        assert_eq!(treat(json), r#"{"n":1.50,"n":2,"s":"é ","t":"\u00e9"}"#);
    }
}
