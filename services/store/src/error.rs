//! `StoreError`: what the store may answer instead of rows, and the one place where an SQLSTATE
//! gets its meaning.

use cairn_domain::quota::Quota;
use cairn_domain::work_state::Held;
use sqlx::error::DatabaseError;
use uuid::Uuid;

/// Why a call of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Postgres is away, full or shutting down. The same call may work later.
    #[error("the store is not available")]
    Unavailable,
    /// Too many writers of this tenant at once. Nothing was begun.
    #[error("too many writers of one tenant")]
    Crowded,
    /// The statement took too long.
    #[error("the store took too long")]
    Timeout,
    /// Another transaction was quicker with the same rows. Nothing was written; the whole
    /// transaction, begun anew, may work at once.
    #[error("lost a race with another transaction")]
    Raced,
    /// Somebody else holds the task. Nothing was written.
    #[error("{task} is held by {}", .held.holder)]
    Claimed {
        /// The task, on one line.
        task: String,
        /// The claim on it.
        held: Held,
    },
    /// Entries that would make an item larger than it may get, by their event ids. Nothing was
    /// written; without them the rest of the batch can be.
    #[error("{} entries are too much for their items", .0.len())]
    Overfull(Vec<Uuid>),
    /// The tenant would have more than it may. Nothing was written.
    #[error("over the quota {}", .quota.name())]
    OverQuota {
        /// Of what.
        quota: Quota,
        /// How much it may have; none if the setting cannot be read.
        limit: Option<i64>,
    },
    /// A text holds what no stored text can: U+0000. Nothing was written or found.
    #[error("a text that cannot be stored")]
    Unstorable,
    /// A rule of uniqueness forbids the write; the text names the rule.
    #[error("conflict with {0}")]
    Conflict(String),
    /// A stored value means nothing to this version.
    #[error("{table}.{column} of {id} holds a value of no meaning")]
    Inconsistent {
        /// Where it was read.
        table: &'static str,
        /// In which column.
        column: &'static str,
        /// In which row.
        id: String,
    },
    /// The database, or the role the server came as, is not one it may work with.
    #[error("{0}")]
    Refused(String),
    /// The store's own mistake.
    #[error("unexpected failure of the store")]
    Bug(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether the same call may work a little later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable | Self::Crowded | Self::Timeout | Self::Raced
        )
    }

    pub(crate) fn inconsistent(
        table: &'static str,
        column: &'static str,
        id: impl ToString,
    ) -> Self {
        Self::Inconsistent {
            table,
            column,
            id: id.to_string(),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let meant = match &error {
            sqlx::Error::Database(refusal) => of_sqlstate(refusal.as_ref()),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Some(Self::Unavailable),
            _ => None,
        };
        match meant {
            Some(known) => {
                // The variant keeps no cause, so the cause is told here, once.
                tracing::warn!(cause = %error, "{known}");
                known
            }
            None => Self::Bug(Box::new(error)),
        }
    }
}

/// The meaning of a refusal by the database; `None` if only a mistake of ours explains it.
fn of_sqlstate(refusal: &dyn DatabaseError) -> Option<StoreError> {
    let code = refusal.code()?;
    match code.as_ref() {
        // query_canceled, lock_not_available, idle_in_transaction_session_timeout
        "57014" | "55P03" | "25P03" => Some(StoreError::Timeout),
        "23505" => {
            let rule = refusal.constraint().unwrap_or("a unique rule");
            Some(StoreError::Conflict(rule.to_owned()))
        }
        // character_not_in_repertoire, untranslatable_character
        "22021" | "22P05" => Some(StoreError::Unstorable),
        // serialization_failure, deadlock_detected
        "40001" | "40P01" => Some(StoreError::Raced),
        // admin and crash shutdown, starting up
        "57P01" | "57P02" | "57P03" => Some(StoreError::Unavailable),
        // connection exceptions, insufficient resources
        other if other.starts_with("08") || other.starts_with("53") => {
            Some(StoreError::Unavailable)
        }
        _ => None,
    }
}
