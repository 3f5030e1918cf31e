//! Seats: how many streams a principal has open, on all replicas together as long as Redis says,
//! and on this one in any case.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_store::rates::{Seated, Sitter};
use cairn_wire::{Code, Problem};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::app::App;
use crate::auth::Caller;
use crate::lock::lock;

/// Seconds after which a place among a member's streams may be free.
pub(super) const RETRY_SECONDS: u32 = 20;

/// How many streams each principal has open here.
#[derive(Default)]
pub(super) struct Seats(Mutex<HashMap<(TenantId, i32), usize>>);

impl Seats {
    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    fn take(&self, (tenant, principal, _): Sitter, most: usize) -> bool {
        let mut seats = lock(&self.0);
        let taken = seats.entry((tenant, principal.key)).or_default();
        let is_free = *taken < most;
        *taken += usize::from(is_free);
        is_free
    }

    fn leave(&self, (tenant, principal, _): Sitter) {
        let mut seats = lock(&self.0);
        if let Some(taken) = seats.get_mut(&(tenant, principal.key)) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(&(tenant, principal.key));
            }
        }
    }
}

/// What the streams are that are counted together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Room {
    /// Those of changes.
    Changes,
    /// Those of answers.
    Answers,
}

impl Room {
    /// Its name in Redis, and how many streams of it a member may have.
    const fn bounds(self) -> (&'static str, usize) {
        match self {
            Self::Changes => ("changes", limits::MEMBER_STREAMS),
            Self::Answers => ("answers", limits::MEMBER_ANSWER_STREAMS),
        }
    }

    fn seats(self, app: &App) -> &Seats {
        match self {
            Self::Changes => &app.streams.seats,
            Self::Answers => &app.streams.answers.seats,
        }
    }
}

/// A place among a principal's streams; given back when it is dropped.
pub(super) struct Seat {
    app: Arc<App>,
    sitter: Sitter,
    room: Room,
    id: Uuid,
    /// Whether the other replicas were told that it is free.
    is_left: bool,
}

impl Seat {
    /// Takes one, for which Redis is not waited for long.
    ///
    /// # Errors
    /// `rate_limited` if there is none.
    pub async fn take(app: &Arc<App>, caller: &Caller, room: Room) -> Result<Self, Problem> {
        let (name, most) = room.bounds();
        let sitter = (caller.tenant, caller.principal, name);
        if !room.seats(app).take(sitter, most) {
            return Err(full(most));
        }
        let mut seat = Self {
            app: Arc::clone(app),
            sitter,
            room,
            id: Uuid::now_v7(),
            is_left: false,
        };
        let rates = &app.callers.rates;
        let taken = rates.take_seat(sitter, seat.id, most, limits::STREAM_SEAT);
        match taken.await {
            Seated::Full => {
                seat.is_left = true;
                return Err(full(most));
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
        self.room.seats(&self.app).leave(self.sitter);
        if let (false, Ok(runtime)) = (self.is_left, Handle::try_current()) {
            let (app, sitter, id) = (Arc::clone(&self.app), self.sitter, self.id);
            runtime.spawn(async move { app.callers.rates.leave_seat(sitter, id).await });
        }
    }
}

fn full(most: usize) -> Problem {
    let detail = format!("at most {most} streams at once");
    Problem::new(Code::RateLimited, detail).retry_after(RETRY_SECONDS)
}
