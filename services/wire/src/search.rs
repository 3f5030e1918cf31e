//! Search: the arguments of `mem_search` and the answer of each step (contract 7); the search with
//! filters and pages beside it (contract 10).

mod answer;
mod find;

pub use answer::{SearchAnswer, SearchItem, SearchTotal};
pub use find::{FindAsk, SearchBody, SearchQuery};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The arguments of one call. Numbers may come as digits in a string, lists as a JSON string or
/// a single value.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MemSearch {
    /// `guided` (default): three steps, you choose; `auto`: all in one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Starts a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Id, key or name of a project; `*` for all; the current one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The continuation that the step before printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<String>,
    /// Ids that the step before showed; `[]` ends the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub selected_ids: Option<Value>,
    /// Rows of the index: 1 to 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub limit: Option<Value>,
    /// Ids that a step accepts: 1 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub max_details: Option<Value>,
    /// Rows before each hit: 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub depth_before: Option<Value>,
    /// Rows after each hit: 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub depth_after: Option<Value>,
}

/// What a step answers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemSearchAnswer {
    /// 1, 2 or 3.
    pub step: u8,
    /// `index`, `context` or `selected details`.
    pub phase: String,
    /// `continue` if a step can follow, else `complete`.
    pub status: String,
    /// Why a search ended, or what is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether older matches were not looked at, because the words are common.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The rows of steps 1 and 2: the only ids the next step accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<SearchRow>,
    /// The records of step 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<SearchDetail>,
    /// The name of the next step's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<String>,
    /// When the search ends for good.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::time::optional_millis"
    )]
    pub expires_at: Option<chrono::DateTime<chrono::Utc>>,
    /// The step as a model reads it.
    pub text: String,
}

/// One record of the last step, within the limits of its text. `GET /v1/observations/{id}` and its
/// kin give it whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchDetail {
    /// What a list shows of it.
    #[serde(flatten)]
    pub row: SearchRow,
    /// The record as a model reads it, at most 8 KiB.
    pub text: String,
}

/// One row of an index or a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchRow {
    /// `41`, `S7` or `P3`.
    pub id: String,
    /// `observation`, `summary` or `prompt`.
    pub kind: String,
    /// One line.
    pub title: String,
    /// The type of an observation.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub observation_type: Option<String>,
    /// The project's key.
    pub project: String,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: chrono::DateTime<chrono::Utc>,
}
