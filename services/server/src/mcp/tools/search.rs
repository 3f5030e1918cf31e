//! `mem_search` as a tool.

use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, search};
use crate::mcp::answer::Answer;

pub(super) async fn mem_search(call: Call<'_>) -> Result<Answer, Failure> {
    let mut answer = search::mem_search(call.app, call.caller, call.arguments).await?;
    let text = std::mem::take(&mut answer.text);
    // The text holds the records within their limits; as data they would stand there twice.
    answer.details.clear();
    let mut data = serde_json::to_value(answer).map_err(|e| Failure::fault(e.to_string()))?;
    if let Some(data) = data.as_object_mut() {
        data.remove("text");
    }
    Ok(Answer {
        text,
        data: Some(data),
    })
}

pub(super) fn mem_search_schema() -> Value {
    let count = |low: u32, high: u32, default: u32| json!({"type": "integer", "minimum": low, "maximum": high, "default": default});
    json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["guided", "auto"], "default": "guided"},
            "query": {"type": "string", "description": "Starts a search."},
            "project": {"type": "string", "description": "Id, key or name; * for all. Default: the current one."},
            "continuation": {"type": "string", "description": "As the step before printed it."},
            "selectedIds": {"type": "array", "items": {"type": "string"}, "description": "Ids the step before showed; [] ends the search."},
            "limit": count(1, 20, 20),
            "maxDetails": count(1, 5, 3),
            "depthBefore": count(0, 3, 2),
            "depthAfter": count(0, 3, 2)
        },
        "additionalProperties": false
    })
}
