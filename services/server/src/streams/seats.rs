//! Seats: how many streams a principal has open, on all replicas together as long as Redis says,
//! and on this one in any case.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use cairn_store::rates::{Seated, Sitter};
use cairn_wire::{Code, Problem};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::lock;
use crate::app::App;
use crate::auth::Caller;

/// Seconds after which a place among a member's streams may be free.
const RETRY_SECONDS: u32 = 20;

/// How many streams each principal has open here.
#[derive(Default)]
pub(super) struct Seats(Mutex<HashMap<(TenantId, i32), usize>>);

impl Seats {
    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    fn take(&self, (tenant, principal): Sitter) -> bool {
        let mut seats = lock(&self.0);
        let taken = seats.entry((tenant, principal.key)).or_default();
        let is_free = *taken < limits::MEMBER_STREAMS;
        *taken += usize::from(is_free);
        is_free
    }

    fn leave(&self, (tenant, principal): Sitter) {
        let mut seats = lock(&self.0);
        if let Some(taken) = seats.get_mut(&(tenant, principal.key)) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(&(tenant, principal.key));
            }
        }
    }
}

/// A place among a principal's streams; given back when it is dropped.
pub(super) struct Seat {
    app: Arc<App>,
    sitter: (TenantId, PrincipalId),
    id: Uuid,
    /// Whether the other replicas were told that it is free.
    is_left: bool,
}

impl Seat {
    /// Takes one, for which Redis is not waited for long.
    ///
    /// # Errors
    /// `rate_limited` if there is none.
    pub async fn take(app: &Arc<App>, caller: &Caller) -> Result<Self, Problem> {
        let sitter = (caller.tenant, caller.principal);
        if !app.streams.seats.take(sitter) {
            return Err(full());
        }
        let mut seat = Self {
            app: Arc::clone(app),
            sitter,
            id: Uuid::now_v7(),
            is_left: false,
        };
        let (most, lasts) = (limits::MEMBER_STREAMS, limits::STREAM_SEAT);
        let rates = &app.callers.rates;
        match rates.take_seat(sitter, seat.id, most, lasts).await {
            Seated::Full => {
                seat.is_left = true;
                return Err(full());
            }
            Seated::Unknown if app.guards.rate_open.note(app.clock.now()) => {
                tracing::warn!("streams are counted here alone: Redis does not answer");
            }
            Seated::Yes | Seated::Alone | Seated::Unknown => {}
        }
        Ok(seat)
    }

    /// Tells the other replicas that it is taken, until it is dropped.
    pub async fn keep(&self) {
        let rates = &self.app.callers.rates;
        loop {
            tokio::time::sleep(limits::STREAM_HEARTBEAT).await;
            rates
                .keep_seat(self.sitter, self.id, limits::STREAM_SEAT)
                .await;
        }
    }

    /// Leaves it, once the other replicas know.
    pub async fn leave(mut self) {
        self.is_left = true;
        let rates = &self.app.callers.rates;
        rates.leave_seat(self.sitter, self.id).await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.app.streams.seats.leave(self.sitter);
        if let (false, Ok(runtime)) = (self.is_left, Handle::try_current()) {
            let (app, sitter, id) = (Arc::clone(&self.app), self.sitter, self.id);
            runtime.spawn(async move { app.callers.rates.leave_seat(sitter, id).await });
        }
    }
}

fn full() -> Problem {
    let detail = format!("at most {} streams at once", limits::MEMBER_STREAMS);
    Problem::new(Code::RateLimited, detail).retry_after(RETRY_SECONDS)
}
