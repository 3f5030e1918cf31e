//! Rates: how fast callers may go, counted for all replicas in Redis, or in this process when
//! embedded.
//!
//! Each limit is a bucket that fills evenly and holds a fifth of a minute's worth (GCRA). What
//! the limits are for, and what a refused caller is told, is the server's business.

mod addresses;
mod memory;
mod seats;
mod shared;
mod views;

use std::time::{Duration, Instant};

use cairn_domain::hex::hex;
use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use sha2::{Digest, Sha256};

pub use addresses::{Counted, network};
use memory::MemoryBuckets;
pub use seats::{Seated, Sitter};
use shared::SharedBuckets;
use views::{Said, Views};

/// How much is allowed in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests of one caller; a tenant may have ten times as many.
    pub requests: u32,
    /// Events of one tenant.
    pub events: u32,
    /// Failed sign-ins from one address.
    pub failed_sign_ins: u32,
    /// What callers without a credential begin from one address.
    pub strangers: u32,
}

/// What a bucket holds and how fast it fills.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    /// Tokens of a full one.
    burst: f64,
    /// Microseconds in which one token comes.
    interval: f64,
}

impl Bucket {
    fn of(a_minute: u64, burst: u64) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "rates are far below the precision"
        )]
        let (a_minute, burst) = (a_minute.max(1) as f64, burst.max(1) as f64);
        Self {
            burst,
            interval: 60e6 / a_minute,
        }
    }

    /// What is left in one that needs `used` microseconds to be full.
    fn left(self, used: f64) -> f64 {
        self.burst - used.max(0.0) / self.interval
    }

    /// What must be in it for `cost` to be taken. More than it holds may be taken from a full
    /// one, which then fills for longer: else a large batch could wait for ever.
    fn need(self, cost: f64) -> f64 {
        cost.min(self.burst)
    }
}

/// What is taken from one bucket.
#[derive(Clone, Debug)]
struct Draw {
    key: String,
    bucket: Bucket,
    /// Taken whatever is there: it was spent already, or comes back where it is negative.
    told: f64,
    /// Taken if there is enough in all buckets of the call.
    cost: f64,
}

/// How buckets stand after a call.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    is_granted: bool,
    /// Microseconds until each is full.
    used: Vec<f64>,
}

/// Which limit it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// Requests of one caller.
    Caller,
    /// Requests of a whole tenant.
    Tenant,
    /// Events of a whole tenant.
    Events,
}

/// What became of an attempt to take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which limit refuses it, and for how long.
    pub refused: Option<(RateLimit, Duration)>,
    /// Requests that the caller has left.
    pub left: u32,
    /// When it will have all of them again.
    pub full_in: Duration,
    /// Whether nobody could count: whoever comes is let in.
    pub is_open: bool,
}

/// The counters of all limits.
pub struct Rates {
    limits: RateLimits,
    buckets: Buckets,
}

enum Buckets {
    Shared(SharedBuckets, Views),
    Memory(MemoryBuckets),
}

/// The buckets of one call: the caller's, its tenant's, and that of the tenant's events.
const KINDS: [RateLimit; 3] = [RateLimit::Caller, RateLimit::Tenant, RateLimit::Events];

impl Rates {
    /// Counters in the Redis at `url`. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with the address, without a password in it.
    pub fn connect(url: &str, limits: RateLimits) -> Result<Self, String> {
        Self::connect_with_prefix(url, limits, "")
    }

    /// As [`Rates::connect`], with a text in front of every key, so that tests can share one
    /// Redis.
    ///
    /// # Errors
    /// As [`Rates::connect`].
    pub fn connect_with_prefix(
        url: &str,
        limits: RateLimits,
        prefix: &str,
    ) -> Result<Self, String> {
        let shared = SharedBuckets::connect(url, prefix)?;
        Ok(Self {
            limits,
            buckets: Buckets::Shared(shared, Views::default()),
        })
    }

    /// Counters in this process.
    #[must_use]
    pub fn memory(limits: RateLimits) -> Self {
        Self {
            limits,
            buckets: Buckets::Memory(MemoryBuckets::default()),
        }
    }

