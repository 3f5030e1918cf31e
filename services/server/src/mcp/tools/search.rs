//! `mem_search` and `search` as tools.

use cairn_domain::limits;
use cairn_domain::observation::{Concept, ObservationType};
use cairn_wire::search::FindAsk;
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

pub(super) async fn find(call: Call<'_>) -> Result<Answer, Failure> {
    let ask = FindAsk::from_arguments(call.arguments)?;
    let text = search::render(call.app, call.caller, &ask).await?;
    Ok(Answer { text, data: None })
}

pub(super) fn find_schema() -> Value {
    let text = || json!({"type": "string"});
    let listed =
        |names: Vec<&str>| json!({"type": "array", "items": {"type": "string", "enum": names}});
    let types = ObservationType::ALL.map(ObservationType::name).to_vec();
    let kinds = ["observations", "sessions", "prompts"];
    let kinds_and_types = [&kinds[..], &types].concat();
    json!({
        "type": "object",
        "properties": {
            "query": text(),
            "project": {"type": "string", "description": "Id, key or name; * for all. Default: the current one."},
            "type": listed(kinds_and_types),
            "obs_type": listed(types),
            "concepts": listed(Concept::ALL.map(Concept::name).to_vec()),
            "files": {"type": "array", "items": {"type": "string"}, "description": "Ends of paths, or folders."},
            "author": {"type": "string", "description": "A handle, or me."},
            "session": text(),
            "dateStart": {"type": "string", "description": "A date or a moment, RFC 3339."},
            "dateEnd": text(),
            "orderBy": {"type": "string", "enum": ["relevance", "date_desc", "date_asc"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::MAX_FOUND_ROWS, "default": limits::FOUND_ROWS},
            "offset": {"type": "integer", "minimum": 0, "maximum": limits::MAX_OFFSET},
            "cursor": {"type": "string", "description": "As the page before printed it; all else as before."},
            "format": {"type": "string", "enum": ["table", "list"], "default": "table"},
            "detail": {"type": "string", "enum": ["index", "full"], "default": "index"}
        },
        "additionalProperties": false
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
