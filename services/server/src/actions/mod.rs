//! Actions: what a caller can do, one file each. HTTP and MCP are two doors to them.

pub mod context;
pub mod events;
pub mod observations;
pub mod projects;
pub mod search;

use cairn_domain::Rejection;
use cairn_store::StoreError;
use cairn_store::continuations::ContinuationError;
use cairn_wire::{Code, Problem};

/// Seconds after which an unavailable store is worth another try.
const RETRY_SECONDS: u32 = 2;

/// Why an action did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The caller is at fault.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The caller is at fault in a way that only this edge knows.
    #[error("{0:?}")]
    Problem(Box<Problem>),
    /// Postgres did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The continuation store did not do it.
    #[error(transparent)]
    Continuations(#[from] ContinuationError),
    /// A fault of ours.
    #[error("{0}")]
    Fault(String),
}

impl Failure {
    /// A fault of ours.
    pub fn fault(cause: impl Into<String>) -> Self {
        Self::Fault(cause.into())
    }

    /// What the caller is told.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Rejected(rejection) => rejection.into(),
            Self::Problem(problem) => *problem,
            Self::Store(StoreError::Crowded) => {
                Problem::fault(Code::Overloaded).retry_after(RETRY_SECONDS)
            }
            Self::Store(StoreError::Unavailable | StoreError::Timeout | StoreError::Raced)
            | Self::Continuations(ContinuationError::Unavailable(_)) => {
                Problem::fault(Code::StoreUnavailable).retry_after(RETRY_SECONDS)
            }
            // Trying again would meet the same: these are ours to mend.
            Self::Store(
                StoreError::Conflict(_)
                | StoreError::Inconsistent { .. }
                | StoreError::Refused(_)
                | StoreError::Bug(_),
            )
            | Self::Continuations(
                ContinuationError::TooLarge(_)
                | ContinuationError::Scope(_)
                | ContinuationError::Address(_),
            )
            | Self::Fault(_) => Problem::fault(Code::Internal),
        }
    }

    /// What the log is told, if it is not the caller's fault.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Rejected(_) | Self::Problem(_) => None,
            Self::Store(error) => Some(format!("{error:?}")),
            Self::Continuations(error) => Some(format!("{error:?}")),
            Self::Fault(cause) => Some(cause.clone()),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}
