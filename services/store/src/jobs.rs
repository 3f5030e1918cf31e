//! The queue of background work. A job exists exactly when its cause was committed: it is put in
//! by the same transaction. Claiming and finishing are not here yet.

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Makes observations of one closed turn.
    Observe,
    /// Makes the summary of one ended session.
    Summarize,
}

impl JobKind {
    /// The word in rows. Stored: never change one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Summarize => "summarize",
        }
    }
}

/// A job about to be queued.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// What it does.
    pub kind: JobKind,
    /// What it needs to know.
    pub payload: Value,
    /// The session it is about.
    pub session: Option<Uuid>,
    /// The earliest moment it may run.
    pub run_after: DateTime<Utc>,
}

impl TenantTx {
    /// Queues a job.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn enqueue(&mut self, job: NewJob) -> Result<(), StoreError> {
        self.enqueue_all(&[job]).await
    }

    /// Queues jobs in the order given, by one statement.
    pub(crate) async fn enqueue_all(&mut self, jobs: &[NewJob]) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let kinds: Vec<&str> = jobs.iter().map(|job| job.kind.name()).collect();
        let payloads: Vec<&Value> = jobs.iter().map(|job| &job.payload).collect();
        let sessions: Vec<Option<Uuid>> = jobs.iter().map(|job| job.session).collect();
        let moments: Vec<DateTime<Utc>> = jobs.iter().map(|job| job.run_after).collect();
        sqlx::query(
            "insert into jobs (kind, payload, session_id, run_after, created_at)
             select u.kind, u.payload, s.session_id, u.run_after, u.run_after
             from unnest($2::text[], $3::jsonb[], $4::uuid[], $5::timestamptz[])
               with ordinality u (kind, payload, session, run_after, nth)
             left join sessions s on s.tenant_id = $1 and s.uid = u.session
             order by u.nth",
        )
        .bind(self.tenant.key())
        .bind(kinds)
        .bind(payloads)
        .bind(sessions)
        .bind(moments)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
