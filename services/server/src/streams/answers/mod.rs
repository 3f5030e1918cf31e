//! Streams of answers, for hosts that hear them on another connection than the one on which they
//! ask (HTTP+SSE of 2024-11-05, contract 15.3).
//!
//! A question is answered by whichever replica it comes to. The answer is handed to the stream at
//! once if it is held here, and is left for it on the bus otherwise. A stream belongs to the
//! principal that opened it, and to its project if its credential is limited to one.

mod follower;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::http::HeaderMap;
use cairn_domain::ids::TenantId;
use cairn_domain::{Rejection, limits};
use cairn_store::bus::{AnswerStream, Bus, Posted};
use cairn_wire::{Code, Problem};
use tokio::sync::Notify;
use uuid::Uuid;

use super::seats::{RETRY_SECONDS, Room, Seat, Seats};
use super::{Body, Streams, body};
use crate::actions::Failure;
use crate::app::App;
use crate::auth::Caller;
use crate::lock::lock;
use follower::Follower;

/// The streams of answers that this process holds.
#[derive(Default)]
pub(super) struct Answers {
    open: Arc<Mutex<HashMap<AnswerStream, Arc<Open>>>>,
    pub seats: Seats,
}

/// One that is open.
pub(super) struct Open {
    owner: String,
    tenant: TenantId,
    queue: Mutex<Queue>,
    /// Something waits, here or on the bus, or rights have changed.
    wake: Notify,
}

/// What waits for the connection, and what is to be looked after.
#[derive(Default)]
struct Queue {
    events: VecDeque<String>,
    bytes: usize,
    has_mail: bool,
    verify: bool,
}

/// An answer that goes to a stream.
pub struct Answer {
    /// Makes it one answer however often it is sent.
    pub id: Uuid,
    /// One JSON text a message.
    pub messages: Vec<String>,
}

impl Answers {
    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty() && self.seats.is_empty()
    }

    /// There may be an answer on the bus.
    pub fn wake(&self, stream: AnswerStream) {
        if let Some(open) = self.find(stream) {
            open.look(false);
        }
    }

    /// Anything may have happened to any stream.
    pub fn wake_all(&self) {
        for open in lock(&self.open).values() {
            open.look(true);
        }
    }

    /// Verifies the streams of a tenant anew.
    pub fn rights_changed(&self, tenant: Uuid) {
        let open = lock(&self.open);
        let of_tenant = open.values().filter(|open| open.tenant.uuid() == tenant);
        of_tenant.for_each(|open| open.look(true));
    }

    fn find(&self, stream: AnswerStream) -> Option<Arc<Open>> {
        lock(&self.open).get(&stream).cloned()
    }
}

impl Open {
    fn look(&self, verify: bool) {
        let mut queue = lock(&self.queue);
        queue.has_mail = true;
        queue.verify |= verify;
        self.wake.notify_one();
    }

    /// Whether there was room for it.
    fn push(&self, messages: Vec<String>) -> bool {
        let mut queue = lock(&self.queue);
        for message in messages {
            queue.bytes += message.len();
            queue.events.push_back(message);
        }
        self.wake.notify_one();
        queue.bytes <= limits::STREAM_UNSENT_BYTES
    }
}

impl Streams {
    /// Opens a stream of answers for a caller, who came with these headers. Its first event names
    /// `endpoint`, behind which stands the stream's name.
    ///
    /// # Errors
    /// `rate_limited` for more than a member may have, `shutting_down`.
    pub async fn open_answers(
        app: &Arc<App>,
        caller: Caller,
        headers: HeaderMap,
        endpoint: &str,
    ) -> Result<Body, Failure> {
        let streams = &app.streams;
        if app.is_draining() || streams.stop.is_cancelled() {
            return Err(Problem::fault(Code::ShuttingDown).retry_after(1).into());
        }
        let seat = Seat::take(app, &caller, Room::Answers).await?;
        #[expect(clippy::disallowed_methods, reason = "the name is a secret")]
        let stream = AnswerStream::generate(&mut rand::rng());
        let open = Arc::new(Open {
            owner: owner(&caller),
            tenant: caller.tenant,
            queue: Mutex::default(),
            wake: Notify::new(),
        });
        lock(&streams.answers.open).insert(stream, Arc::clone(&open));
        let held = Held {
            app: Arc::clone(app),
            stream,
        };
        // While Redis is away only this replica knows of it; it says so again later.
        drop(app.store.bus().open_answers(stream, &open.owner).await);
        let (body, lines) = body::channel();
        let hello = format!("event: endpoint\ndata: {endpoint}?sid={stream}\n\n");
        let follower = Follower::new(app, caller, headers, (stream, open), lines, hello);
        streams.tasks.spawn(async move {
            tokio::select! {
                () = follower.run() => {}
                () = seat.keep() => {}
            }
            held.close().await;
            seat.leave().await;
        });
        Ok(body)
    }

    /// Makes sure that a stream is there and that a caller may ask for answers on it.
    ///
    /// # Errors
    /// `not_found` for one that is closed or somebody else's; `store_unavailable` if only Redis
    /// could tell.
    pub async fn check_answers(
        &self,
        bus: &Bus,
        caller: &Caller,
        stream: AnswerStream,
    ) -> Result<(), Failure> {
        let known = match self.answers.find(stream) {
            Some(open) => Some(open.owner.clone()),
            None => bus.owner_of_answers(stream).await?,
        };
        match known {
            Some(known) if known == owner(caller) => Ok(()),
            _ => Err(unknown()),
        }
    }

    /// Sends an answer to a stream, wherever it is held.
    ///
    /// # Errors
    /// As [`Streams::check_answers`]; `overloaded` if its reader takes nothing.
    pub async fn send_answer(
        &self,
        bus: &Bus,
        caller: &Caller,
        stream: AnswerStream,
        answer: Answer,
    ) -> Result<(), Failure> {
        let overloaded = || Problem::fault(Code::Overloaded).retry_after(RETRY_SECONDS);
        let owner = owner(caller);
        if let Some(open) = self.answers.find(stream) {
            return match open.owner == owner {
                true if open.push(answer.messages) => Ok(()),
                true => Err(overloaded().into()),
                false => Err(unknown()),
            };
        }
        let (id, texts) = (answer.id.to_string(), answer.messages.join("\n"));
        match bus.post_answer(stream, &owner, &id, &texts).await? {
            Posted::Taken => Ok(()),
            Posted::Unknown => Err(unknown()),
            Posted::Full => Err(overloaded().into()),
        }
    }
}

/// A stream among those that are open; closed when it is dropped, whatever happened to its task.
struct Held {
    app: Arc<App>,
    stream: AnswerStream,
}

impl Held {
    async fn close(self) {
        let (app, stream) = (Arc::clone(&self.app), self.stream);
        drop(self);
        // What cannot be said now is forgotten by itself.
        drop(app.store.bus().close_answers(stream).await);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.app.streams.answers.open).remove(&self.stream);
    }
}

/// Whose a stream is: who may ask for answers on it, and for how much.
fn owner(caller: &Caller) -> String {
    let limit = caller.project_limit.as_ref().map(|limit| limit.id.key);
    let (tenant, principal) = (caller.tenant.uuid(), caller.principal.key);
    format!(
        "{tenant}/{principal}/{}",
        limit.map_or_else(|| "-".to_owned(), |id| id.to_string())
    )
}

fn unknown() -> Failure {
    Rejection::NotFound.into()
}
