//! Observations as tools: storing one, reading some by their ids.

use cairn_domain::event::Visibility;
use cairn_domain::limits;
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::plain::one_line;
use cairn_wire::observations::ObservationWrite;
use serde_json::{Value, json};

use super::Call;
use crate::actions::{Failure, observations};
use crate::mcp::answer::Answer;

pub(super) async fn get(call: Call<'_>) -> Result<Answer, Failure> {
    let text = observations::render(call.app, call.caller, call.arguments).await?;
    Ok(Answer { text, data: None })
}

pub(super) async fn save(mut call: Call<'_>) -> Result<Answer, Failure> {
    let write = ObservationWrite::from_memory(call.arguments.take())?;
    add(call, write).await
}

pub(super) async fn add_observation(mut call: Call<'_>) -> Result<Answer, Failure> {
    let write = ObservationWrite::from_arguments(call.arguments.take())?;
    add(call, write).await
}

async fn add(call: Call<'_>, write: ObservationWrite) -> Result<Answer, Failure> {
    let added = observations::add(call.app, call.caller, write, call.event_id).await?;
    let (record, row) = (&added.record, &added.record.row);
    let mut text = format!(
        "Stored as {} ({}): {}",
        row.id,
        one_line(&row.project.name),
        one_line(&row.title)
    );
    if record.visibility == Visibility::Private {
        text.push_str("\nOnly you can read it.");
    }
    if added.event_id_reused {
        text.push_str("\nThis event id was stored before; what differs now was not added.");
    }
    let data = json!({
        "id": row.id.to_string(), "project": row.project.key, "title": one_line(&row.title),
        "visibility": record.visibility.name(), "position": record.position,
    });
    Ok(Answer {
        text,
        data: Some(data),
    })
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

pub(super) fn save_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "title": {"type": "string", "description": "Default: the head of text."},
            "type": kind(),
            "concepts": concepts(),
            "project": {"type": "string"},
            "visibility": visibility()
        },
        "required": ["text"],
        "additionalProperties": false
    })
}

pub(super) fn add_schema() -> Value {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "type": kind(),
            "title": {"type": "string", "maxLength": limits::TITLE_UNITS},
            "subtitle": text(),
            "narrative": text(),
            "text": {"type": "string", "description": "In place of narrative; its head is the default title."},
            "facts": texts(),
            "concepts": concepts(),
            "files_read": texts(),
            "files_modified": texts(),
            "work_tokens": {"type": "integer", "minimum": 0},
            "tool_uses": {"type": "array", "items": {"type": "string"}, "description": "Ids like T118."},
            "project": text(),
            "visibility": visibility()
        },
        "additionalProperties": false
    })
}

fn kind() -> Value {
    let names = ObservationType::ALL.map(ObservationType::name);
    json!({"type": "string", "enum": names, "default": ObservationType::Discovery.name()})
}

fn concepts() -> Value {
    let names = Concept::ALL.map(Concept::name);
    json!({"type": "array", "items": {"type": "string", "enum": names}})
}

fn visibility() -> Value {
    let names = [Visibility::Team, Visibility::Private].map(Visibility::name);
    json!({"type": "string", "enum": names})
}
