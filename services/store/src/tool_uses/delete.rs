//! Deleting a tool use: its row goes, the ledger's line stays. It has no position, so it leaves
//! no tombstone.

use cairn_domain::ids::ToolUseId;
use cairn_domain::project::Reader;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::records::{Deleted, Target};
use crate::{StoreError, TenantTx};

impl TenantTx {
    /// Deletes a tool use for good: its author may, and an admin may what they can read, both in
    /// the reader's projects alone. Deleting again is `Done` too. Its event id stays used, and
    /// observations that rest on it go on naming it; the deletion of another's has its line in the
    /// audit log.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn delete_tool_use(
        &mut self,
        id: ToolUseId,
        reader: &Reader,
        admin: bool,
        now: DateTime<Utc>,
    ) -> Result<Deleted, StoreError> {
        let Some(target) = self.lock_tool_use(id).await? else {
            return self.tool_use_deleted_before(id, reader, admin).await;
        };
        let hidden = target.private || self.is_evidence_kept_from_others().await?;
        if let Some(verdict) = target.verdict(reader, admin, hidden) {
            return Ok(verdict);
        }
        let event_id: Uuid = sqlx::query_scalar(
            "delete from tool_uses where tenant_id = $1 and number = $2 returning event_id",
        )
        .bind(self.tenant.key())
        .bind(id.0)
        .fetch_one(&mut *self.tx)
        .await?;
        sqlx::query(
            "with origin as (delete from imported where tenant_id = $1 and event_id = $2)
             update events set deleted = true, deleted_private = $3
             where tenant_id = $1 and event_id = $2",
        )
        .bind(self.tenant.key())
        .bind(event_id)
        .bind(target.private)
        .execute(&mut *self.tx)
        .await?;
        self.note_deletion("tool_use.delete", &id.to_string(), &target, reader, now)
            .await?;
        Ok(Deleted::Done)
    }

    async fn lock_tool_use(&mut self, id: ToolUseId) -> Result<Option<Target>, StoreError> {
        let target = sqlx::query_as(
            "select project_id, author_id, private from tool_uses
             where tenant_id = $1 and number = $2 for update",
        )
        .bind(self.tenant.key())
        .bind(id.0)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(target)
    }

    /// Whether tool uses are their authors' alone, by the tenant's setting.
    async fn is_evidence_kept_from_others(&mut self) -> Result<bool, StoreError> {
        let shared: bool = sqlx::query_scalar(
            "select coalesce(settings ->> 'evidence_visibility', 'team') = 'team'
             from tenants where tenant_id = $1",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(!shared)
    }

    async fn tool_use_deleted_before(
        &mut self,
        id: ToolUseId,
        reader: &Reader,
        admin: bool,
    ) -> Result<Deleted, StoreError> {
        let deleted: Option<Target> = sqlx::query_as(
            "select project_id, author_id, deleted_private as private from events
             where tenant_id = $1 and number = $2 and kind = 3 and deleted",
        )
        .bind(self.tenant.key())
        .bind(id.0)
        .fetch_optional(&mut *self.tx)
        .await?;
        let Some(target) = deleted else {
            return Ok(Deleted::NotFound);
        };
        let hidden = target.private || self.is_evidence_kept_from_others().await?;
        match target.verdict(reader, admin, hidden) {
            None => Ok(Deleted::Done),
            // To the others it is simply gone.
            Some(_) => Ok(Deleted::NotFound),
        }
    }
}
