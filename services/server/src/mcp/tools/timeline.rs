//! `timeline` as a tool.

use cairn_domain::limits;
use cairn_wire::timeline::TimelineAsk;
use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, timeline};
use crate::mcp::answer::Answer;

pub(super) async fn show(call: Call<'_>) -> Result<Answer, Failure> {
    let ask = TimelineAsk::from_arguments(call.arguments)?;
    let shown = timeline::show(call.app, call.caller, &ask).await?;
    Ok(Answer {
        text: shown.text,
        data: None,
    })
}

pub(super) fn schema() -> Value {
    let depth = || {
        json!({"type": "integer", "minimum": 0, "maximum": limits::TIMELINE_DEPTH,
            "default": limits::DEFAULT_TIMELINE_DEPTH})
    };
    json!({
        "type": "object",
        "properties": {
            "anchor": {"type": "string", "description": "Id like 41 or S7; or give query."},
            "query": {"type": "string", "description": "Its best match is the anchor."},
            "depth_before": depth(),
            "depth_after": depth(),
            "project": {"type": "string"}
        },
        "additionalProperties": false
    })
}
