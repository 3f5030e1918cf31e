//! The tenant's settings (contract 19.3).

use cairn_domain::scope::Scope;
use cairn_domain::settings::Settings;
use cairn_wire::tenant::TenantSettings;
use serde_json::{Map, Value};

use super::Failure;
use crate::app::App;
use crate::auth::Caller;

/// What the tenant has set, with defaults for the rest.
///
/// # Errors
/// A lacking scope or an unavailable store.
pub async fn show(app: &App, caller: &Caller) -> Result<TenantSettings, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let mut tx = app.store.tenant(caller.tenant, "tenant.show").await?;
    let settings = tx.get_settings().await?;
    tx.commit().await?;
    Ok(settings.into())
}

/// Sets what is named; null takes a setting back to its default. To set what is set is no change.
///
/// # Errors
/// `invalid_field` with a pointer for what is no setting, or out of bounds; a lacking scope or an
/// unavailable store.
pub async fn change(
    app: &App,
    caller: &Caller,
    patch: &Map<String, Value>,
) -> Result<TenantSettings, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let mut tx = app.store.tenant(caller.tenant, "tenant.change").await?;
    let mut stored = tx.lock_settings().await?;
    let changed = Settings::patch(&mut stored, patch)?;
    if !changed.is_empty() {
        let (actor, now) = (Some(caller.principal), app.clock.now());
        tx.save_settings(&stored, &changed, actor, now).await?;
    }
    tx.commit().await?;
    Ok(Settings::of(&stored).into())
}
