//! Rows of claude-mem as lines of an import. What is private stays on this machine.

use cairn_wire::domain::kind::Kind;
use cairn_wire::domain::observation::{Concept, ObservationType};
use cairn_wire::domain::wrapper_tags::{strip, strip_json};
use cairn_wire::export::{ExportLine, ToolUseLine};
use cairn_wire::observations::{ObservationFields, SummaryFields};
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::tables::Row;

/// The host of sessions that name none: the first that claude-mem knew.
const HOST: &str = "claude-code";
/// A project of rows that name none.
const NAMELESS: &str = "claude-mem";
/// Epochs below this are seconds: it is 1973 in milliseconds, and far off in seconds.
const MILLISECONDS: i64 = 100_000_000_000;

/// What the keys of projects are.
pub(super) struct Names {
    map: Vec<(String, String)>,
}

impl Names {
    pub const fn new(map: Vec<(String, String)>) -> Self {
        Self { map }
    }

    /// The key of a project, and its name.
    fn of(&self, name: &str) -> (String, Option<String>) {
        match self.map.iter().find(|(old, _)| old == name) {
            Some((_, key)) => (key.clone(), None),
            None => (format!("name:{name}"), Some(name.to_owned())),
        }
    }
}

/// What every line has.
fn line(row: &Row, names: &Names, kind: &str) -> ExportLine {
    let project = ["project", "own_project", "session_project"];
    let project = project.iter().find_map(|column| row.text(column));
    let (project, project_name) = names.of(project.as_deref().unwrap_or(NAMELESS));
    let session = row.text("session").or_else(|| row.text("content_session"));
    let host = row.text("session_host").or_else(|| row.text("host"));
    let host = match host.as_deref() {
        None | Some("claude") => HOST.to_owned(),
        Some(other) => other.to_owned(),
    };
    ExportLine {
        kind: kind.to_owned(),
        project,
        project_name,
        host: session.is_some().then_some(host),
        session,
        at: row.number("created").and_then(moment),
        agent_id: row.text("agent_id"),
        agent_type: row.text("agent_type"),
        ..ExportLine::default()
    }
}

fn moment(epoch: i64) -> Option<DateTime<Utc>> {
    let ms = match epoch < MILLISECONDS {
        true => epoch.checked_mul(1_000)?,
        false => epoch,
    };
    DateTime::from_timestamp_millis(ms).filter(|at| at.timestamp() > 0)
}

pub(super) fn session(row: &Row, names: &Names, _: Uuid) -> Option<ExportLine> {
    let line = line(row, names, "session");
    line.session.as_ref()?;
    Some(ExportLine {
        ended_at: row.number("ended").and_then(moment),
        agent_id: None,
        agent_type: None,
        ..line
    })
}

pub(super) fn observation(row: &Row, names: &Names, event_id: Uuid) -> Option<ExportLine> {
    let text = |column: &str| stripped(row.text(column));
    let kind = row.text("type").unwrap_or_default().to_lowercase();
    let kind = ObservationType::from_name(kind.trim()).unwrap_or(ObservationType::Discovery);
    let concepts = texts(row.text("concepts"));
    let concepts = concepts
        .iter()
        .filter_map(|name| Concept::from_name(name.trim()));
    let narrative = text("narrative");
    let fields = ObservationFields {
        kind: Some(kind.name().to_owned()),
        title: text("title"),
        subtitle: text("subtitle"),
        // The oldest versions have one text alone.
        narrative: match narrative.is_empty() {
            true => text("text"),
            false => narrative,
        },
        facts: kept(texts(row.text("facts"))),
        concepts: concepts.map(|concept| concept.name().to_owned()).collect(),
        files_read: texts(row.text("files_read")),
        files_modified: texts(row.text("files_modified")),
        work_tokens: row
            .number("work_tokens")
            .and_then(|tokens| u32::try_from(tokens).ok()),
        tool_uses: Vec::new(),
    };
    let says_nothing = fields.title.is_empty()
        && fields.narrative.is_empty()
        && fields.facts.is_empty()
        && fields.concepts.is_empty();
    (!says_nothing).then(|| ExportLine {
        id: Some(row.id().to_string()),
        event_id: Some(event_id),
        observation: Some(fields),
        ..line(row, names, Kind::Observation.name())
    })
}

pub(super) fn summary(row: &Row, names: &Names, event_id: Uuid) -> Option<ExportLine> {
    let text = |column: &str| stripped(row.text(column));
    let fields = SummaryFields {
        request: text("request"),
        investigated: text("investigated"),
        learned: text("learned"),
        completed: text("completed"),
        next_steps: text("next_steps"),
        notes: text("notes"),
    };
    let first = [
        &fields.request,
        &fields.investigated,
        &fields.learned,
        &fields.completed,
        &fields.next_steps,
    ];
    let says_nothing = first.iter().all(|text| text.is_empty());
    (!says_nothing).then(|| ExportLine {
        id: Some(format!("S{}", row.id())),
        event_id: Some(event_id),
        summary: Some(fields),
        ..line(row, names, Kind::Summary.name())
    })
}

pub(super) fn prompt(row: &Row, names: &Names, event_id: Uuid) -> Option<ExportLine> {
    let text = stripped(row.text("prompt"));
    let line = line(row, names, Kind::Prompt.name());
    // What is empty without its private passages was wholly private.
    (!text.is_empty() && line.session.is_some()).then(|| ExportLine {
        id: Some(format!("P{}", row.id())),
        event_id: Some(event_id),
        text: Some(text),
        number: row
            .number("number")
            .and_then(|number| i32::try_from(number).ok()),
        ..line
    })
}

pub(super) fn tool_use(row: &Row, names: &Names, event_id: Uuid) -> Option<ExportLine> {
    let tool = row.text("tool")?;
    let line = line(row, names, Kind::ToolUse.name());
    line.session.as_ref()?;
    // Some versions keep calls that were worked off, without what was in them.
    row.text("input").or_else(|| row.text("output"))?;
    let side = |column: &str| {
        let text = row.text(column).unwrap_or_default();
        strip_json(&text).into_owned()
    };
    Some(ExportLine {
        id: Some(format!("T{}", row.id())),
        event_id: Some(event_id),
        tool_use: Some(ToolUseLine {
            tool,
            host_tool_use_id: row.text("host_id"),
            input: side("input"),
            output: side("output"),
            turn: row
                .number("number")
                .and_then(|turn| i32::try_from(turn).ok()),
            ..ToolUseLine::default()
        }),
        ..line
    })
}

fn stripped(text: Option<String>) -> String {
    let text = text.unwrap_or_default();
    let kept = strip(&text);
    match kept.trim().is_empty() {
        true => String::new(),
        false => kept.into_owned(),
    }
}

/// A list of texts, which is kept as JSON; a text that is none stands for itself.
fn texts(stored: Option<String>) -> Vec<String> {
    let Some(stored) = stored else {
        return Vec::new();
    };
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    match serde_json::from_str(&stored) {
        Ok(Value::Array(values)) => values.into_iter().filter_map(text).collect(),
        Ok(value) => text(value).into_iter().collect(),
        Err(_) => vec![stored],
    }
}

fn kept(facts: Vec<String>) -> Vec<String> {
    let facts = facts.into_iter().map(|fact| strip(&fact).into_owned());
    facts.filter(|fact| !fact.is_empty()).collect()
}
