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

    /// A setting of the tenant's, if it is set to a text.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_setting(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        let value = sqlx::query_scalar("select settings ->> $2 from tenants where tenant_id = $1")
            .bind(self.tenant.key())
            .bind(name)
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(value)
    }
}
