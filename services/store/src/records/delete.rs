//! Deleting a record: its rows and what was derived from them go, a tombstone and the ledger's
//! line stay.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::project::Reader;
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::locked::Target;
use crate::{StoreError, TenantTx};

/// What became of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The record is gone, now or since before.
    Done,
    /// There is none of this id, or none that this reader may know of.
    NotFound,
    /// It is another's, and the reader is no admin.
    Forbidden,
}

impl Target {
    /// Why not, if the reader may not delete it. `hidden` says that it is its author's alone.
    pub fn verdict(&self, reader: &Reader, admin: bool, hidden: bool) -> Option<Deleted> {
        if !self.is_among(&reader.projects) {
            Some(Deleted::NotFound)
        } else if self.is_of(reader) {
            None
        } else if hidden {
            // Private to someone else looks like nothing at all, to an admin too.
            Some(Deleted::NotFound)
        } else if admin {
            None
        } else {
            Some(Deleted::Forbidden)
        }
    }
}

impl TenantTx {
    /// Deletes a record for good: its author may, and an admin may what they can read, both in
    /// the reader's projects alone. Deleting again is `Done` too. The deletion takes a position,
    /// and its event id stays used; that of another's record has its line in the audit log.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn delete_record(
        &mut self,
        id: RecordId,
        reader: &Reader,
        admin: bool,
        now: DateTime<Utc>,
    ) -> Result<Deleted, StoreError> {
        let Some(target) = self.lock_record(id).await? else {
            return self.deleted_before(id, reader, admin).await;
        };
        let hidden = target.private || self.is_kept_from_others(id).await?;
        if let Some(verdict) = target.verdict(reader, admin, hidden) {
            return Ok(verdict);
        }
        let position = self.take_position().await?;
        let event_id = self.remove_rows(id).await?;
        self.count_out(target.project_id).await?;
        self.append_tombstone(id, &target, event_id, position, now)
            .await?;
        if id.kind != RecordKind::Prompt {
            self.raise_context_revision(target.project_id).await?;
        }
        self.note_deletion("record.delete", &id.to_string(), &target, reader, now)
            .await?;
        Ok(Deleted::Done)
    }

    /// Writes down in the audit log that somebody deleted what another wrote.
    pub(crate) async fn note_deletion(
        &mut self,
        action: &'static str,
        what: &str,
        target: &Target,
        reader: &Reader,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if target.is_of(reader) {
            return Ok(());
        }
        let author: String = sqlx::query_scalar(
            "select name from principals where tenant_id = $1 and principal_id = $2",
        )
        .bind(self.tenant.key())
        .bind(target.author_id)
        .fetch_one(&mut *self.tx)
        .await?;
        let detail = json!({ "author": author });
        self.append_audit(Some(reader.principal), action, what, detail, now)
            .await
    }

    /// Whether records of this kind are their authors' alone, by the tenant's setting.
    async fn is_kept_from_others(&mut self, id: RecordId) -> Result<bool, StoreError> {
        if id.kind != RecordKind::Prompt {
            return Ok(false);
        }
        let shared: Option<bool> = sqlx::query_scalar(
            "select settings ->> 'prompt_visibility' = 'team' from tenants where tenant_id = $1",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(shared != Some(true))
    }

    async fn deleted_before(
        &mut self,
        id: RecordId,
        reader: &Reader,
        admin: bool,
    ) -> Result<Deleted, StoreError> {
        let tombstone: Option<Target> = sqlx::query_as(
            "select project_id, author_id, private from tombstones
             where tenant_id = $1 and kind = $2 and number = $3",
        )
        .bind(self.tenant.key())
        .bind(id.kind.code())
        .bind(id.number)
        .fetch_optional(&mut *self.tx)
        .await?;
        let Some(target) = tombstone else {
            return Ok(Deleted::NotFound);
        };
        let hidden = target.private || self.is_kept_from_others(id).await?;
        match target.verdict(reader, admin, hidden) {
            None => Ok(Deleted::Done),
            // To the others it is simply gone.
            Some(_) => Ok(Deleted::NotFound),
        }
    }

    /// Removes the row, the body and the links to it; gives the event id.
    async fn remove_rows(&mut self, id: RecordId) -> Result<Uuid, StoreError> {
        sqlx::query("delete from records where tenant_id = $1 and kind = $2 and number = $3")
            .bind(self.tenant.key())
            .bind(id.kind.code())
            .bind(id.number)
            .execute(&mut *self.tx)
            .await?;
        if id.kind == RecordKind::Observation {
            sqlx::query(
                "update tool_uses set observation = null where tenant_id = $1 and observation = $2",
            )
            .bind(self.tenant.key())
            .bind(id.number)
            .execute(&mut *self.tx)
            .await?;
        }
        let body = match id.kind {
            RecordKind::Observation => {
                "delete from observations where tenant_id = $1 and number = $2 returning event_id"
            }
            RecordKind::Summary => {
                "delete from summaries where tenant_id = $1 and number = $2 returning event_id"
            }
            RecordKind::Prompt => {
                "delete from prompts where tenant_id = $1 and number = $2 returning event_id"
            }
        };
        let event_id = sqlx::query_scalar(body)
            .bind(self.tenant.key())
            .bind(id.number)
            .fetch_optional(&mut *self.tx)
            .await?;
        event_id.ok_or_else(|| StoreError::inconsistent("records", "body", id))
    }

    async fn append_tombstone(
        &mut self,
        id: RecordId,
        target: &Target,
        event_id: Uuid,
        position: i64,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "with ledger as (
               update events set deleted = true where tenant_id = $1 and event_id = $3),
             origin as (delete from imported where tenant_id = $1 and event_id = $3)
             insert into tombstones (tenant_id, position, event_id, kind, number, project_id,
               author_id, private, at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(self.tenant.key())
        .bind(position)
        .bind(event_id)
        .bind(id.kind.code())
        .bind(id.number)
        .bind(target.project_id)
        .bind(target.author_id)
        .bind(target.private)
        .bind(now)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn count_out(&mut self, project: i32) -> Result<(), StoreError> {
        sqlx::query(
            "update projects set records = records - 1 where tenant_id = $1 and project_id = $2",
        )
        .bind(self.tenant.key())
        .bind(project)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
