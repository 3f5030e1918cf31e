//! Redaction of what is stored: rows that have passed older patterns, or none, are read again,
//! batch by batch, while the service serves (contract 4.5). What changes is rewritten with all that
//! was derived from it, in one transaction, and takes a position.

mod names;
mod records;
mod tool_uses;
mod work;

use cairn_domain::redact::VERSION;
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::{StoreError, TenantTx};

/// What is read again, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Observations, summaries and prompts.
    Records,
    /// Tool uses.
    ToolUses,
    /// Entries of work lists, and what the lists say.
    WorkEntries,
    /// Sessions: what was said last, and names. They keep no version: all are read.
    Sessions,
    /// Projects: keys and names. They keep no version either.
    Projects,
    /// Jobs: what they were told. They keep no version either.
    Jobs,
}

impl Shelf {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Records,
        Self::ToolUses,
        Self::WorkEntries,
        Self::Sessions,
        Self::Projects,
        Self::Jobs,
    ];

    /// Its word in the audit log and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::ToolUses => "tool uses",
            Self::WorkEntries => "work entries",
            Self::Sessions => "sessions",
            Self::Projects => "projects",
            Self::Jobs => "jobs",
        }
    }
}

/// Which rows are read again.
#[derive(Clone, Copy, Debug)]
pub struct Rescan {
    /// Of what.
    pub shelf: Shelf,
    /// Those after this one; the first ones if none.
    pub after: Option<RowKey>,
    /// At most so many.
    pub most: u32,
    /// Those of the present version too, as patterns that an installation adds have none.
    pub all: bool,
    /// The present moment, for the audit log.
    pub now: DateTime<Utc>,
}

/// A row's place in the order in which rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey(i16, i64);

impl RowKey {
    /// Before all rows.
    const FIRST: Self = Self(-1, i64::MIN);
}

/// What a batch came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescanned {
    /// Rows that were read.
    pub seen: u64,
    /// Rows among them that held a secret.
    pub changed: u64,
    /// The last of them; none if there were none: then the shelf is done.
    pub last: Option<RowKey>,
}

impl Rescan {
    fn after(&self) -> RowKey {
        self.after.unwrap_or(RowKey::FIRST)
    }

    /// Rows below this version are read.
    fn below(&self) -> i16 {
        if self.all { i16::MAX } else { VERSION }
    }
}

impl TenantTx {
    /// Reads a batch of stored rows again and takes out what must not be kept. To be repeated with
    /// the last key until there are no more; one that is broken off is taken up anywhere. What was
    /// changed stands in the audit log by its count.
    ///
    /// # Errors
    /// `Raced` if another transaction was quicker: try the same batch again. As any call of the
    /// store.
    pub async fn redact_stored(&mut self, rescan: Rescan) -> Result<Rescanned, StoreError> {
        let done = match rescan.shelf {
            Shelf::Records => self.redact_records(&rescan).await?,
            Shelf::ToolUses => self.redact_tool_uses(&rescan).await?,
            Shelf::WorkEntries => self.redact_work_entries(&rescan).await?,
            Shelf::Sessions => self.redact_sessions(&rescan).await?,
            Shelf::Projects => self.redact_projects(&rescan).await?,
            Shelf::Jobs => self.redact_jobs(&rescan).await?,
        };
        if done.changed > 0 {
            let detail = json!({"version": VERSION, "seen": done.seen, "changed": done.changed});
            self.append_audit(None, "redact", rescan.shelf.name(), detail, rescan.now)
                .await?;
        }
        Ok(done)
    }
}
