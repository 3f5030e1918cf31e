//! Quotas of one tenant: what its settings allow, held against what it has. A quota that cannot
//! be read refuses.

use cairn_domain::quota::Quota;
use serde_json::Value;

use crate::{StoreError, TenantTx};

impl TenantTx {
    /// Refuses a total that passes a quota; what is counted for it is the caller's business. Until
    /// the transaction ends no other one is asked for the same tenant: so what two add together
    /// cannot pass what each of them may.
    ///
    /// # Errors
    /// `OverQuota`; as any call of the store.
    pub async fn require_quota(&mut self, quota: Quota, total: i64) -> Result<(), StoreError> {
        let quotas = self.lock_quotas().await?;
        require(quota, quotas.as_ref(), total)
    }

    /// The setting `quotas`, held for this transaction.
    pub(crate) async fn lock_quotas(&mut self) -> Result<Option<Value>, StoreError> {
        let quotas = sqlx::query_scalar(
            "select settings -> 'quotas' from tenants where tenant_id = $1 for no key update",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(quotas)
    }

    /// Sets a quota of the tenant, or takes it off, and writes it down in the audit log.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn set_quota(
        &mut self,
        quota: Quota,
        limit: Option<i64>,
        now: chrono::DateTime<chrono::Utc>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "update tenants set settings_revision = settings_revision + 1,
               settings = jsonb_set(settings, '{quotas}',
                 case jsonb_typeof(settings -> 'quotas') when 'object' then settings -> 'quotas'
                   else '{}' end || jsonb_build_object($2::text, $3::bigint))
             where tenant_id = $1",
        )
        .bind(self.tenant.key())
        .bind(quota.name())
        .bind(limit)
        .execute(&mut *self.tx)
        .await?;
        let detail = serde_json::json!({ "limit": limit });
        self.append_audit(None, "tenant.quota", quota.name(), detail, now)
            .await
    }
}

/// Refuses a total that passes a quota of these.
pub(crate) fn require(quota: Quota, quotas: Option<&Value>, total: i64) -> Result<(), StoreError> {
    let admitted = quota.limit(quotas).admit(total);
    admitted.map_err(|limit| {
        if limit.is_none() {
            tracing::warn!(quota = quota.name(), "a quota cannot be read; it refuses");
        }
        StoreError::OverQuota { quota, limit }
    })
}
