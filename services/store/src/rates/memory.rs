//! Buckets in this process, for a server without Redis. Full ones take no room.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use super::{Draw, Drawn};

/// Buckets after which full ones are looked for and dropped.
const MANY: usize = 4_096;

#[derive(Default)]
pub(super) struct MemoryBuckets(Mutex<Inner>);

struct Inner {
    began: Instant,
    /// When each is full, in microseconds since the beginning.
    full: HashMap<String, f64>,
    /// How many there may be before full ones are dropped.
    many: usize,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            full: HashMap::new(),
            many: MANY,
        }
    }
}

impl MemoryBuckets {
    /// Takes as `take.lua` does.
    pub fn draw(&self, draws: &[Draw], now: Instant) -> Drawn {
        let mut inner = self.lock();
        let now = now.saturating_duration_since(inner.began).as_secs_f64() * 1e6;
        let told = |draw: &Draw| {
            let at = inner.full.get(&draw.key).copied().unwrap_or(now).max(now);
            (at + draw.told * draw.bucket.interval).max(now)
        };
        let mut full: Vec<f64> = draws.iter().map(told).collect();
        let has_enough = |(draw, full): (&Draw, &f64)| {
            draw.cost <= 0.0 || draw.bucket.left(full - now) >= draw.bucket.need(draw.cost)
        };
        let is_granted = draws.iter().zip(&full).all(has_enough);
        for (draw, full) in draws.iter().zip(&mut full) {
            if is_granted {
                *full += draw.cost * draw.bucket.interval;
            }
            inner.full.insert(draw.key.clone(), *full);
        }
        inner.drop_full(now);
        Drawn {
            is_granted,
            used: full.into_iter().map(|full| full - now).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it holds the lock; the map is usable at every moment.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    /// Looks through all only when they have doubled, so that each call pays for a few.
    fn drop_full(&mut self, now: f64) {
        if self.full.len() > self.many {
            self.full.retain(|_, full| *full > now);
            self.many = MANY.max(2 * self.full.len());
        }
    }
}
