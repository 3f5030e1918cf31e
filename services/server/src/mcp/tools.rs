//! Every tool on one page: name, words and schema in [`TOOLS`], the action it calls in [`call`].

use std::sync::Arc;

use cairn_domain::limits;
use cairn_wire::tool_uses::ToolUseQuery;
use cairn_wire::work_state::{WorkQuery, WorkWrite};
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::Answer;
use crate::actions::{Failure, observations, search, tool_uses, work_state};
use crate::app::App;
use crate::auth::Caller;

/// A tool as it is listed.
struct Listed {
    name: &'static str,
    words: &'static str,
    schema: fn() -> Value,
    /// Shown at once by hosts that hide tools behind a tool search.
    is_always_loaded: bool,
    /// Whether it changes nothing.
    is_read_only: bool,
}

const TOOLS: &[Listed] = &[
    Listed {
        name: "mem_search",
        words: "Search the team's memory, for every memory question. query gives titles; continuation with selectedIds gives what surrounds them; once more gives the full records.",
        schema: mem_search_schema,
        is_always_loaded: true,
        is_read_only: true,
    },
    Listed {
        name: "get_observations",
        words: "Legacy: full records by id, for ids already in front of you (session index, a search).",
        schema: get_observations_schema,
        is_always_loaded: true,
        is_read_only: true,
    },
    Listed {
        name: "get_tool_uses",
        words: "Last resort, rarely needed: original input and output of tool calls whose ids a record named.",
        schema: get_tool_uses_schema,
        is_always_loaded: false,
        is_read_only: true,
    },
    Listed {
        name: "work_state_write",
        words: "Add to a to-do list or tracked state of this project, shared with the team; action claims or releases a task.",
        schema: work_state_write_schema,
        is_always_loaded: true,
        is_read_only: false,
    },
    Listed {
        name: "work_state_read",
        words: "Read this project's lists.",
        schema: work_state_read_schema,
        is_always_loaded: false,
        is_read_only: true,
    },
];

/// Calls a tool; `None` if there is none of this name. `event_id` makes a write repeatable.
pub async fn call(
    app: &App,
    caller: &Caller,
    name: &str,
    arguments: Value,
    event_id: Option<Uuid>,
) -> Option<Result<Answer, Failure>> {
    match name {
        "mem_search" => Some(mem_search(app, caller, arguments).await),
        "get_observations" => Some(get_observations(app, caller, arguments).await),
        "get_tool_uses" => Some(get_tool_uses(app, caller, arguments).await),
        "work_state_write" => Some(work_state_write(app, caller, arguments, event_id).await),
        "work_state_read" => Some(work_state_read(app, caller, arguments).await),
        _ => None,
    }
}

async fn mem_search(app: &App, caller: &Caller, arguments: Value) -> Result<Answer, Failure> {
    let mut answer = search::mem_search(app, caller, arguments).await?;
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

async fn get_observations(app: &App, caller: &Caller, arguments: Value) -> Result<Answer, Failure> {
    let text = observations::render(app, caller, arguments).await?;
    Ok(Answer { text, data: None })
}

async fn get_tool_uses(app: &App, caller: &Caller, arguments: Value) -> Result<Answer, Failure> {
    let query = ToolUseQuery::from_arguments(arguments)?;
    let text = tool_uses::render(app, caller, query).await?;
    Ok(Answer { text, data: None })
}

async fn work_state_write(
    app: &App,
    caller: &Caller,
    arguments: Value,
    event_id: Option<Uuid>,
) -> Result<Answer, Failure> {
    let write = WorkWrite::from_arguments(arguments)?;
    let written = work_state::write(app, caller, write, event_id).await?;
    Ok(Answer {
        data: Some(json!({
            "id": written.id, "hlc": written.hlc, "list": written.list, "project": written.project,
            "holder": written.holder, "until": written.until,
        })),
        text: written.text,
    })
}

async fn work_state_read(app: &App, caller: &Caller, arguments: Value) -> Result<Answer, Failure> {
    let query = WorkQuery::from_arguments(arguments)?;
    let read = work_state::read(app, caller, &query).await?;
    Ok(Answer {
        data: Some(json!({"project": read.project, "hlc": read.hlc})),
        text: read.text,
    })
}

/// All tools, in the order of the contract's table.
pub fn list() -> Vec<Tool> {
    TOOLS.iter().map(Listed::tool).collect()
}

impl Listed {
    fn tool(&self) -> Tool {
        let Value::Object(schema) = (self.schema)() else {
            unreachable!("schemas are objects")
        };
        let mut tool = Tool::new(self.name, self.words, Arc::new(schema));
        tool.annotations = Some(
            ToolAnnotations::new()
                .read_only(self.is_read_only)
                .open_world(false),
        );
        if self.is_always_loaded {
            let mut meta = JsonObject::new();
            meta.insert("anthropic/alwaysLoad".to_owned(), Value::Bool(true));
            tool.meta = Some(MetaObject(meta));
        }
        tool
    }
}

fn mem_search_schema() -> Value {
    let count = |low: u32, high: u32, default: u32| json!({"type": "integer", "minimum": low, "maximum": high, "default": default});
    json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["guided"], "default": "guided"},
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

fn work_state_write_schema() -> Value {
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

fn work_state_read_schema() -> Value {
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

fn get_observations_schema() -> Value {
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

fn get_tool_uses_schema() -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c049_every_schema_is_one_that_all_hosts_accept() {
        for tool in list() {
            let schema = &tool.input_schema;
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            assert!(
                ["oneOf", "anyOf", "allOf"]
                    .iter()
                    .all(|key| !schema.contains_key(*key))
            );
            let properties = schema["properties"].as_object().expect("properties");
            for property in properties.values().filter(|p| p["type"] == "array") {
                assert!(property["items"]["type"].is_string(), "{property}");
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(
                tool.name.len() <= 48 && tool.name.chars().all(plain),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn the_core_list_costs_a_host_little() {
        let text = serde_json::to_string(&list()).expect("serialises");
        assert!(cairn_domain::bounds::est_tokens(&text) <= 2_500);
    }
}
