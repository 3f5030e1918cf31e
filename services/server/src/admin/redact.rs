//! `admin redact`: reads what is stored again, for secrets that older patterns let pass.

use std::time::Duration;

use anyhow::Context;
use cairn_domain::ids::TenantId;
use cairn_store::redact::{Rescan, Rescanned, RowKey, Shelf};
use cairn_store::{Store, StoreError};
use clap::Args;

use super::{Operator, find_tenant};
use crate::app::Clock;

/// Rows of one transaction: writers of the tenant wait for it.
const BATCH: u32 = 100;
/// How often a batch is tried that met another writer.
const TRIES: u32 = 5;
/// How long one statement may take; a list is folded anew in one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which rows the operator has read again.
#[derive(Clone, Debug, Args)]
pub struct RedactCommand {
    /// The tenant's name; all tenants if absent.
    #[arg(long)]
    tenant: Option<String>,
    /// Rows of the present version too: after a change of CAIRN_REDACT_EXTRA, or after an update
    /// during which replicas of the version before were writing.
    #[arg(long)]
    all: bool,
}

impl RedactCommand {
    /// Does it; answers what is to be printed: for each tenant and kind how many rows were read
    /// and how many of them changed.
    ///
    /// # Errors
    /// As [`redact_tenant`]; what is done stays done, and the next call goes on from there.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let tenants = match self.tenant {
            Some(name) => vec![(find_tenant(operator.store, &name).await?, name)],
            None => {
                let mut tx = operator.store.system("admin.find_tenants").await?;
                let tenants = tx.find_tenants().await?;
                tx.commit().await?;
                tenants
            }
        };
        let mut lines = Vec::new();
        for (tenant, name) in tenants {
            let counts = redact_tenant(operator.store, operator.clock, tenant, self.all)
                .await
                .with_context(|| format!("redacting {name:?}"))?;
            lines.extend(counts.into_iter().map(|(shelf, done)| {
                let (seen, changed) = (done.seen, done.changed);
                format!("{name}: {}: {seen} read, {changed} changed", shelf.name())
            }));
        }
        Ok(lines.join("\n"))
    }
}

/// Reads all that a tenant has stored again, also while the service serves, and takes out what must
/// not be kept. Without `all` only what has passed older patterns.
///
/// # Errors
/// If the store is unavailable, or holds what it cannot.
pub async fn redact_tenant(
    store: &Store,
    clock: &Clock,
    tenant: TenantId,
    all: bool,
) -> anyhow::Result<Vec<(Shelf, Rescanned)>> {
    let mut counts = Vec::new();
    for shelf in Shelf::ALL {
        let mut total = Rescanned::default();
        loop {
            let rescan = Rescan {
                shelf,
                after: total.last,
                most: BATCH,
                all,
                now: clock.now(),
            };
            let done = batch(store, tenant, rescan).await?;
            total.seen += done.seen;
            total.changed += done.changed;
            let next: Option<RowKey> = done.last;
            if next.is_none() {
                break;
            }
            total.last = next;
        }
        counts.push((shelf, total));
    }
    Ok(counts)
}

async fn batch(store: &Store, tenant: TenantId, rescan: Rescan) -> Result<Rescanned, StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match try_batch(store, tenant, rescan).await {
            Err(StoreError::Raced) if tries < TRIES => {}
            done => return done,
        }
    }
}

async fn try_batch(
    store: &Store,
    tenant: TenantId,
    rescan: Rescan,
) -> Result<Rescanned, StoreError> {
    let mut tx = store
        .tenant_within(tenant, "admin.redact", PATIENCE)
        .await?;
    let done = tx.redact_stored(rescan).await?;
    tx.commit().await?;
    Ok(done)
}
