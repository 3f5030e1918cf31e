//! Observations, summaries and prompts: their fields as sent, the records as read back.

mod list;
mod write;

pub use list::{
    FileAnswer, FileAsk, FileItem, FileQuery, ListAnswer, ListAsk, ListItem, ListQuery,
};
pub use write::{Given, ObservationAround, ObservationWrite, RecordPatch, RecordWritten};

use cairn_domain::Rejection;
use cairn_domain::bounds::{self, Bound, Oversize};
use cairn_domain::ids::ToolUseId;
use cairn_domain::limits;
use cairn_domain::observation::{Concept, ObservationDraft, ObservationType};
use cairn_domain::record::{Record as StoredRecord, RecordBody};
use cairn_domain::summary::SummaryDraft;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// An observation's own fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ObservationFields {
    /// One of the nine types; `discovery` if absent.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// At most 400 UTF-16 code units.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// At most 1,000 UTF-16 code units.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subtitle: String,
    /// At most 64 KiB.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub narrative: String,
    /// At most 50, of at most 2,000 UTF-16 code units each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Up to seven concepts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<String>,
    /// At most 200 paths, relative to the checkout root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_read: Vec<String>,
    /// At most 200 paths, relative to the checkout root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// What producing it cost, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_tokens: Option<u32>,
    /// The tool uses it rests on, as `T118`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_uses: Vec<String>,
}

impl ObservationFields {
    /// Checks the fields and brings them within their limits.
    ///
    /// # Errors
    /// `invalid_field` for an unknown type or concept or, with [`Oversize::Refuse`], a text over
    /// its limit; `empty_record` if nothing is said.
    pub fn parse(self, oversize: Oversize) -> Result<ObservationDraft, Rejection> {
        let text = |pointer, value, bound| bounds::text(pointer, value, bound, oversize);
        let (files_read, files_read_more) =
            bounds::paths("/files_read", self.files_read, oversize)?;
        let (files_modified, files_modified_more) =
            bounds::paths("/files_modified", self.files_modified, oversize)?;
        let draft = ObservationDraft {
            kind: parse_type(self.kind.as_deref())?,
            title: text("/title", self.title, Bound::Units(limits::TITLE_UNITS))?,
            subtitle: text(
                "/subtitle",
                self.subtitle,
                Bound::Units(limits::SUBTITLE_UNITS),
            )?,
            narrative: text(
                "/narrative",
                self.narrative,
                Bound::Bytes(limits::TEXT_BYTES),
            )?,
            facts: parse_facts(self.facts, oversize)?,
            concepts: parse_concepts(&self.concepts)?,
            files_read,
            files_read_more,
            files_modified,
            files_modified_more,
            work_tokens: self.work_tokens.unwrap_or(0),
            tool_uses: parse_tool_uses(&self.tool_uses)?,
        };
        if draft.is_empty() {
            let detail = "an observation needs a title, a narrative, a fact or a concept";
            return Err(Rejection::EmptyRecord(detail));
        }
        Ok(draft)
    }
}

fn parse_type(name: Option<&str>) -> Result<ObservationType, Rejection> {
    let Some(name) = name else {
        return Ok(ObservationType::Discovery);
    };
    ObservationType::from_name(name).ok_or_else(|| {
        Rejection::invalid_field(
            "/type",
            one_of(ObservationType::ALL.map(ObservationType::name)),
        )
    })
}

fn parse_concepts(names: &[String]) -> Result<Vec<Concept>, Rejection> {
    let mut concepts = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let concept = Concept::from_name(name).ok_or_else(|| {
            let allowed = one_of(Concept::ALL.map(Concept::name));
            Rejection::invalid_field(format!("/concepts/{index}"), allowed)
        })?;
        if !concepts.contains(&concept) {
            concepts.push(concept);
        }
    }
    Ok(concepts)
}

