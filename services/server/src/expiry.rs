//! Expiry: what a replica removes for good while it serves, because its time is over or its tenant
//! is gone. Replicas share the work: each tenant is looked at by one of them at a time.

use std::time::Duration;

use cairn_domain::ids::TenantId;
use cairn_domain::kind::Kind;
use cairn_domain::limits;
use cairn_store::{Store, StoreError};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use crate::app::Clock;

/// How often there is a look for tenants that are due.
const PERIOD: Duration = Duration::from_secs(2);
/// How often each tenant is due.
const DUE_AFTER: TimeDelta = TimeDelta::hours(1);
/// Tenants that are taken at once.
const AT_ONCE: i32 = 4;
/// Lines of the audit log that one statement looks at.
const AUDIT_LINES: u32 = 1_000;
/// Rows of deleted tenants that one statement removes.
const SWEPT: i32 = 2_000;
/// A pause between two transactions: nobody waits for this.
const PAUSE: Duration = Duration::from_millis(20);

/// Goes on until it is dropped. A failure means only that the work waits a little longer.
pub async fn keep_expiring(store: Store, clock: Clock) {
    loop {
        tokio::time::sleep(PERIOD).await;
        if let Err(error) = expire_due(&store, &clock).await {
            tracing::debug!(%error, "nobody looked for what has expired");
        }
        if let Err(error) = sweep(&store).await {
            tracing::debug!(%error, "deleted tenants were not swept");
        }
    }
}

/// Removes what has expired in the tenants that are due.
async fn expire_due(store: &Store, clock: &Clock) -> Result<(), StoreError> {
    let now = clock.now();
    let mut system = store.system("expiry.claim").await?;
    let due = system.claim_expiry(now - DUE_AFTER, now, AT_ONCE).await?;
    system.commit().await?;
    for tenant in due {
        if let Err(error) = expire(store, clock, tenant).await {
            tracing::warn!(tenant.id = %tenant.uuid(), %error, "what has expired was not removed");
        }
    }
    Ok(())
}

/// Removes what has expired in a tenant, batch by batch.
async fn expire(store: &Store, clock: &Clock, tenant: TenantId) -> Result<(), StoreError> {
    let mut tx = store.tenant(tenant, "expiry.settings").await?;
    let retention = tx.get_settings().await?.retention_days;
    tx.commit().await?;
    let now = clock.now();
    for kind in Kind::ALL {
        let Some(before) = retention.cutoff(kind, now) else {
            continue;
        };
        let gone = batches(store, clock, tenant, Piece::Kind(kind, before)).await?;
        if gone > 0 {
            tracing::info!(tenant.id = %tenant.uuid(), kind = kind.name(), gone, "expired");
        }
    }
    // What was said belongs to what was asked.
    if let Some(before) = retention.cutoff(Kind::Prompt, now) {
        batches(store, clock, tenant, Piece::Said(before)).await?;
    }
    let removed_before = now - TimeDelta::days(i64::from(limits::REMOVED_MEMBER_DAYS));
    batches(store, clock, tenant, Piece::Members(removed_before)).await?;
    batches(store, clock, tenant, Piece::Audit).await?;
    let usage_before = now - TimeDelta::days(i64::from(limits::USAGE_KEPT_DAYS));
    let usage = Piece::Usage(usage_before.date_naive());
    batches(store, clock, tenant, usage).await?;
    Ok(())
}

/// What expires together.
#[derive(Clone, Copy)]
enum Piece {
    /// A kind, as far as it arrived before a moment.
    Kind(Kind, DateTime<Utc>),
    /// What was said last in sessions, and what jobs were told of it, before a moment.
    Said(DateTime<Utc>),
    /// What was private to members who were removed before a moment.
    Members(DateTime<Utc>),
    /// Lines of the audit log.
    Audit,
    /// What members used before a day.
    Usage(NaiveDate),
}

/// Works in transactions of its own until one finds nothing more; how much it did in all.
async fn batches(
    store: &Store,
    clock: &Clock,
    tenant: TenantId,
    piece: Piece,
) -> Result<u64, StoreError> {
    let mut all = 0;
    loop {
        let turn = store.turn(tenant).await?;
        let mut tx = store.tenant(tenant, "expiry.remove").await?;
        let (now, most) = (clock.now(), limits::REMOVED_AT_ONCE);
        let done = match piece {
            Piece::Kind(kind, before) => tx.expire(kind, before, most, now).await?,
            Piece::Said(before) => tx.expire_said(before, most).await?,
            Piece::Members(before) => tx.expire_removed_members(before, most, now).await?,
            Piece::Audit => tx.expire_audit(AUDIT_LINES).await?,
            Piece::Usage(before) => tx.expire_usage(before, most).await?,
        };
        tx.commit().await?;
        drop(turn);
        if done == 0 {
            return Ok(all);
        }
        all += done;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Removes the rows of deleted tenants, batch by batch; how many that were.
///
/// # Errors
/// The store's.
pub async fn sweep(store: &Store) -> Result<i64, StoreError> {
    let mut all = 0;
    loop {
        let mut system = store.system("expiry.sweep").await?;
        let gone = system.sweep_deleted(SWEPT).await?;
        system.commit().await?;
        if gone == 0 {
            return Ok(all);
        }
        all += gone;
        tokio::time::sleep(PAUSE).await;
    }
}
