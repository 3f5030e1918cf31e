//! `admin tenant`: tenants from the machine that runs the service.

use anyhow::{Context, bail};
use cairn_domain::limits;
use cairn_domain::scope::Scope;
use cairn_store::{FirstKey, Store, StoreError, SystemTx};
use chrono::TimeDelta;
use clap::Subcommand;

use super::{Operator, check_handle, find_tenant, generate};
use crate::app::Clock;
use crate::auth::key::ApiKey;

/// What the operator does with tenants.
#[derive(Clone, Debug, Subcommand)]
pub enum TenantCommand {
    /// Make a tenant and its owner; prints the owner's first key, once.
    Create {
        /// The tenant's name.
        name: String,
        /// The owner's handle.
        #[arg(long)]
        owner: String,
    },
    /// Delete a tenant with all its keys and all that is in it.
    Delete {
        /// The tenant's name.
        name: String,
        /// The name once more.
        #[arg(long)]
        confirm: String,
    },
}

impl TenantCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// As [`create_tenant`].
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        match self {
            Self::Create { name, owner } => {
                let key = create_tenant(operator.store, operator.clock, &name, &owner).await?;
                Ok(key.reveal())
            }
            Self::Delete { name, confirm } => {
                delete_tenant(operator.store, operator.clock, &name, &confirm).await?;
                Ok("deleted".to_owned())
            }
        }
    }
}

/// Makes a tenant with its owner, and the owner's first key.
///
/// # Errors
/// If the name is taken, the handle is none, or the store is unavailable.
pub async fn create_tenant(
    store: &Store,
    clock: &Clock,
    name: &str,
    owner: &str,
) -> anyhow::Result<ApiKey> {
    check_handle(owner)?;
    if name.trim().is_empty() || name.len() > limits::PROJECT_BYTES {
        bail!("a tenant's name has 1 to {} bytes", limits::PROJECT_BYTES);
    }
    let mut tx = store.system("admin.create_tenant").await?;
    let key = insert_tenant(&mut tx, clock, name, owner)
        .await
        .with_context(|| format!("creating the tenant {name:?}: is the name taken?"))?;
    tx.commit().await?;
    Ok(key)
}

/// Deletes a tenant and its rows. Replicas that serve end what they had let in within seconds.
///
/// # Errors
/// If there is no such tenant, the name is not confirmed, or the store is unavailable.
pub async fn delete_tenant(
    store: &Store,
    clock: &Clock,
    name: &str,
    confirm: &str,
) -> anyhow::Result<()> {
    let tenant = find_tenant(store, name).await?;
    if confirm != name {
        bail!("--confirm {confirm:?} is not the tenant's name");
    }
    let mut tx = store.system("admin.delete_tenant").await?;
    let is_deleted = tx.delete_tenant(tenant, name, clock.now()).await?;
    tx.commit().await?;
    if !is_deleted {
        bail!("there is no tenant {name:?}");
    }
    crate::expiry::sweep(store).await?;
    Ok(())
}

/// Makes a tenant, its owner and the owner's first key within a transaction: all of them or, if
/// it is not committed, nothing.
///
/// # Errors
/// `Conflict` if the name is taken; as any call of the store.
pub async fn insert_tenant(
    tx: &mut SystemTx,
    clock: &Clock,
    name: &str,
    owner: &str,
) -> Result<ApiKey, StoreError> {
    let (key, now) = (generate(), clock.now());
    let first = FirstKey {
        key_id: key.id(),
        secret_hash: key.hash(),
        scopes: Scope::ALL.into_iter().collect(),
        expires_at: now + TimeDelta::days(i64::from(limits::KEY_DAYS)),
    };
    tx.create_tenant(name, owner, first, now).await?;
    Ok(key)
}
