//! The two tools of work state.

use cairn_domain::limits;
use cairn_wire::work_state::{WorkQuery, WorkWrite};
use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, work_state};
use crate::mcp::answer::Answer;

pub(super) async fn write(call: Call<'_>) -> Result<Answer, Failure> {
    let write = WorkWrite::from_arguments(call.arguments)?;
    let written = work_state::write(call.app, call.caller, write, call.event_id).await?;
    Ok(Answer {
        data: Some(json!({
            "id": written.id, "hlc": written.hlc, "list": written.list, "project": written.project,
            "holder": written.holder, "until": written.until,
        })),
        text: written.text,
    })
}

pub(super) async fn read(call: Call<'_>) -> Result<Answer, Failure> {
    let query = WorkQuery::from_arguments(call.arguments)?;
    let read = work_state::read(call.app, call.caller, &query).await?;
    Ok(Answer {
        data: Some(json!({"project": read.project, "hlc": read.hlc})),
        text: read.text,
    })
}

pub(super) fn write_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "list": {"type": "string", "description": "One list per effort."},
            "fields": {"type": "object", "description": "Keys and values; task names a to-do, status \"done\" or \"dropped\" closes, null clears."},
            "action": {"type": "string", "enum": ["claim", "release"], "description": "Needs fields.task."},
            "leaseMinutes": {"type": "integer", "minimum": 1, "maximum": limits::MAX_LEASE_MINUTES, "default": limits::LEASE_MINUTES},
            "project": {"type": "string"}
        },
        "required": ["list", "fields"],
        "additionalProperties": false
    })
}

pub(super) fn read_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "list": {"type": "string"},
            "includeClosed": {"type": "boolean", "default": false},
            "project": {"type": "string"}
        },
        "additionalProperties": false
    })
}
