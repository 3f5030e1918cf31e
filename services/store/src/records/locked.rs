//! A record that is about to change: locked first, then the tenant's counter, so that two changes
//! of one record wait for each other and never cross.

use cairn_domain::ids::RecordId;
use cairn_domain::project::{ProjectSet, Reader};
use sqlx::FromRow;

use crate::{StoreError, TenantTx};

/// Whose a record is, and where.
#[derive(FromRow)]
pub(crate) struct Target {
    pub project_id: i32,
    pub author_id: i32,
    pub private: bool,
}

impl Target {
    /// Whether it is of the reader's projects.
    pub fn is_among(&self, projects: &ProjectSet) -> bool {
        projects.contains(self.project_id)
    }

    /// Whether the reader wrote it.
    pub const fn is_of(&self, reader: &Reader) -> bool {
        self.author_id == reader.principal.key
    }
}

impl TenantTx {
    pub(super) async fn lock_record(&mut self, id: RecordId) -> Result<Option<Target>, StoreError> {
        let target = sqlx::query_as(
            "select project_id, author_id, private from records
             where tenant_id = $1 and kind = $2 and number = $3 for update",
        )
        .bind(self.tenant.key())
        .bind(id.kind.code())
        .bind(id.number)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(target)
    }

    /// The next position, held to the end of the transaction.
    pub(crate) async fn take_position(&mut self) -> Result<i64, StoreError> {
        let position = sqlx::query_scalar(
            "update tenant_counters set position = position + 1 where tenant_id = $1
             returning position",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(position)
    }

    /// Of the project and of what it was merged into. Called with the tenant's counter held.
    pub(crate) async fn raise_context_revision(&mut self, project: i32) -> Result<(), StoreError> {
        sqlx::query(
            "update projects set context_revision = context_revision + 1
             where tenant_id = $1 and (project_id = $2 or project_id =
               (select merged_into from projects where tenant_id = $1 and project_id = $2))",
        )
        .bind(self.tenant.key())
        .bind(project)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
