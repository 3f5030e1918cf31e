//! Deletion of a tenant: from the answer on nobody enters it; its rows go soon after, by upkeep.

use cairn_domain::Rejection;
use cairn_domain::scope::Scope;
use cairn_wire::tenant_deletion::TenantDeletion;

use super::Failure;
use crate::app::App;
use crate::auth::Caller;

/// Deletes the caller's tenant, all its keys and all that is in it.
///
/// # Errors
/// `invalid_field` if the name is not the tenant's; a lacking scope, also for a credential that is
/// limited to a project; an unavailable store.
pub async fn delete(app: &App, caller: &Caller, asked: &TenantDeletion) -> Result<(), Failure> {
    caller.require_for_tenant(Scope::TenantOwn)?;
    let mut tx = app.store.system("tenant.delete").await?;
    let is_deleted = tx
        .delete_tenant(caller.tenant, &asked.confirm, app.clock.now())
        .await?;
    tx.commit().await?;
    if !is_deleted {
        return Err(Rejection::invalid_field("/confirm", "the tenant's name").into());
    }
    app.rights_changed(caller.tenant);
    tracing::warn!(tenant.id = %caller.tenant.uuid(), by = caller.name, "a tenant was deleted");
    Ok(())
}
