//! What a search with filters and pages answers (contract 10.3).

use cairn_domain::limits;
use cairn_domain::listing::Listed;
use cairn_domain::search::pages::Total;
use cairn_domain::tool_use::ListedToolUse;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of results.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SearchAnswer {
    /// The results, in the order asked for. By relevance the best 300 come first, the others
    /// after them, newest first.
    pub items: Vec<SearchItem>,
    /// `all` if each holds every word of the query, `any` if nothing holds them all. Words that
    /// say too little, such as `the`, do not count; `relaxed` is reserved.
    #[serde(rename = "match")]
    pub matched: String,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// How many results there were at the first page.
    pub total: SearchTotal,
    /// Whether the newest records alone were looked at, because all would have taken too long; of
    /// tool uses, whether there are more than are looked through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// A number up to 1,000, else `1000+`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum SearchTotal {
    /// So many.
    Exactly(u32),
    /// `1000+`.
    More(String),
}

impl From<Total> for SearchTotal {
    fn from(total: Total) -> Self {
        match total {
            Total::Exactly(count) => Self::Exactly(count),
            Total::More => Self::More(format!("{}+", limits::COUNTED)),
        }
    }
}

/// One result. `GET /v1/observations/{id}` and its kin give it whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchItem {
    /// `41`, `S7`, `P3` or `T118`.
    pub id: String,
    /// `observation`, `summary`, `prompt` or `tool_use`.
    pub kind: String,
    /// One line; of a tool use the tool's name.
    pub title: String,
    /// An observation's second line.
    pub subtitle: String,
    /// The type of an observation.
    #[serde(rename = "type")]
    pub observation_type: Option<String>,
    /// An observation's concepts.
    pub concepts: Vec<String>,
    /// The project's key.
    pub project: String,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// How well it answers, only comparable within one answer; null for what was not ranked.
    pub score: Option<f64>,
    /// What reading an observation costs, in tokens.
    pub read_tokens: Option<u32>,
    /// Files that an observation changed, then those that it read, at most 12.
    pub files: Vec<String>,
    /// The host's id of the session that made a tool use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl From<ListedToolUse> for SearchItem {
    fn from(listed: ListedToolUse) -> Self {
        Self {
            id: listed.id.to_string(),
            kind: "tool_use".to_owned(),
            title: listed.tool,
            subtitle: String::new(),
            observation_type: None,
            concepts: Vec::new(),
            project: listed.project,
            author: listed.author,
            at: listed.at,
            score: None,
            read_tokens: None,
            files: Vec::new(),
            session: Some(listed.session),
        }
    }
}

impl SearchItem {
    /// A result with its score.
    #[must_use]
    pub fn new(listed: Listed, score: Option<f64>) -> Self {
        let row = listed.row;
        let concepts = listed.concepts.iter();
        Self {
            id: row.id.to_string(),
            kind: row.id.kind.word().to_owned(),
            title: row.title,
            subtitle: listed.subtitle,
            observation_type: row.kind.map(|kind| kind.name().to_owned()),
            concepts: concepts.map(|concept| concept.name().to_owned()).collect(),
            project: row.project.key,
            author: row.author,
            at: row.at,
            score,
            read_tokens: row.kind.map(|_| listed.read_tokens),
            files: listed.files,
            session: None,
        }
    }
}
