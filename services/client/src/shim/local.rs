//! What the shim answers itself while the service does not: the handshake and the list of tools,
//! from the copy of what was listed last, else from the list that came with this program. A host
//! that gets no answer to these hides the whole server for as long as it runs.

use serde_json::{Value, json};

use super::answer;
use super::bridge::Bridge;
use super::message::Message;
use crate::copies;

/// What `./dev openapi` writes down of the server: its instructions and all its tools.
const BUILT_IN: &str = include_str!("tools.json");
/// The revision without a handshake.
const MODERN: &str = "2026-07-28";
/// Those with one, the newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a host may keep what a copy says: not at all, for the service may be back at once.
const TTL_MS: u32 = 0;

/// Whether the shim can answer this without the service.
pub fn can_answer(message: &Message) -> bool {
    matches!(
        message.method.as_str(),
        "initialize" | "server/discover" | "tools/list"
    )
}

/// The answer to what needs no service at all; none for all else.
pub fn at_once(message: &Message) -> Option<String> {
    let id = message.id.as_deref()?;
    let is_ping = message.method == "ping" && message.version.is_none();
    is_ping.then(|| result(id, &json!({})))
}

/// The answer without the service to what [`can_answer`] names.
pub fn answer(bridge: &Bridge, message: &Message) -> Option<String> {
    let id = message.id.as_deref()?;
    if message.method == "initialize" {
        return Some(result(id, &handshake(message)));
    }
    if let Some(version) = message
        .version
        .as_deref()
        .filter(|version| !is_known(version))
    {
        let data = json!({"supported": supported(), "requested": version});
        return Some(answer::error_with(
            id,
            -32022,
            "Unsupported protocol version",
            Some(&data),
        ));
    }
    let is_list = message.method == "tools/list";
    if message.version.is_none() && !is_list {
        let why = "Invalid params: _meta names no protocol version";
        return Some(answer::error(id, -32602, why));
    }
    let mut said = match is_list {
        true => json!({"tools": tools(bridge)}),
        false => json!({"supportedVersions": supported(), "capabilities": {"tools": {}},
            "instructions": built_in()["instructions"]}),
    };
    if message.version.as_deref() == Some(MODERN) {
        said["resultType"] = json!("complete");
        said["ttlMs"] = json!(TTL_MS);
        said["cacheScope"] = json!("private");
        said["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server_info()});
    }
    Some(result(id, &said))
}

/// Keeps a list that the service gave, for the time without it.
pub fn note(bridge: &Bridge, message: &Message, answer: Option<&str>) {
    if message.method != "tools/list" {
        return;
    }
    let answer: Option<Value> = answer.and_then(|line| serde_json::from_str(line).ok());
    let Some(Value::Array(tools)) = answer.map(|mut answer| answer["result"]["tools"].take())
    else {
        return;
    };
    if let Some(path) = copy(bridge).filter(|_| !tools.is_empty()) {
        copies::write(&path, &tools);
    }
}

fn handshake(message: &Message) -> Value {
    let asked = message.asked_version.as_deref();
    let settled = LEGACY.into_iter().find(|known| asked == Some(known));
    json!({"protocolVersion": settled.unwrap_or(LEGACY[0]), "capabilities": {"tools": {}},
        "serverInfo": server_info(), "instructions": built_in()["instructions"]})
}

fn tools(bridge: &Bridge) -> Vec<Value> {
    let kept: Option<Vec<Value>> = copy(bridge).and_then(|path| copies::read(&path));
    kept.unwrap_or_else(|| listed(&built_in(), bridge.settings.tools.as_deref()))
}

/// The tools that a setting shows, as the service reads it.
fn listed(built_in: &Value, setting: Option<&str>) -> Vec<Value> {
    let all = built_in["tools"].as_array().cloned().unwrap_or_default();
    let core = built_in["core"].as_array().cloned().unwrap_or_default();
    let shown = |words: &str| {
        let shows = |tool: &&Value| {
            let mut words = words.split(',').map(str::trim);
            words.any(|word| match word {
                "legacy" => true,
                "core" => core.contains(&tool["name"]),
                word => tool["name"] == word,
            })
        };
        all.iter().filter(shows).cloned().collect::<Vec<_>>()
    };
    let asked = setting.map(shown).filter(|asked| !asked.is_empty());
    asked.unwrap_or_else(|| shown("core"))
}

/// Where the list stands that this account was shown last under this setting.
fn copy(bridge: &Bridge) -> Option<std::path::PathBuf> {
    let (service, account) = bridge.account()?;
    let setting = bridge.settings.tools.as_deref().unwrap_or_default();
    let subject = [service, &account.key_id, setting].join("\0");
    Some(crate::state::kept_path(
        &bridge.dirs,
        "tool-copies",
        &subject,
    ))
}

fn built_in() -> Value {
    serde_json::from_str(BUILT_IN).unwrap_or_default()
}

fn is_known(version: &str) -> bool {
    version == MODERN || LEGACY.contains(&version)
}

fn supported() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(LEGACY).collect()
}

fn server_info() -> Value {
    json!({"name": "cairn", "version": env!("CARGO_PKG_VERSION")})
}

fn result(id: &str, result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_shows_what_the_service_would_show() {
        let built_in = built_in();
        let names = |setting: Option<&str>| {
            let listed = listed(&built_in, setting);
            let names = listed
                .iter()
                .map(|tool| tool["name"].as_str().expect("a name").to_owned());
            names.collect::<Vec<_>>()
        };
        let core = names(None);
        assert_eq!(core[0], "mem_search");
        assert_eq!(names(Some("core")), core);
        assert_eq!(names(Some("no such tool")), core);
        assert!(names(Some("legacy")).len() > core.len());
        assert_eq!(
            names(Some("timeline, save_memory")),
            ["save_memory", "timeline"]
        );
    }

    #[test]
    fn the_instructions_are_short_enough_for_every_host() {
        let built_in = built_in();
        let instructions = built_in["instructions"].as_str().expect("a text");
        assert!(!instructions.is_empty() && instructions.len() < 2048);
    }
}
