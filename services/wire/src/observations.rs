//! Observations, summaries and prompts: their fields as sent, the records as read back.

mod list;
mod record;
mod write;

pub use list::{
    FileAnswer, FileAsk, FileItem, FileQuery, ListAnswer, ListAsk, ListItem, ListQuery,
};
pub use record::{Record, RecordBatch, RecordBatchAnswer, RecordOrder};
pub use write::{Given, ObservationAround, ObservationWrite, RecordPatch, RecordWritten};

use cairn_domain::Rejection;
use cairn_domain::bounds::{self, Bound, Oversize};
use cairn_domain::ids::ToolUseId;
use cairn_domain::limits;
use cairn_domain::observation::{Concept, ObservationDraft, ObservationType};
use cairn_domain::summary::SummaryDraft;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
