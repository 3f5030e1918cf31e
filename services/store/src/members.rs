//! Members of one tenant: finding and adding them.

use cairn_domain::ids::PrincipalId;
use cairn_domain::quota::Quota;
use cairn_domain::scope::Role;
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::quotas::require;
use crate::{StoreError, TenantTx};

impl TenantTx {
    /// The member of this handle, if they were not removed.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_member(&mut self, handle: &str) -> Result<Option<PrincipalId>, StoreError> {
        let row: Option<(i32, Uuid)> = sqlx::query_as(
            "select p.principal_id, p.uid
             from principals p
             join members m on m.tenant_id = p.tenant_id and m.principal_id = p.principal_id
             where p.tenant_id = $1 and p.name = $2 and m.removed_at is null",
        )
        .bind(self.tenant.key())
        .bind(handle)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(row.map(|(key, uuid)| PrincipalId { key, uuid }))
    }

    /// Adds a member and writes it down in the audit log.
    ///
    /// # Errors
    /// `Conflict` if the handle is or was in use, `OverQuota` if there are as many as there may be.
    pub async fn insert_member(
        &mut self,
        handle: &str,
        email: Option<&str>,
        role: Role,
        now: DateTime<Utc>,
    ) -> Result<PrincipalId, StoreError> {
        let quotas = self.lock_quotas().await?;
        let members: i64 = sqlx::query_scalar(
            "select count(*) from members where tenant_id = $1 and removed_at is null",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        require(Quota::Members, quotas.as_ref(), members + 1)?;
        let (key, uuid): (i32, Uuid) = sqlx::query_as(
            "insert into principals (kind, name, created_at) values ('member', $1, $2)
             returning principal_id, uid",
        )
        .bind(handle)
        .bind(now)
        .fetch_one(&mut *self.tx)
        .await?;
        sqlx::query(
            "insert into members (principal_id, email, role, joined_at) values ($1, $2, $3, $4)",
        )
        .bind(key)
        .bind(email)
        .bind(role.name())
        .bind(now)
        .execute(&mut *self.tx)
        .await?;
        let detail = json!({ "role": role.name() });
        self.append_audit(None, "member.add", handle, detail, now)
            .await?;
        Ok(PrincipalId { key, uuid })
    }
}
