//! Original tool calls as a tool.

use cairn_wire::tool_uses::ToolUseQuery;
use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, tool_uses};
use crate::mcp::answer::Answer;

pub(super) async fn get(call: Call<'_>) -> Result<Answer, Failure> {
    let query = ToolUseQuery::from_arguments(call.arguments)?;
    let text = tool_uses::render(call.app, call.caller, query).await?;
    Ok(Answer { text, data: None })
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "string"}, "description": "1 to 20 ids like T118, or a host's ids of calls."},
            "project": {"type": "string"},
            "part": {"type": "integer", "minimum": 1, "description": "Which piece of one long call."}
        },
        "required": ["ids"],
        "additionalProperties": false
    })
}
