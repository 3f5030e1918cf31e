//! Cursor: a conversation that starts.

use cairn_wire::domain::limits;
use cairn_wire::domain::room::Room;

use super::{Host, Report, Shape, session_start};

/// The host.
pub const HOST: Host = Host {
    name: "cursor",
    shape: Shape::SnakeCase,
    limit: Room::units(limits::CONTEXT_UNITS),
    wants_json: true,
    parse,
};

fn parse(event: &str, json: &str) -> Result<Option<Report>, serde_json::Error> {
    match event {
        "sessionStart" => session_start(HOST.name, json),
        _ => Ok(None),
    }
}
