//! The tenant itself, seen from inside: its name, and what it has set for itself.

use cairn_domain::ids::PrincipalId;
use cairn_domain::settings::Settings;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

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

    /// What the tenant has set, with defaults for the rest.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_settings(&mut self) -> Result<Settings, StoreError> {
        let stored: Value = sqlx::query_scalar("select settings from tenants where tenant_id = $1")
            .bind(self.tenant.key())
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(Settings::of(&object(stored)))
    }

    /// The settings as they are kept, held to the end of the transaction: what is decided by them
    /// or written to them waits for others who do so.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn lock_settings(&mut self) -> Result<Map<String, Value>, StoreError> {
        let stored: Value = sqlx::query_scalar(
            "select settings from tenants where tenant_id = $1 for no key update",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(object(stored))
    }

    /// Keeps settings that were locked and changed, and writes down in the audit log which differ;
    /// none is the operator. What was rendered under the settings before is worthless from the
    /// commit on.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn save_settings(
        &mut self,
        settings: &Map<String, Value>,
        changed: &[String],
        actor: Option<PrincipalId>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let name: String = sqlx::query_scalar(
            "update tenants set settings = $2, settings_revision = settings_revision + 1
             where tenant_id = $1 returning name",
        )
        .bind(self.tenant.key())
        .bind(Value::Object(settings.clone()))
        .fetch_one(&mut *self.tx)
        .await?;
        let detail = json!({ "changed": changed });
        self.append_audit(actor, "tenant.change", &name, detail, now)
            .await
    }
}

fn object(stored: Value) -> Map<String, Value> {
    match stored {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
