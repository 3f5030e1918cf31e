//! Observations as tools.

use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, observations};
use crate::mcp::answer::Answer;

pub(super) async fn get(call: Call<'_>) -> Result<Answer, Failure> {
    let text = observations::render(call.app, call.caller, call.arguments).await?;
    Ok(Answer { text, data: None })
}

pub(super) fn get_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "string"}, "description": "1 to 100 ids like 41 or S7."},
            "project": {"type": "string"},
            "part": {"type": "integer", "minimum": 1, "description": "Which piece of one long record."}
        },
        "required": ["ids"],
        "additionalProperties": false
    })
}