fn parse_facts(facts: Vec<String>, oversize: Oversize) -> Result<Vec<String>, Rejection> {
    if facts.len() > limits::FACTS && oversize == Oversize::Refuse {
        return Err(Rejection::invalid_field(
            "/facts",
            format!("at most {}", limits::FACTS),
        ));
    }
    let bound = Bound::Units(limits::FACT_UNITS);
    let facts = facts.into_iter().take(limits::FACTS).enumerate();
    facts
        .map(|(index, fact)| bounds::text(&format!("/facts/{index}"), fact, bound, oversize))
        .collect()
}

fn parse_tool_uses(ids: &[String]) -> Result<Vec<i64>, Rejection> {
    let number = |(index, id): (usize, &String)| match id.parse::<ToolUseId>() {
        Ok(ToolUseId(number)) => Ok(number),
        Err(_) => Err(Rejection::invalid_field(
            format!("/tool_uses/{index}"),
            "an id like T118",
        )),
    };
    if ids.len() > limits::READ_IDS {
        let detail = format!("at most {} ids", limits::READ_IDS);
        return Err(Rejection::invalid_field("/tool_uses", detail));
    }
    ids.iter().enumerate().map(number).collect()
}

fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("one of {}", names.join(", "))
}

/// A summary's own fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SummaryFields {
    /// What was asked; at most 400 UTF-16 code units.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// What was looked into; at most 64 KiB, as the others.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub investigated: String,
    /// What was learned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub learned: String,
    /// What was done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub completed: String,
    /// What comes next.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_steps: String,
    /// Anything else.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl SummaryFields {
    /// Checks the fields and brings them within their limits.
    ///
    /// # Errors
    /// `invalid_field` for a text over its limit with [`Oversize::Refuse`]; `empty_record` if the
    /// first five fields say nothing.
    pub fn parse(self, oversize: Oversize) -> Result<SummaryDraft, Rejection> {
        let long = Bound::Bytes(limits::TEXT_BYTES);
        let text = |pointer, value, bound| bounds::text(pointer, value, bound, oversize);
        let draft = SummaryDraft {
            request: text("/request", self.request, Bound::Units(limits::TITLE_UNITS))?,
            investigated: text("/investigated", self.investigated, long)?,
            learned: text("/learned", self.learned, long)?,
            completed: text("/completed", self.completed, long)?,
            next_steps: text("/next_steps", self.next_steps, long)?,
            notes: text("/notes", self.notes, long)?,
        };
        if draft.is_empty() {
            let detail = "a summary needs one of its first five fields";
            return Err(Rejection::EmptyRecord(detail));
        }
        Ok(draft)
    }
}

/// A record as it is read back. Fields of other kinds are absent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// `41`, `S7` or `P3`.
    pub id: String,
    /// `observation`, `summary` or `prompt`.
    pub kind: String,
    /// The client's id of the event that made it.
    pub event_id: Uuid,
    /// The project's key.
    pub project: String,
    /// The project's display name.
    pub project_name: String,
    /// The host's id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The host, e.g. `claude-code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// When it arrived.
    #[serde(serialize_with = "crate::time::millis")]
    pub arrived_at: DateTime<Utc>,
    /// Its place in the tenant's order of changes.
    pub position: i64,
    /// `team` or `private`.
    pub visibility: String,
    /// What produced it.
    pub origin: String,
    /// The branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The fields of an observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<ObservationFields>,
    /// How many files were read beyond those of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_read_more: Option<u32>,
    /// How many files were modified beyond those of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_modified_more: Option<u32>,
    /// What reading an observation costs, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_tokens: Option<u32>,
    /// The fields of a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryFields>,
    /// What was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of a prompt in its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
}

impl Record {
    /// The record for a caller who may not read tool uses.
    #[must_use]
    pub fn without_evidence(mut self) -> Self {
        if let Some(observation) = &mut self.observation {
            observation.tool_uses.clear();
        }
        self
    }
}

