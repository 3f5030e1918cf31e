//! Copilot CLI: a session that starts, in either spelling of its events.

use cairn_wire::domain::limits;
use cairn_wire::domain::room::Room;

use super::{Host, Report, Shape, session_start};

/// The host.
pub const HOST: Host = Host {
    name: "copilot-cli",
    shape: Shape::TopLevel,
    limit: Room::units(limits::CONTEXT_UNITS),
    wants_json: true,
    parse,
};

fn parse(event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    match event {
        "SessionStart" | "sessionStart" => session_start(HOST.name, json),
        _ => Ok(None),
    }
}
