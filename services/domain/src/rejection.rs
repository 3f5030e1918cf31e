//! All a caller can get wrong. Each variant has one stable code of the contract's section 17;
//! what it looks like on the wire is the business of the `wire` crate.

use chrono::{DateTime, Utc};

use crate::quota::Quota;
use crate::scope::Scope;

/// A refusal caused by the caller. The text of each is its `detail` on the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A field of a body is missing, of the wrong kind, or out of bounds.
    #[error("{detail}")]
    InvalidField {
        /// JSON pointer to the field.
        pointer: String,
        /// What is allowed.
        detail: String,
    },
    /// An argument of a search is out of bounds.
    #[error("{argument}: {allowed}.")]
    InvalidInput {
        /// The argument's name.
        argument: String,
        /// What is allowed.
        allowed: String,
    },
    /// A record says nothing.
    #[error("{0}")]
    EmptyRecord(&'static str),
    /// An item of a kind that this version does not know.
    #[error("kind {0:?} needs a newer service")]
    UnsupportedKind(String),
    /// The event id belongs to somebody else's event.
    #[error("this event id is already in use")]
    EventIdReused,
    /// A continued search lacks its selection, or has too many ids.
    #[error("Give selectedIds: 1 to {max} ids of the step before, or [] to stop.")]
    SelectionRequired {
        /// How many ids the search allows.
        max: u32,
    },
    /// A selected id was not disclosed by the step before.
    #[error("{id} was not shown by the step before.")]
    NotDisclosed {
        /// The id as the caller gave it.
        id: String,
    },
    /// A prompt was selected where only full records are shown.
    #[error("{id} is context only.")]
    ContextOnly {
        /// The id as the caller gave it.
        id: String,
    },
    /// The cursor is not one of this caller's searches.
    #[error("This continuation is unknown; start again with query.")]
    InvalidContinuation,
    /// The search is over its time.
    #[error("This search is older than 15 minutes; start again with query.")]
    ExpiredContinuation,
    /// A condition of the search was sent again with another value.
    #[error("{argument} differs from the search's; leave it out or start again.")]
    ScopeChanged {
        /// The argument that differs.
        argument: &'static str,
    },
    /// Not even one row fits the answer.
    #[error("The result does not fit; ask for fewer records.")]
    ResponseTooLarge,
    /// No current project and none named.
    #[error("name a project: argument project, header Cairn-Project, or a project-limited key")]
    ProjectRequired,
    /// A name fits several projects.
    #[error("{name:?} fits several projects; use one of their keys")]
    AmbiguousProject {
        /// The name as given.
        name: String,
        /// The keys of the projects it fits.
        candidates: Vec<String>,
    },
    /// Missing, or not the caller's to see.
    #[error("not found")]
    NotFound,
    /// The credential lacks a scope.
    #[error("this needs the scope {0}")]
    InsufficientScope(Scope),
    /// Somebody else holds the task.
    #[error("{task} is held by {holder} until {} UTC.", .until.format("%H:%M"))]
    Claimed {
        /// The task.
        task: String,
        /// Who holds it, as printed: `lin#7c1e`.
        holder: String,
        /// When the lease ends.
        until: DateTime<Utc>,
    },
    /// A page's cursor is forged or of another list.
    #[error("this page is unknown; start with the first")]
    InvalidCursor,
    /// A position that the tenant has not reached, or of another life of its database.
    #[error("this position is unknown here; start again from 0")]
    PositionUnknown,
    /// A search for nothing in particular.
    #[error("give a query or a filter")]
    QueryOrFilterRequired,
    /// The state of an object does not allow the call.
    #[error("{0}")]
    Conflict(String),
    /// The tenant has, or would have, more than it may.
    #[error("{}", over_quota(*.quota, *.limit))]
    QuotaExceeded {
        /// Of what.
        quota: Quota,
        /// How much it may have; none if the setting cannot be read.
        limit: Option<i64>,
    },
}

impl Rejection {
    /// An argument of a search that breaks its rule.
    #[must_use]
    pub fn invalid_input(argument: &str, allowed: &str) -> Self {
        Self::InvalidInput {
            argument: argument.to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    /// A field of a body that breaks its rule; `pointer` is relative to the object at hand.
    #[must_use]
    pub fn invalid_field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::InvalidField {
            pointer: pointer.into(),
            detail: detail.into(),
        }
    }

    /// The same refusal seen from an enclosing document: pointers get `prefix` in front.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        match self {
            Self::InvalidField { pointer, detail } => Self::InvalidField {
                pointer: format!("{prefix}{pointer}"),
                detail,
            },
            other => other,
        }
    }

    /// The stable code of the contract.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidField { .. } => "invalid_field",
            Self::InvalidInput { .. } => "invalid_input",
            Self::EmptyRecord(_) => "empty_record",
            Self::UnsupportedKind(_) => "unsupported_kind",
            Self::EventIdReused => "event_id_reused",
            Self::SelectionRequired { .. } => "selection_required",
            Self::NotDisclosed { .. } | Self::ContextOnly { .. } => "invalid_selection",
            Self::InvalidContinuation => "invalid_continuation",
            Self::ExpiredContinuation => "expired_continuation",
            Self::ScopeChanged { .. } => "scope_changed",
            Self::ResponseTooLarge => "response_too_large",
            Self::ProjectRequired => "project_required",
            Self::AmbiguousProject { .. } => "ambiguous_project",
            Self::NotFound => "not_found",
            Self::InsufficientScope(_) => "insufficient_scope",
            Self::Claimed { .. } => "claimed",
            Self::InvalidCursor => "invalid_cursor",
            Self::PositionUnknown => "position_unknown",
            Self::QueryOrFilterRequired => "query_or_filter_required",
            Self::Conflict(_) => "conflict",
            Self::QuotaExceeded { .. } => "quota_exceeded",
        }
    }
}

fn over_quota(quota: Quota, limit: Option<i64>) -> String {
    let name = quota.name();
    match limit {
        Some(limit) => format!("this would pass the team's quota {name} of {limit}"),
        None => format!("the team's quota {name} cannot be read; nothing is stored until it can"),
    }
}
