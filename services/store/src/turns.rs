//! Turns: how many writers of one tenant this process lets at its connections at once. Writers of
//! one tenant wait for each other's counters in any case; without turns they would do so holding
//! connections that other tenants need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_domain::ids::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::StoreError;

/// How long a writer waits for its turn before it is sent away.
const TURN_TIME: Duration = Duration::from_secs(5);
/// Tenants without a writer that may be remembered.
const IDLE_TENANTS: usize = 1_000;

/// A writer's turn; dropping it lets the next one come.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

pub(crate) struct Turns {
    at_once: usize,
    patience: Duration,
    tenants: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

impl Turns {
    /// Turns for at most a third of a pool's connections for each tenant.
    pub fn of_pool(connections: u32) -> Self {
        Self {
            at_once: usize::try_from(connections / 3).map_or(1, |third| third.max(1)),
            patience: TURN_TIME,
            tenants: Mutex::default(),
        }
    }

    pub async fn take(&self, tenant: TenantId) -> Result<Turn, StoreError> {
        let permit = self.of_tenant(tenant).acquire_owned();
        match tokio::time::timeout(self.patience, permit).await {
            Ok(Ok(permit)) => Ok(Turn { _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(StoreError::Crowded),
        }
    }

    fn of_tenant(&self, tenant: TenantId) -> Arc<Semaphore> {
        // Nothing panics while the map is held.
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() > IDLE_TENANTS && !tenants.contains_key(&tenant) {
            // Whoever has a turn or waits for one holds the semaphore too.
            tenants.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        let turns = tenants
            .entry(tenant)
            .or_insert_with(|| Arc::new(Semaphore::new(self.at_once)));
        Arc::clone(turns)
    }
}

#[cfg(test)]
mod tests {
    use cairn_domain::ids::TenantId;
    use uuid::Uuid;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "tenants of a test")]
    fn tenant(key: i32) -> TenantId {
        TenantId::verified(key, Uuid::nil())
    }

    #[tokio::test]
    async fn who_waits_too_long_is_sent_away_and_other_tenants_do_not_wait() {
        let turns = Turns {
            patience: Duration::from_millis(1),
            ..Turns::of_pool(7)
        };
        let first = turns.take(tenant(1)).await.expect("free");
        let _second = turns.take(tenant(1)).await.expect("free");
        let third = turns.take(tenant(1)).await;
        assert!(matches!(third, Err(StoreError::Crowded)));
        turns.take(tenant(2)).await.expect("another tenant's");
        drop(first);
        turns.take(tenant(1)).await.expect("free again");
    }

    #[tokio::test]
    async fn idle_tenants_are_forgotten_and_busy_ones_are_not() {
        let turns = Turns::of_pool(1);
        let _busy = turns.take(tenant(0)).await.expect("free");
        for key in 1..3_000 {
            drop(turns.take(tenant(key)).await);
        }
        let busy = turns.of_tenant(tenant(0));
        assert_eq!(busy.available_permits(), 0);
        assert!(turns.tenants.lock().expect("whole").len() <= IDLE_TENANTS + 2);
    }
}
