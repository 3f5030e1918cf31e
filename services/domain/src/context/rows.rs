//! The rows a context is made of, as the store hands them over.

use chrono::{DateTime, Utc};

use crate::observation::{Concept, ObservationType};
use crate::summary::SummaryDraft;

/// Which rows a context wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The newest observations, at most.
    pub observations: u32,
    /// The newest summaries, at most.
    pub summaries: u32,
    /// The newest observations that come with narrative and facts.
    pub full: u32,
    /// Observations of these types only; empty for all.
    pub types: Vec<ObservationType>,
    /// Observations with one of these concepts only; empty for all.
    pub concepts: Vec<Concept>,
    /// Leave out what subagents did.
    pub main_agent_only: bool,
}

/// An observation as the context shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextObservation {
    /// Its number in the tenant.
    pub number: i64,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// Its type.
    pub kind: ObservationType,
    /// Its title; may be empty.
    pub title: String,
    /// Its narrative, read only for rows that may be shown in full.
    pub narrative: Option<String>,
    /// Its facts, read only for rows that may be shown in full.
    pub facts: Option<Vec<String>>,
    /// What reading it costs, in tokens.
    pub read_tokens: u32,
    /// What producing it cost, in tokens.
    pub work_tokens: u32,
    /// Its author's handle, or `key:<key id>`.
    pub author: String,
}

/// A summary as the context shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextSummary {
    /// Its number in the tenant.
    pub number: i64,
    /// When it was made.
    pub at: DateTime<Utc>,
    /// When its session began; an older summary stands there.
    pub session_started_at: DateTime<Utc>,
    /// What it says.
    pub fields: SummaryDraft,
}

/// All rows of one context, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextRows {
    /// The newest observations the reader may read.
    pub observations: Vec<ContextObservation>,
    /// The newest summaries the reader may read.
    pub summaries: Vec<ContextSummary>,
    /// What the agent said last in the reader's own previous session, if it is asked for.
    pub last_reply: Option<String>,
}

/// What a project's memory comes to, for the overview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextTotals {
    /// Observations that the reader may read.
    pub observations: u64,
    /// Sessions that they come from.
    pub sessions: u64,
    /// Tokens to read them all.
    pub read_tokens: u64,
}

/// A row of the table by file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The observation.
    pub observation: ContextObservation,
    /// The file it is listed under: the first one it changed, else read.
    pub file: Option<String>,
}
