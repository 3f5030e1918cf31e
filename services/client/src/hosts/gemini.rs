//! Gemini CLI: a session that starts. It reads nothing but JSON.

use cairn_wire::domain::limits;
use cairn_wire::domain::room::Room;

use super::{Host, Report, Shape, session_start};

/// The host.
pub const HOST: Host = Host {
    name: "gemini-cli",
    shape: Shape::HookOutput,
    limit: Room::units(limits::CONTEXT_UNITS),
    wants_json: true,
    parse,
};

fn parse(event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    match event {
        "SessionStart" => session_start(HOST.name, json),
        _ => Ok(None),
    }
}
