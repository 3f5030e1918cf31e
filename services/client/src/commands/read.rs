//! Reading memory: what the tools of an agent show, for people.

use cairn_wire::context::ContextQuery;
use cairn_wire::domain::ids::{RecordId, RecordKind};
use cairn_wire::observations::{ObservationFields, Record, SummaryFields};
use cairn_wire::search::MemSearch;
use serde::Deserialize;
use serde_json::Value;

use super::{Client, say};
use crate::api;
use crate::cli::Search;
use crate::exit::Failure;

/// Prints the context of this folder's project.
pub fn context(client: &Client) -> Result<(), Failure> {
    let api = client.api()?;
    let query = ContextQuery {
        budget: Some(client.settings.context_limit),
        ..client.settings.context.clone()
    };
    say(&api::block_on(api.context(&query))?.text);
    Ok(())
}

/// The part of a search's answer that is printed.
#[derive(Deserialize)]
struct Step {
    text: String,
    #[serde(default)]
    continuation: Option<String>,
}

/// One step of a guided search.
pub fn search(client: &Client, what: Search) -> Result<(), Failure> {
    let api = client.api()?;
    let selected = || what.select.into_iter().map(Value::String).collect();
    let call = MemSearch {
        query: Some(what.query.join(" ")).filter(|query| !query.is_empty()),
        selected_ids: what.cursor.is_some().then(selected).map(Value::Array),
        continuation: what.cursor,
        project: what.project,
        limit: what.limit.map(Value::from),
        ..MemSearch::default()
    };
    let body = serde_json::to_vec(&call).expect("texts serialise");
    let answer: Step = api::block_on(api.json(api.post("/v1/mem-search", body)))?;
    say(&answer.text);
    if let Some(cursor) = &answer.continuation {
        say(&format!(
            "\nHere: cairn search --continue {cursor} --select <ids>"
        ));
    }
    Ok(())
}

/// Prints one record.
pub fn show(client: &Client, id: &str) -> Result<(), Failure> {
    let id: RecordId = id.parse().map_err(|_| {
        Failure::Usage(format!(
            "{id:?} is no id: give a number, S and a number, or P and a number"
        ))
    })?;
    let noun = match id.kind {
        RecordKind::Observation => "observations",
        RecordKind::Summary => "summaries",
        RecordKind::Prompt => "prompts",
    };
    let api = client.api()?;
    let number = id.number;
    let record: Record = api::block_on(api.json(api.get(&format!("/v1/{noun}/{number}"))))?;
    say(&render(&record));
    Ok(())
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
