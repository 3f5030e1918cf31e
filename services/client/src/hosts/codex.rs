//! Codex CLI: a session that starts. It takes about 2,500 tokens of a text.

use cairn_wire::domain::limits;
use cairn_wire::domain::room::Room;

use super::{Host, Report, Shape, session_start};

/// It moves a longer text into a file. About: the host counts a little differently.
const TOKENS: usize = 2_400;

/// The host.
pub const HOST: Host = Host {
    name: "codex",
    shape: Shape::HookOutput,
    limit: Room {
        units: limits::CONTEXT_UNITS,
        tokens: TOKENS,
    },
    wants_json: false,
    parse,
};

fn parse(event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    match event {
        "SessionStart" => session_start(HOST.name, json),
        _ => Ok(None),
    }
}
