//! Upkeep: what a replica does for the database while it serves. Every replica may do it; each
//! piece is small, and two that meet do it once.

use std::time::Duration;

use cairn_domain::ids::{ProjectId, TenantId};
use cairn_domain::limits;
use cairn_store::{Store, StoreError};

use crate::app::Clock;

/// How often there is a look for work. New records wait so long for their places in the words
/// index.
const PERIOD: Duration = Duration::from_secs(2);
/// How often what is left of sign-ins is removed.
const SIGN_IN_PERIOD: Duration = Duration::from_secs(600);
/// Projects whose words are counted, and tenants whose vectors are rebuilt, in one look.
const AT_ONCE: i32 = 4;
/// Vectors that are rebuilt in one transaction.
const REBUILT: u64 = 200;
/// How long one piece may take: counting a large project takes a second or two.
const PIECE_TIME: Duration = Duration::from_secs(60);

/// Goes on until it is dropped. A failure means only that the work waits a little longer.
pub async fn keep_up(store: Store, clock: Clock) {
    tokio::join!(
        again(PERIOD, "the words index was not cleaned", || clean(&store)),
        again(PERIOD, "words were not counted", || count_words(&store)),
        again(PERIOD, "vectors were not rebuilt", || rebuild(&store)),
        again(SIGN_IN_PERIOD, "old sign-ins were not removed", || {
            clean_sign_in(&store, &clock)
        }),
    );
}

async fn again<F: Future<Output = Result<(), StoreError>>>(
    period: Duration,
    what: &str,
    piece: impl Fn() -> F,
) {
    loop {
        tokio::time::sleep(period).await;
        let done = tokio::time::timeout(PIECE_TIME, piece()).await;
        if let Err(error) = done.unwrap_or(Err(StoreError::Timeout)) {
            tracing::debug!(%error, "{what}");
        }
    }
}

/// Keeps the lists of new records short that every search has to read.
async fn clean(store: &Store) -> Result<(), StoreError> {
    let cleaned = async {
        let mut tx = store.system("upkeep.clean_search_index").await?;
        let pages = tx.clean_search_index().await?;
        tracing::trace!(pages, "words index cleaned");
        tx.commit().await
    };
    let cleaned = tokio::time::timeout(limits::ANSWER_TIME, cleaned).await;
    cleaned.unwrap_or(Err(StoreError::Timeout))
}

/// Removes codes, sessions and programs that are over.
async fn clean_sign_in(store: &Store, clock: &Clock) -> Result<(), StoreError> {
    let mut tx = store.system("upkeep.clean_sign_in").await?;
    tx.clean_sign_in(clock.now()).await?;
    tx.commit().await
}

/// Counts the words of projects that have doubled since they were counted.
async fn count_words(store: &Store) -> Result<(), StoreError> {
    while count_some(store).await? {}
    Ok(())
}

/// Whether there may be more to count.
async fn count_some(store: &Store) -> Result<bool, StoreError> {
    let mut system = store.system("upkeep.find_uncounted").await?;
    let due = system.find_uncounted(AT_ONCE).await?;
    system.commit().await?;
    let all = due.len();
    let mut counted = 0;
    for (tenant, project) in due {
        match count_one(store, tenant, project).await {
            Ok(mine) => counted += usize::from(mine),
            Err(error) => {
                tracing::warn!(tenant.id = %tenant.uuid(), project.id = %project.uuid, %error, "words were not counted");
            }
        }
    }
    Ok(all > 0 && counted == all)
}

async fn count_one(
    store: &Store,
    tenant: TenantId,
    project: ProjectId,
) -> Result<bool, StoreError> {
    let mut tx = store.tenant(tenant, "upkeep.count_words").await?;
    let mine = tx.count_words(project).await?;
    tx.commit().await?;
    Ok(mine)
}

/// Rebuilds vectors of an older analyser, batch by batch, while the service serves.
async fn rebuild(store: &Store) -> Result<(), StoreError> {
    let mut system = store.system("upkeep.find_stale").await?;
    let stale = system.find_stale(AT_ONCE).await?;
    system.commit().await?;
    for tenant in stale {
        loop {
            match rebuild_some(store, tenant).await {
                Ok(REBUILT) => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(tenant.id = %tenant.uuid(), %error, "vectors were not rebuilt");
                    break;
                }
            }
        }
    }
    Ok(())
}

async fn rebuild_some(store: &Store, tenant: TenantId) -> Result<u64, StoreError> {
    let mut tx = store.tenant(tenant, "upkeep.reindex").await?;
    let rebuilt = tx.reindex(REBUILT).await?;
    tx.commit().await?;
    tracing::debug!(tenant.id = %tenant.uuid(), rebuilt, "vectors rebuilt");
    Ok(rebuilt)
}
