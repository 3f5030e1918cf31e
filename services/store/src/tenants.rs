//! The tenant itself, seen from inside.

use crate::{StoreError, TenantTx};

impl TenantTx {
    /// The tenant's name.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_tenant_name(&mut self) -> Result<String, StoreError> {
        let name = sqlx::query_scalar("select name from tenants where tenant_id = $1")
            .bind(self.tenant.key())
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(name)
    }
}
