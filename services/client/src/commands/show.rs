//! Records by their ids, whole: observations, summaries, prompts, and the original tool calls.

use cairn_wire::Code;
use cairn_wire::domain::ids::{RecordId, ToolUseId};
use cairn_wire::domain::plain::continued;
use cairn_wire::observations::{ObservationFields, Record, RecordBatchAnswer, SummaryFields};
use cairn_wire::tool_uses::{ToolUse, ToolUseBatchAnswer};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Client, say};
use crate::api::{self, Api};
use crate::exit::Failure;
use crate::problem::Problem;

/// Prints records in the order of their ids. An id belongs to the team, so its project does not
/// matter.
pub fn show(client: &Client, ids: &[String]) -> Result<(), Failure> {
    let (calls, records) = sorted(ids)?;
    let api = client.api()?;
    let (records, calls) = api::block_on(async {
        let found: RecordBatchAnswer = read(&api, "/v1/observations/batch", &records).await?;
        let calls: ToolUseBatchAnswer = read(&api, "/v1/tool-uses/batch", &calls).await?;
        Ok((found.items, calls.items))
    })?;
    let records = records
        .iter()
        .map(|record| (record.id.clone(), render(record)));
    let calls = calls
        .iter()
        .map(|call| (call.id.clone(), render_call(call)));
    let texts: Vec<(String, String)> = records.chain(calls).collect();
    let (mut shown, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        let id = printed(id);
        match texts.iter().find(|(other, _)| *other == id) {
            Some((_, text)) => shown.push(text.as_str()),
            None => missing.push(id),
        }
    }
    if !shown.is_empty() {
        say(&shown.join("\n\n"));
    }
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let detail = format!("not found: {}", missing.join(", "));
            Err(Failure::of(Problem::new(Code::NotFound, detail)))
        }
    }
}

/// Ids of tool calls, and those of all other records, as the service knows them.
fn sorted(ids: &[String]) -> Result<(Vec<String>, Vec<String>), Failure> {
    let (mut calls, mut records) = (Vec::new(), Vec::new());
    for id in ids {
        let is_call = id.trim_start_matches('#').starts_with(['T', 't']);
        let is_id = match is_call {
            true => id.parse::<ToolUseId>().is_ok(),
            false => id.parse::<RecordId>().is_ok(),
        };
        if !is_id {
            return Err(Failure::Usage(format!(
                "{id:?} is no id: give a number, or S, P or T and a number"
            )));
        }
        if is_call { &mut calls } else { &mut records }.push(printed(id));
    }
    Ok((calls, records))
}

/// An id as it is printed.
fn printed(id: &str) -> String {
    id.trim().trim_start_matches('#').to_uppercase()
}

/// What is found of some ids; nothing is asked for none.
async fn read<T: DeserializeOwned>(api: &Api, path: &str, ids: &[String]) -> Result<T, Failure> {
    if ids.is_empty() {
        let nothing = json!({"items": [], "missing": []});
        return serde_json::from_value(nothing).map_err(|e| Failure::Failed(e.to_string()));
    }
    let batch = json!({"ids": ids, "project": "*"});
    api.json(api.post(path, batch.to_string().into_bytes()))
        .await
}

fn render(record: &Record) -> String {
    let mut lines = vec![format!(
        "[{}] {} of {}, by {}, {}",
        record.id,
        record.kind,
        record.project_name,
        record.author,
        cairn_wire::time::text(record.at)
    )];
    if record.visibility == "private" {
        lines.push("Private: nobody else can read it.".to_owned());
    }
    if let Some(observation) = &record.observation {
        lines.extend(observation_lines(observation));
    }
    if let Some(summary) = &record.summary {
        lines.extend(summary_lines(summary));
    }
    lines.extend(record.text.clone());
    lines.join("\n")
}

/// A call with what went in and what came out, set off from the margin.
fn render_call(call: &ToolUse) -> String {
    let mut lines = vec![format!(
        "[{}] {} of {}, by {}, {}",
        call.id,
        continued(&call.tool, 4),
        call.project_name,
        call.author,
        cairn_wire::time::text(call.at)
    )];
    lines.push(format!("Session: {}", call.session));
    if call.failed == Some(true) {
        lines.push("Failed: yes".to_owned());
    }
    if !call.altered.is_empty() {
        lines.push(format!("Altered: {}", call.altered.join(", ")));
    }
    for (name, text) in [("Input", &call.input), ("Output", &call.output)] {
        // A text is shown as it reads, anything else as it was.
        let plain = serde_json::from_str::<String>(text);
        let text = plain.as_ref().unwrap_or(text);
        lines.push(format!("{name}:\n    {}", continued(text.trim_end(), 4)));
    }
    lines.join("\n")
}

fn observation_lines(observation: &ObservationFields) -> Vec<String> {
    let facts = observation.facts.iter().map(|fact| ("Fact", fact.clone()));
    let fields = [
        ("Title", observation.title.clone()),
        ("Type", observation.kind.clone().unwrap_or_default()),
        ("Subtitle", observation.subtitle.clone()),
        ("Narrative", observation.narrative.clone()),
    ];
    let lists = [
        ("Concepts", observation.concepts.join(", ")),
        ("Files changed", observation.files_modified.join(", ")),
        ("Files read", observation.files_read.join(", ")),
        ("Tool uses", observation.tool_uses.join(", ")),
    ];
    labelled(fields.into_iter().chain(facts).chain(lists))
}

fn summary_lines(summary: &SummaryFields) -> Vec<String> {
    let fields = [
        ("Request", &summary.request),
        ("Investigated", &summary.investigated),
        ("Learned", &summary.learned),
        ("Completed", &summary.completed),
        ("Next steps", &summary.next_steps),
        ("Notes", &summary.notes),
    ];
    labelled(
        fields
            .into_iter()
            .map(|(label, text)| (label, text.clone())),
    )
}

fn labelled(fields: impl Iterator<Item = (&'static str, String)>) -> Vec<String> {
    let told = fields.filter(|(_, text)| !text.is_empty());
    told.map(|(label, text)| format!("{label}: {text}"))
        .collect()
}
