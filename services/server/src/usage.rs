//! Usage: the requests that a replica lets in, counted here and handed to the store now and then.
//!
//! A replica that is killed loses those of the last seconds; one that stops hands them in.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use cairn_store::{Store, StoreError};
use chrono::NaiveDate;

use crate::app::App;
use crate::auth::Caller;
use crate::lock::lock;

/// How long counts wait.
const PERIOD: Duration = Duration::from_secs(5);

/// Whose request it was, and on which day.
type Entry = (TenantId, PrincipalId, NaiveDate);

/// Requests that wait to be handed in.
#[derive(Debug, Default)]
pub struct Usage(Mutex<HashMap<Entry, u32>>);

impl Usage {
    /// Counts a request.
    pub fn count(&self, app: &App, caller: &Caller) {
        let now = app.clock.now();
        let entry = (caller.tenant, caller.principal, now.date_naive());
        let lost = self.add([(entry, 1)]);
        if lost > 0 && app.guards.usage_lost.note_some(lost, now) {
            tracing::warn!("requests are not counted: too many wait to be");
        }
    }

    /// Hands in what waits. What the store does not take waits on.
    pub async fn hand_in(&self, app: &App) {
        let mut tenants: HashMap<TenantId, Vec<(Entry, u32)>> = HashMap::new();
        for (entry, count) in std::mem::take(&mut *lock(&self.0)) {
            tenants.entry(entry.0).or_default().push((entry, count));
        }
        let mut lost = 0;
        for (tenant, counts) in tenants {
            if let Err(error) = store(&app.store, tenant, &counts).await {
                tracing::debug!(%error, "requests wait to be counted");
                lost += self.add(counts);
            }
        }
        if lost > 0 && app.guards.usage_lost.note_some(lost, app.clock.now()) {
            tracing::warn!("requests are not counted: too many wait to be");
        }
    }

    /// Goes on until it is dropped.
    pub async fn keep_handing_in(&self, app: &App) {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.hand_in(app).await;
        }
    }

    /// Adds counts for which there is room; how many requests were not added.
    fn add(&self, counts: impl IntoIterator<Item = (Entry, u32)>) -> u64 {
        let mut waiting = lock(&self.0);
        let mut lost = 0;
        for (entry, count) in counts {
            if waiting.len() < limits::USAGE_ENTRIES || waiting.contains_key(&entry) {
                let sum = waiting.entry(entry).or_default();
                *sum = sum.saturating_add(count);
            } else {
                lost += u64::from(count);
            }
        }
        lost
    }
}

async fn store(store: &Store, tenant: TenantId, counts: &[(Entry, u32)]) -> Result<(), StoreError> {
    let counts = counts.iter();
    let counts: Vec<_> = counts
        .map(|((_, who, day), count)| (*who, *day, *count))
        .collect();
    let stored = async {
        let mut tx = store.tenant(tenant, "usage.count_requests").await?;
        tx.count_requests(&counts).await?;
        tx.commit().await
    };
    let stored = tokio::time::timeout(limits::ANSWER_TIME, stored).await;
    stored.unwrap_or(Err(StoreError::Timeout))
}
