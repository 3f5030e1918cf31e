//! The overview of a project as a tool.

use cairn_domain::limits;
use cairn_wire::context::ContextQuery;
use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, context};
use crate::mcp::answer::Answer;

pub(super) async fn overview(call: Call<'_>) -> Result<Answer, Failure> {
    let query = ContextQuery::from_arguments(call.arguments)?;
    let filled = context::render(call.app, call.caller, &query, false).await?;
    Ok(Answer {
        text: filled.text(),
        data: None,
    })
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Only what matches these words."},
            "project": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::MAX_CONTEXT_OBSERVATIONS, "default": limits::CONTEXT_OBSERVATIONS}
        },
        "additionalProperties": false
    })
}