impl From<StoredRecord> for Record {
    fn from(record: StoredRecord) -> Self {
        let mut sent = Self {
            id: record.row.id.to_string(),
            kind: record.row.id.kind.word().to_owned(),
            event_id: record.event_id,
            project: record.row.project.key,
            project_name: record.row.project.name,
            session: record.session,
            host: record.host,
            author: record.row.author,
            at: record.row.at,
            arrived_at: record.arrived_at,
            position: record.position,
            visibility: record.visibility.name().to_owned(),
            origin: record.origin,
            branch: record.branch,
            observation: None,
            files_read_more: None,
            files_modified_more: None,
            read_tokens: None,
            summary: None,
            text: None,
            number: None,
        };
        match record.body {
            RecordBody::Observation(body) => {
                sent.read_tokens = Some(body.read_tokens);
                sent.files_read_more = Some(body.files_read_more).filter(|more| *more > 0);
                sent.files_modified_more = Some(body.files_modified_more).filter(|more| *more > 0);
                sent.observation = Some(ObservationFields {
                    kind: record.row.kind.map(|kind| kind.name().to_owned()),
                    title: record.row.title,
                    subtitle: body.subtitle,
                    narrative: body.narrative,
                    facts: body.facts,
                    concepts: body.concepts.iter().map(|c| c.name().to_owned()).collect(),
                    files_read: body.files_read,
                    files_modified: body.files_modified,
                    work_tokens: Some(body.work_tokens),
                    tool_uses: body.tool_uses.iter().map(ToString::to_string).collect(),
                });
            }
            RecordBody::Summary(body) => {
                sent.summary = Some(SummaryFields {
                    request: body.request,
                    investigated: body.investigated,
                    learned: body.learned,
                    completed: body.completed,
                    next_steps: body.next_steps,
                    notes: body.notes,
                });
            }
            RecordBody::Prompt { text, number } => {
                sent.text = Some(text);
                sent.number = Some(number);
            }
        }
        sent
    }
}

/// Asks for several records.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RecordBatch {
    /// At most 100 of `41`, `S7`, `P3`.
    pub ids: Vec<String>,
    /// Id, key or name of a project that confines the answer.
    #[serde(default)]
    pub project: Option<String>,
    /// `given` (default), `date_asc` or `date_desc`.
    #[serde(default)]
    pub order: Option<String>,
}

/// In which order records are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordOrder {
    /// As they were asked for.
    #[default]
    Given,
    /// The oldest first.
    DateAscending,
    /// The newest first.
    DateDescending,
}

impl RecordOrder {
    /// Reads the word for an order.
    ///
    /// # Errors
    /// `invalid_field` for any other word.
    pub fn parse(word: Option<&str>) -> Result<Self, Rejection> {
        match word.unwrap_or("given") {
            "given" => Ok(Self::Given),
            "date_asc" => Ok(Self::DateAscending),
            "date_desc" => Ok(Self::DateDescending),
            _ => Err(Rejection::invalid_field(
                "/order",
                "given, date_asc or date_desc",
            )),
        }
    }
}

impl RecordBatch {
    /// The ids, repeats collapsed.
    ///
    /// # Errors
    /// `invalid_field` for more than 100, or for what is no id.
    pub fn parse(&self) -> Result<Vec<cairn_domain::ids::RecordId>, Rejection> {
        if self.ids.is_empty() || self.ids.len() > limits::READ_IDS {
            let detail = format!("1 to {} ids", limits::READ_IDS);
            return Err(Rejection::invalid_field("/ids", detail));
        }
        let mut ids = Vec::with_capacity(self.ids.len());
        for (index, text) in self.ids.iter().enumerate() {
            let id = text.parse().map_err(|_| {
                Rejection::invalid_field(format!("/ids/{index}"), "an id like 41, S7 or P3")
            })?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

/// Several records.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecordBatchAnswer {
    /// Those the caller may read, in the order asked.
    pub items: Vec<Record>,
    /// The ids of the others.
    pub missing: Vec<String>,
}
