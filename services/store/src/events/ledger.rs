//! The ledger: which event ids were used, by whom, and what they made. It outlives the records.

use std::collections::HashMap;

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::ids::{PrincipalId, RecordId, ToolUseId};
use cairn_domain::project::ProjectSet;
use sqlx::FromRow;
use uuid::Uuid;

use super::plan::Plan;
use super::{EventBatch, EventOutcome, EventStatus, PreparedEvent};
use crate::{StoreError, TenantTx};

/// What the ledger says of an event.
#[derive(FromRow)]
pub(super) struct Known {
    event_id: Uuid,
    kind: i16,
    #[sqlx(rename = "author_id")]
    author: i32,
    project_id: i32,
    number: Option<i64>,
    digest: Vec<u8>,
    deleted: bool,
}

impl Known {
    /// The id of what the event made, as printed.
    pub fn id(&self) -> Option<String> {
        printed(self.kind, self.number?)
    }

    /// Whether an author who stands in these projects may know of the event.
    fn is_known_to(&self, author: PrincipalId, projects: &ProjectSet) -> bool {
        self.author == author.key && projects.contains(self.project_id)
    }

    /// What an author who asks for the event is told.
    pub fn status(&self, author: PrincipalId, projects: &ProjectSet) -> EventStatus {
        if !self.is_known_to(author, projects) {
            EventStatus::Unknown
        } else if self.deleted {
            EventStatus::Deleted
        } else {
            EventStatus::Stored { id: self.id() }
        }
    }

    /// What a repeat of the event is answered.
    pub fn outcome(&self, batch: &EventBatch<'_>, event: &PreparedEvent) -> EventOutcome {
        let mut authors = event.authors(batch);
        if !authors.any(|author| self.is_known_to(author, batch.projects)) {
            EventOutcome::ReusedByAnother
        } else if self.deleted {
            EventOutcome::Deleted
        } else {
            EventOutcome::Duplicate {
                id: self.id(),
                differs: self.digest != event.draft.digest,
            }
        }
    }
}

/// The number by which the ledger names a kind. Stored: never change one. The first three are
/// those of the record kinds.
pub(super) const fn kind_code(body: &EventBody) -> i16 {
    match body {
        EventBody::Observation(_) => 0,
        EventBody::Summary(_) => 1,
        EventBody::Prompt { .. } => 2,
        EventBody::ToolUse(_) => 3,
        EventBody::SessionStart { .. } => 4,
        EventBody::TurnEnd { .. } => 5,
        EventBody::SessionEnd { .. } => 6,
        EventBody::WorkEntry { .. } => 7,
    }
}

/// The id of a numbered thing as people see it; session events and work entries have none.
pub(super) fn printed(kind: i16, number: i64) -> Option<String> {
    match kind {
        0 => Some(RecordId::observation(number).to_string()),
        1 => Some(RecordId::summary(number).to_string()),
        2 => Some(RecordId::prompt(number).to_string()),
        3 => Some(ToolUseId(number).to_string()),
        _ => None,
    }
}

impl TenantTx {
    pub(super) async fn find_ledger_rows(
        &mut self,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Known>, StoreError> {
        let rows: Vec<Known> = sqlx::query_as(
            "select event_id, kind, author_id, project_id, number, digest, deleted from events
             where tenant_id = $1 and event_id = any($2)",
        )
        .bind(self.tenant.key())
        .bind(ids)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(|row| (row.event_id, row)).collect())
    }

    /// Enters events into the ledger, in the order of their ids so that two batches cannot lock
    /// each other out. `false` if another batch had entered one of them.
    pub(super) async fn append_ledger(
        &mut self,
        fresh: &[&EventDraft],
        plan: &Plan,
    ) -> Result<bool, StoreError> {
        let ids: Vec<Uuid> = fresh.iter().map(|draft| draft.event_id).collect();
        let kinds: Vec<i16> = fresh.iter().map(|draft| kind_code(&draft.body)).collect();
        let numbers: Vec<Option<i64>> = plan.items.iter().map(|item| item.number).collect();
        let projects: Vec<i32> = plan.items.iter().map(|item| item.project).collect();
        let digests: Vec<&[u8]> = fresh.iter().map(|draft| &draft.digest[..]).collect();
        let entered = sqlx::query(
            "insert into events (tenant_id, event_id, kind, author_id, project_id, number, digest,
               arrived_at)
             select $1, u.event_id, u.kind, u.author_id, u.project_id, u.number, u.digest,
               u.arrived_at
             from unnest($2::int[], $3::timestamptz[], $4::uuid[], $5::smallint[], $6::int[],
               $7::bigint[], $8::bytea[])
               u (author_id, arrived_at, event_id, kind, project_id, number, digest)
             order by u.event_id
             on conflict do nothing",
        )
        .bind(self.tenant.key())
        .bind(plan.items.iter().map(|i| i.author).collect::<Vec<_>>())
        .bind(plan.items.iter().map(|i| i.arrived_at).collect::<Vec<_>>())
        .bind(ids)
        .bind(kinds)
        .bind(projects)
        .bind(numbers)
        .bind(digests)
        .execute(&mut *self.tx)
        .await?;
        Ok(entered.rows_affected() == fresh.len() as u64)
    }
}