    /// The same counters, waiting longer for Redis, for those who must know what it says.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        if let Buckets::Shared(shared, _) = &mut self.buckets {
            shared.patience = patience;
        }
        self
    }

    /// What the limits are.
    #[must_use]
    pub const fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Takes one request of a caller and of its tenant.
    pub async fn take_request(&self, tenant: TenantId, principal: PrincipalId) -> Taken {
        self.take(tenant, principal, [1.0, 1.0, 0.0]).await
    }

    /// Takes events of a tenant: all of them, or none.
    pub async fn take_events(
        &self,
        tenant: TenantId,
        principal: PrincipalId,
        events: usize,
    ) -> Taken {
        let events = f64::from(u32::try_from(events).unwrap_or(u32::MAX));
        self.take(tenant, principal, [0.0, 0.0, events]).await
    }

    async fn draw(&self, tag: &str, draws: &[Draw]) -> Option<Drawn> {
        match &self.buckets {
            Buckets::Shared(shared, _) => shared.draw(tag, draws).await,
            Buckets::Memory(memory) => Some(memory.draw(draws, Instant::now())),
        }
    }

    async fn take(&self, tenant: TenantId, principal: PrincipalId, costs: [f64; 3]) -> Taken {
        let buckets = self.of_callers();
        let views = match &self.buckets {
            Buckets::Shared(_, views) => Some(views),
            Buckets::Memory(_) => None,
        };
        let said = views.map(|views| {
            let now = Instant::now();
            views.take(tenant, principal, &buckets, costs, now)
        });
        let told = match said {
            Some(Said::Granted(left)) => return taken(&buckets, costs, true, left, false),
            Some(Said::Refused(left)) => return taken(&buckets, costs, false, left, false),
            Some(Said::Ask(told)) => told,
            None => [0.0; 3],
        };
        let tag = digest(&tenant.uuid().to_string());
        let draws = draws(&tag, principal, &buckets, told, costs);
        let drawn = self.draw(&tag, &draws).await;
        let now = Instant::now();
        let Some(Drawn { is_granted, used }) = drawn else {
            let left = views.map_or([0.0; 3], |views| {
                views.left(tenant, principal, &buckets, now)
            });
            return taken(&buckets, costs, true, left, true);
        };
        let used: [f64; 3] = std::array::from_fn(|n| used.get(n).copied().unwrap_or_default());
        if let Some(views) = views {
            views.note(tenant, principal, used, now);
        }
        let left = std::array::from_fn(|n| buckets[n].left(used[n]));
        taken(&buckets, costs, is_granted, left, false)
    }

    fn of_callers(&self) -> [Bucket; 3] {
        let burst = u64::from(limits::RATE_BURST);
        let requests = u64::from(self.limits.requests);
        let all = requests * u64::from(limits::TENANT_RATE);
        let events = u64::from(self.limits.events);
        [requests, all, events].map(|a_minute| Bucket::of(a_minute, a_minute / burst))
    }
}

fn draws(
    tag: &str,
    principal: PrincipalId,
    buckets: &[Bucket; 3],
    told: [f64; 3],
    costs: [f64; 3],
) -> [Draw; 3] {
    let names = [
        format!("caller:{}", principal.key),
        "tenant".to_owned(),
        "events".to_owned(),
    ];
    std::array::from_fn(|n| Draw {
        // All of a tenant lie in one slot of a cluster.
        key: format!("cairn:rate:{{{tag}}}:{}", names[n]),
        bucket: buckets[n],
        told: told[n],
        cost: costs[n],
    })
}

/// What a caller is told. `left` is what stands in the buckets after what was granted, or as it
/// was where nothing was.
fn taken(
    buckets: &[Bucket; 3],
    costs: [f64; 3],
    is_granted: bool,
    left: [f64; 3],
    is_open: bool,
) -> Taken {
    let lacks = |n: &usize| costs[*n] > 0.0 && left[*n] < buckets[*n].need(costs[*n]);
    let refused = (0..3).filter(|n| !is_granted && lacks(n));
    let refused = refused.map(|n| (KINDS[n], wait(buckets[n], left[n], costs[n])));
    let refused = refused.max_by_key(|(_, wait)| *wait);
    let restored = |n: usize| (buckets[n].burst - left[n]).max(0.0) * buckets[n].interval;
    Taken {
        refused,
        left: whole(left[0].min(left[1])),
        full_in: micros(restored(0)),
        is_open,
    }
}

/// How long until a bucket with `left` in it has enough for `cost`.
fn wait(bucket: Bucket, left: f64, cost: f64) -> Duration {
    micros((bucket.need(cost) - left).max(0.0) * bucket.interval)
}

fn micros(micros: f64) -> Duration {
    Duration::from_micros(u64::from(whole(micros / 1e3)) * 1_000)
}

/// The whole part of what is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is held within the bounds of the type"
)]
fn whole(number: f64) -> u32 {
    number.clamp(0.0, f64::from(u32::MAX)) as u32
}

/// What stands in keys for a tenant or an address, so that neither can be read from them.
fn digest(text: &str) -> String {
    hex(&Sha256::digest(format!("cairn:rate\0{text}"))[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_a_bucket_needs_a_full_one() {
        let bucket = Bucket::of(600, 120);
        assert!((bucket.need(500.0) - 120.0).abs() < f64::EPSILON);
        assert_eq!(wait(bucket, 120.0, 500.0), Duration::ZERO);
        assert_eq!(wait(bucket, 110.0, 500.0), Duration::from_secs(1));
    }
}
