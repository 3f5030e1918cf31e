//! Context: what a session start asks for and gets.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The question of `GET /v1/context`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ContextQuery {
    /// Id, key or name of a project; the current project if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The reader's time zone, an IANA name; `UTC` if absent or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
}

/// The context with its sizes, for a caller that accepts JSON.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ContextAnswer {
    /// The text a session starts with.
    pub text: String,
    /// Its length in UTF-16 code units.
    pub units: usize,
    /// Its cost in tokens, estimated.
    pub est_tokens: usize,
}
