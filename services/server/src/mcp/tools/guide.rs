//! The tool that only says how to use the others, for hosts whose models read tools before
//! instructions (contract 9.3).

use serde_json::{Value, json};

use super::Call;
use crate::actions::Failure;
use crate::mcp::answer::Answer;

const WORKFLOW: &str = "\
Search memory with mem_search: it does the three steps (index, context, details) and keeps them in order.
1. mem_search(query) lists titles. 2. mem_search(continuation, selectedIds) shows what surrounds them. 3. The same again returns full records.
Ids already in front of you (session index): get_observations(ids).
The original tool output, rarely needed: get_tool_uses(ids).
Special filters: search, timeline.";

pub(super) async fn workflow(_: Call<'_>) -> Result<Answer, Failure> {
    Ok(Answer {
        text: WORKFLOW.to_owned(),
        data: None,
    })
}

pub(super) fn schema() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}
