//! Streams: what changes in a tenant, told as it happens (contract 13).
//!
//! One task a process asks for all tenants with open streams at once whether there is anything
//! new, told by the bus or every two seconds; what is new in a tenant is read once for all of its
//! streams ([`feed`]). A stream with nothing to tell costs two timers and no connection.

pub mod answers;
mod body;
mod feed;
mod follower;
mod seats;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use axum::http::HeaderMap;
use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_domain::scope::Scope;
use cairn_store::Store;
use cairn_store::bus::AnswerStream;
use cairn_store::changes::Horizon;
use cairn_wire::changes::StreamAsk;
use cairn_wire::{Code, Problem};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::actions::Failure;
use crate::actions::projects::place;
use crate::app::App;
use crate::auth::Caller;
use crate::lock::lock;
use answers::Answers;
pub use body::Body;
use feed::Feed;
use follower::Follower;
use seats::{Room, Seat, Seats};

/// Tenants in one question of how far they are.
const TOGETHER: usize = 500;
/// The least time between two such questions: wake-ups that come meanwhile are answered together.
const PAUSE: Duration = Duration::from_millis(20);
/// Streams that read by themselves at the same time, and that are verified anew.
const AT_ONCE: usize = 2;

/// The streams of a process.
pub struct Streams {
    store: Store,
    feeds: Mutex<HashMap<TenantId, Weak<Feed>>>,
    seats: Seats,
    woken: Mutex<Woken>,
    wake: Notify,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Held by whoever reads for one stream alone: so many streams leave connections to requests.
    reading: Semaphore,
    /// Held by whoever verifies a stream anew, for the same reason.
    verifying: Semaphore,
    /// Those that carry answers instead of changes.
    answers: Answers,
}

/// Who is to be looked after at once.
#[derive(Default)]
struct Woken {
    tenants: HashSet<Uuid>,
    is_all: bool,
}

/// A stream that was opened.
pub struct Opened {
    /// What it says.
    pub body: Body,
    /// The epoch of its positions.
    pub epoch: String,
}

impl Streams {
    /// No streams yet.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            feeds: Mutex::default(),
            seats: Seats::default(),
            woken: Mutex::default(),
            wake: Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            reading: Semaphore::new(AT_ONCE),
            verifying: Semaphore::new(AT_ONCE),
            answers: Answers::default(),
        }
    }

    /// How many streams are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Whether nothing is left of any stream: no task, no place, no feed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_feed = lock(&self.feeds)
            .values()
            .any(|feed| feed.strong_count() > 0);
        self.tasks.is_empty() && self.seats.is_empty() && !has_feed && self.answers.is_empty()
    }

    /// A tenant may have a new position.
    pub fn wake(&self, tenant: Uuid) {
        lock(&self.woken).tenants.insert(tenant);
        self.wake.notify_one();
    }

    /// Any tenant may have a new position, and rights may have changed in any.
    pub fn wake_all(&self) {
        lock(&self.woken).is_all = true;
        self.wake.notify_one();
        for feed in self.open_feeds() {
            feed.rights_changed();
        }
        self.answers.wake_all();
    }

    /// There may be an answer for a stream.
    pub fn answered(&self, stream: AnswerStream) {
        self.answers.wake(stream);
    }

    /// Verifies the streams of a tenant anew.
    pub fn rights_changed(&self, tenant: Uuid) {
        for feed in self.open_feeds() {
            if feed.tenant().uuid() == tenant {
                feed.rights_changed();
            }
        }
        self.answers.rights_changed(tenant);
    }

    /// Ends all streams, and those that are opened from now on.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Looks for what is new, until it is dropped.
    pub async fn watch(&self) {
        loop {
            let is_told = tokio::select! {
                () = self.wake.notified() => true,
                () = tokio::time::sleep(limits::STREAM_POLL) => false,
            };
            let woken = std::mem::take(&mut *lock(&self.woken));
            let is_meant = |feed: &Arc<Feed>| {
                !is_told || woken.is_all || woken.tenants.contains(&feed.tenant().uuid())
            };
            let feeds: Vec<Arc<Feed>> = self.open_feeds().into_iter().filter(is_meant).collect();
            for some in feeds.chunks(TOGETHER) {
                let (tenants, known): (Vec<TenantId>, Vec<i64>) = some
                    .iter()
                    .map(|feed| (feed.tenant(), feed.latest()))
                    .unzip();
                match self.store.horizons(&tenants).await {
                    Ok(horizons) => {
                        for ((feed, known), horizon) in some.iter().zip(known).zip(horizons) {
                            feed.is_at(known, horizon.as_ref());
                        }
                    }
                    // The next look finds what this one missed.
                    Err(error) => tracing::debug!(%error, "no look for what is new"),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Opens a stream for a caller, who came with these headers.
    ///
    /// # Errors
    /// `rate_limited` for more than a member may have, `position_unknown`, `shutting_down`; as
    /// [`place`]; a lacking scope or an unavailable store.
    pub async fn open(
        app: &Arc<App>,
        caller: Caller,
        headers: HeaderMap,
        ask: StreamAsk,
    ) -> Result<Opened, Failure> {
        caller.require(Scope::MemoryRead)?;
        let streams = &app.streams;
        if app.is_draining() || streams.stop.is_cancelled() {
            return Err(Problem::fault(Code::ShuttingDown).retry_after(1).into());
        }
        let seat = Seat::take(app, &caller, Room::Changes).await?;
        let mut tx = app.store.tenant(caller.tenant, "streams.open").await?;
        place(&mut tx, &caller, ask.project.as_deref()).await?;
        let horizon = tx.horizon_of_changes().await?;
        tx.commit().await?;
        ask.since.check(horizon.latest, &horizon.epoch)?;
        let feed = streams.feed(caller.tenant, &horizon);
        let (body, lines) = body::channel();
        let follower = Follower::new(app, caller, headers, ask, feed, lines);
        streams.tasks.spawn(async move {
            tokio::select! {
                () = follower.run() => {}
                () = seat.keep() => {}
            }
            seat.leave().await;
        });
        Ok(Opened {
            body,
            epoch: horizon.epoch,
        })
    }

    /// The feed of a tenant: the one that others follow, if it is of the same life.
    fn feed(&self, tenant: TenantId, horizon: &Horizon) -> Arc<Feed> {
        let mut feeds = lock(&self.feeds);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let open = feeds.get(&tenant).and_then(Weak::upgrade);
        // One that is replaced is told so: nobody looks after it any more.
        open.iter().for_each(|feed| feed.is_at(0, Some(horizon)));
        let open = open.filter(|feed| feed.is_alive_in(&horizon.epoch));
        open.unwrap_or_else(|| {
            let feed = Arc::new(Feed::new(self.store.clone(), tenant, horizon));
            feeds.insert(tenant, Arc::downgrade(&feed));
            feed
        })
    }

    fn open_feeds(&self) -> Vec<Arc<Feed>> {
        lock(&self.feeds)
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }
}
