//! What this replica knows of buckets in Redis, so that a caller far below its limits costs no
//! round trip.
//!
//! A request of such a caller is granted here and told to Redis with the next one that asks. Each
//! replica leaves at most a sixteenth of a bucket untold, and asks once a second: so at one moment
//! `n` replicas may let through `n` sixteenths of a burst more than one would, and on average
//! not one request more, because what was granted is always charged. What is untold when a caller
//! stops, or when a replica ends, is lost: the same sixteenth.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cairn_domain::ids::{PrincipalId, TenantId};

use super::Bucket;

/// How long what Redis said is good for granting.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// How long it is good for refusing: whoever does not wait is answered without asking again, and
/// a request that takes from two buckets asks once.
const JUST_NOW: Duration = Duration::from_millis(20);
/// The part of a bucket that may be untold.
const UNTOLD: f64 = 1.0 / 16.0;
/// The part of a bucket below which Redis is asked each time.
const NEAR: f64 = 0.5;
/// Callers that are known at once. Beyond that all are forgotten, and asked for anew.
const MOST: usize = 10_000;

#[derive(Default)]
pub(super) struct Views(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    tenants: HashMap<TenantId, [View; 2]>,
    callers: HashMap<(TenantId, i32), View>,
}

/// What is known of one bucket.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    /// Microseconds until it is full, as Redis said, and when that was.
    seen: Option<(f64, Instant)>,
    /// What was granted and not told.
    untold: f64,
}

/// What the replica says by itself: what is left in each bucket, or what it has to tell Redis
/// when it asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Said {
    Granted([f64; 3]),
    Refused([f64; 3]),
    Ask([f64; 3]),
}

impl View {
    /// What is left, and how old that knowledge is.
    fn left(&self, bucket: Bucket, now: Instant) -> Option<(f64, Duration)> {
        let (used, at) = self.seen?;
        let age = now.saturating_duration_since(at);
        let used = (used - age.as_secs_f64() * 1e6).max(0.0);
        Some((bucket.left(used) - self.untold, age))
    }

    /// Whether `cost` is granted; none if Redis must be asked.
    fn decide(&self, bucket: Bucket, cost: f64, now: Instant) -> Option<bool> {
        let (left, age) = self.left(bucket, now)?;
        let is_just_now = age <= JUST_NOW;
        if left < bucket.need(cost) {
            return is_just_now.then_some(false);
        }
        let is_far = is_just_now || (age <= GOOD_FOR && left - cost >= bucket.burst * NEAR);
        (is_far && self.untold + cost <= bucket.burst * UNTOLD).then_some(true)
    }
}

impl Views {
    /// Takes costs if what is known allows to say. What is left untold is taken out where Redis
    /// has to be asked: the caller tells it.
    pub fn take(
        &self,
        tenant: TenantId,
        principal: PrincipalId,
        buckets: &[Bucket; 3],
        costs: [f64; 3],
        now: Instant,
    ) -> Said {
        let mut inner = self.lock();
        let mut views = inner.find(tenant, principal);
        let decide = |n: usize| match costs[n] > 0.0 {
            true => views[n].decide(buckets[n], costs[n], now),
            false => Some(true),
        };
        let said = [0, 1, 2].map(decide);
        if said.contains(&Some(false)) {
            return Said::Refused(left(&views, buckets, now));
        }
        if said == [Some(true); 3] {
            for (view, cost) in views.iter_mut().zip(costs) {
                view.untold += cost;
            }
            inner.keep(tenant, principal, views);
            return Said::Granted(left(&views, buckets, now));
        }
        let told = views.map(|view| view.untold);
        for view in &mut views {
            view.untold = 0.0;
        }
        inner.keep(tenant, principal, views);
        Said::Ask(told)
    }

    /// Takes in what Redis said.
    pub fn note(&self, tenant: TenantId, principal: PrincipalId, used: [f64; 3], now: Instant) {
        let mut inner = self.lock();
        let mut views = inner.find(tenant, principal);
        for (view, used) in views.iter_mut().zip(used) {
            view.seen = Some((used, now));
        }
        inner.keep(tenant, principal, views);
    }

    /// What is left in each bucket, as far as is known.
    pub fn left(
        &self,
        tenant: TenantId,
        principal: PrincipalId,
        buckets: &[Bucket; 3],
        now: Instant,
    ) -> [f64; 3] {
        left(&self.lock().find(tenant, principal), buckets, now)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it holds the lock; the maps are usable at every moment.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    fn find(&self, tenant: TenantId, principal: PrincipalId) -> [View; 3] {
        let caller = self.callers.get(&(tenant, principal.key));
        let [all, events] = self.tenants.get(&tenant).copied().unwrap_or_default();
        [caller.copied().unwrap_or_default(), all, events]
    }

    fn keep(&mut self, tenant: TenantId, principal: PrincipalId, views: [View; 3]) {
        let key = (tenant, principal.key);
        if self.callers.len() >= MOST && !self.callers.contains_key(&key) {
            *self = Self::default();
        }
        let [caller, all, events] = views;
        self.callers.insert(key, caller);
        self.tenants.insert(tenant, [all, events]);
    }
}

/// What is left in buckets; all of one of which nothing is known.
fn left(views: &[View; 3], buckets: &[Bucket; 3], now: Instant) -> [f64; 3] {
    std::array::from_fn(|n| {
        let known = views[n].left(buckets[n], now);
        known.map_or(buckets[n].burst, |(left, _)| left)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: f64 = 120.0;

    fn view(used: f64, at: Instant, untold: f64) -> View {
        View {
            seen: Some((used * 1e5, at)),
            untold,
        }
    }

    #[test]
    fn what_is_far_from_the_limit_is_granted_without_asking() {
        let (bucket, now) = (Bucket::of(600, 120), Instant::now());
        let later = |ms| now + Duration::from_millis(ms);
        for (used, untold, ms, cost, said) in [
            (0.0, 0.0, 500, 1.0, Some(true)),
            // A sixteenth may be untold.
            (0.0, 6.5, 500, 1.0, Some(true)),
            (0.0, 7.0, 500, 1.0, None),
            (0.0, 0.0, 1_001, 1.0, None),
            (70.0, 0.0, 500, 1.0, None),
            // Just now, it is known exactly.
            (119.0, 0.0, 10, 1.0, Some(true)),
            (BUCKET, 0.0, 10, 1.0, Some(false)),
            (119.0, 1.0, 10, 1.0, Some(false)),
            (BUCKET, 0.0, 30, 1.0, None),
            (0.0, 0.0, 10, 500.0, None),
        ] {
            let view = view(used, now, untold);
            let answer = view.decide(bucket, cost, later(ms));
            assert_eq!(answer, said, "{used} {untold} {ms} {cost}");
        }
        assert_eq!(View::default().decide(bucket, 1.0, now), None);
    }
}
