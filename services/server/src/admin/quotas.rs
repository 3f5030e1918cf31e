//! `admin quota`: how much a tenant may have, from the machine that runs the service.

use cairn_domain::quota::Quota;
use cairn_store::Store;
use clap::Subcommand;

use super::{Operator, find_tenant};
use crate::app::Clock;

/// What the operator does with quotas.
#[derive(Clone, Debug, Subcommand)]
pub enum QuotaCommand {
    /// Set a quota of a tenant, or take it off.
    Set {
        /// The tenant's name.
        tenant: String,
        /// `stored_bytes`, `events_a_day`, `observer_tokens_a_month`, `members` or `blob_bytes`.
        #[arg(value_parser = parse_quota)]
        quota: Quota,
        /// How much it may have; any amount if left out.
        #[arg(value_parser = clap::value_parser!(i64).range(0..))]
        limit: Option<i64>,
    },
}

impl QuotaCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// As [`set_quota`].
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let Self::Set {
            tenant,
            quota,
            limit,
        } = self;
        set_quota(operator.store, operator.clock, &tenant, quota, limit).await?;
        Ok(match limit {
            Some(limit) => format!("{tenant}: {} is at most {limit}", quota.name()),
            None => format!("{tenant}: {} is not bounded", quota.name()),
        })
    }
}

/// Sets a quota of a tenant, or takes it off.
///
/// # Errors
/// If there is no such tenant, or the store is unavailable.
pub async fn set_quota(
    store: &Store,
    clock: &Clock,
    tenant: &str,
    quota: Quota,
    limit: Option<i64>,
) -> anyhow::Result<()> {
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.set_quota").await?;
    tx.set_quota(quota, limit, clock.now()).await?;
    Ok(tx.commit().await?)
}

fn parse_quota(name: &str) -> Result<Quota, String> {
    Quota::from_name(name).ok_or_else(|| {
        let names = Quota::ALL.map(Quota::name);
        format!("one of {}", names.join(", "))
    })
}
