//! Actions: what a caller can do, one file each. HTTP and MCP are two doors to them.

pub mod audit;
pub mod changes;
pub mod context;
pub mod events;
pub mod export;
pub mod grants;
pub mod import;
pub mod keys;
pub mod members;
pub mod observations;
mod pages;
pub mod projects;
pub mod purge;
pub mod search;
pub mod sessions;
pub mod sign_in;
mod still;
pub mod tenant;
pub mod tenant_deletion;
pub mod timeline;
pub mod tool_uses;
pub mod usage;
pub mod work_state;

use std::sync::Arc;
use std::time::Duration;

use cairn_domain::Rejection;
use cairn_store::StoreError;
use cairn_store::continuations::ContinuationError;
use cairn_wire::{Code, Problem};

use crate::app::App;

/// How often a transaction is tried when another one was quicker.
const ATTEMPTS: u32 = 5;
/// The longest pause before the second try, in milliseconds; it doubles with each further one.
const PAUSE_MS: u64 = 20;
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

    /// The same failure for another one who waited for what failed.
    #[must_use]
    pub fn shared(self: Arc<Self>) -> Self {
        Arc::try_unwrap(self).unwrap_or_else(|shared| match &*shared {
            Self::Rejected(rejection) => Self::Rejected(rejection.clone()),
            Self::Problem(problem) => Self::Problem(problem.clone()),
            Self::Store(StoreError::Unavailable) => StoreError::Unavailable.into(),
            Self::Store(StoreError::Timeout) => StoreError::Timeout.into(),
            other => Self::Fault(format!("shared: {other}")),
        })
    }

    /// What the caller is told.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Rejected(rejection) => rejection.into(),
            Self::Problem(problem) => *problem,
            Self::Store(StoreError::Claimed { task, held }) => Rejection::Claimed {
                task,
                holder: held.holder,
                until: held.until,
            }
            .into(),
            Self::Store(StoreError::OverQuota { quota, limit }) => {
                Rejection::QuotaExceeded { quota, limit }.into()
            }
            Self::Store(StoreError::Overfull(_)) => {
                Rejection::invalid_field("/fields", events::too_much()).into()
            }
            Self::Store(StoreError::Unstorable) => {
                Rejection::invalid_field("", "no text holds U+0000").into()
            }
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
            Self::Rejected(_)
            | Self::Problem(_)
            | Self::Store(
                StoreError::Claimed { .. }
                | StoreError::Overfull(_)
                | StoreError::OverQuota { .. }
                | StoreError::Unstorable,
            ) => None,
            Self::Store(error) => Some(format!("{error:?}")),
            Self::Continuations(error) => Some(format!("{error:?}")),
            Self::Fault(cause) => Some(cause.clone()),
        }
    }
}

/// Counts a write that a quota refused.
fn note_quota(app: &App, failure: &Failure) {
    let Failure::Store(StoreError::OverQuota { quota, .. }) = failure else {
        return;
    };
    if app.guards.quota_refused.note(app.clock.now()) {
        tracing::info!(quota = quota.name(), "a write would have passed a quota");
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

/// The attempts at a transaction: one that lost a race with another is tried again as a whole,
/// and only such a one. What timed out once would keep others waiting a second time.
#[derive(Default)]
pub struct Attempts(u32);

impl Attempts {
    /// Whether to try once more after this failure; if so, once a pause is over.
    pub async fn go_on_after(&mut self, failure: &Failure) -> bool {
        self.0 += 1;
        let again = matches!(failure, Failure::Store(StoreError::Raced)) && self.0 < ATTEMPTS;
        if again {
            tracing::debug!(attempt = self.0, "tried again");
            tokio::time::sleep(pause(self.0)).await;
        }
        again
    }
}

/// A pause of random length, so that two transactions do not meet again.
fn pause(attempt: u32) -> Duration {
    #[expect(
        clippy::disallowed_methods,
        reason = "when a transaction is tried again shows in nothing that is stored"
    )]
    let part: f64 = rand::random();
    Duration::from_millis(PAUSE_MS << attempt.min(ATTEMPTS)).mul_f64(part)
}
