//! The follower: the task of one stream. It waits for what is new, for the connection to take it,
//! and for any reason to end; and it decides of each change whether its reader may be told, by
//! rights that it has verified within the last seconds.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use cairn_domain::project::Reader;
use cairn_domain::scope::Scope;
use cairn_domain::{Rejection, limits};
use cairn_store::changes::{Told, Whose};
use cairn_wire::Code;
use cairn_wire::changes::{StreamAsk, StreamEnd};
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::{
    Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until, timeout_at,
};

use super::body::Lines;
use super::feed::{Feed, Head, LOOK, Page};
use crate::actions::projects::place;
use crate::actions::{Failure, changes};
use crate::app::App;
use crate::auth::{Caller, layer};

/// Where streams are asked for: what lets a caller in there is verified again.
const PATH: &str = "/v1/stream";
/// What a stream says that is too far ahead of its reader.
pub(super) const LAGGED: &str = "lagged";
/// What a stream says whose replica goes away.
pub(super) const SHUTDOWN: &str = "shutdown";
/// The bytes of an event around its texts, about.
pub(super) const EVENT_BYTES: usize = 400;
/// How long a stream waits after the store did not answer.
const PAUSE: Duration = Duration::from_millis(500);
/// Bytes of one piece that is handed to the connection.
const PIECE: usize = 64 * 1024;

/// One stream.
pub(super) struct Follower {
    app: Arc<App>,
    caller: Caller,
    headers: HeaderMap,
    project: Option<String>,
    feed: Arc<Feed>,
    lines: Lines,
    /// The last position that its reader was told, or passed by.
    cursor: i64,
    verified_at: Instant,
    /// Whose eyes it has, and after how many changes of projects they were found; none after
    /// rights have changed.
    eyes: Option<(Reader, u64)>,
    /// Whether it has come as far as what the feed keeps.
    is_live: bool,
    unsent: Unsent,
}

/// What waits for a connection that does not take it.
#[derive(Default)]
struct Unsent {
    /// Up to which position it was counted.
    upto: i64,
    bytes: usize,
    since: Option<Instant>,
}

/// Why a stream ends.
pub(super) enum End {
    /// It says this.
    Code(&'static str),
    /// Nobody listens any more.
    Gone,
}

/// What the next piece is.
enum Next {
    /// There is one.
    Piece(Bytes),
    /// Nothing for this reader.
    Nothing,
    /// The store does not tell.
    Later,
}

impl Follower {
    pub fn new(
        app: &Arc<App>,
        caller: Caller,
        headers: HeaderMap,
        ask: StreamAsk,
        feed: Arc<Feed>,
        lines: Lines,
    ) -> Self {
        Self {
            app: Arc::clone(app),
            caller,
            headers,
            project: ask.project,
            feed,
            lines,
            cursor: ask.since.after,
            verified_at: Instant::now(),
            eyes: None,
            is_live: false,
            unsent: Unsent::default(),
        }
    }

    /// Goes on until the stream ends.
    pub async fn run(mut self) {
        let stop = self.app.streams.stop.clone();
        let sender = self.lines.sender.clone();
        // Whatever it waits for: nothing keeps a stream that is to end.
        let end = tokio::select! {
            biased;
            () = stop.cancelled() => Err(End::Code(SHUTDOWN)),
            () = sender.closed() => Err(End::Gone),
            end = self.follow() => end,
        };
        if let Err(End::Code(code)) = end {
            self.lines.end(Bytes::from(said_at_the_end(code)));
        }
    }

    async fn follow(&mut self) -> Result<(), End> {
        let (mut heads, mut rights) = (self.feed.heads(), self.feed.rights());
        let mut recheck = every(limits::STREAM_RECHECK);
        let mut heartbeat = every(limits::STREAM_HEARTBEAT);
        // The first comment tells whoever stands between that something comes.
        let mut beats = true;
        loop {
            let head = *heads.borrow_and_update();
            if head.is_over {
                return Err(End::Code(Code::PositionUnknown.name()));
            }
            let is_behind = head.latest > self.cursor;
            let wants = beats || is_behind;
            let since = match wants {
                true => *self.unsent.since.get_or_insert_with(Instant::now),
                false => Instant::now(),
            };
            let sender = self.lines.sender.clone();
            tokio::select! {
                biased;
                _ = rights.changed() => self.verify().await?,
                _ = recheck.tick() => self.verify().await?,
                permit = sender.reserve(), if wants => {
                    let permit = permit.map_err(|_| End::Gone)?;
                    self.unsent.since = None;
                    if std::mem::take(&mut beats) {
                        permit.send(Bytes::from_static(b": \n\n"));
                    } else {
                        match self.next().await? {
                            Next::Piece(piece) => permit.send(piece),
                            Next::Nothing => {}
                            Next::Later => sleep(PAUSE).await,
                        }
                    }
                }
                _ = heads.changed() => {
                    if is_behind && self.is_lagging(&heads).await {
                        return Err(End::Code(LAGGED));
                    }
                }
                _ = heartbeat.tick() => beats = true,
                () = sleep_until(since + limits::STREAM_STALL), if wants => {
                    return Err(End::Code(LAGGED));
                }
            }
        }
    }

    /// Makes sure that the reader still may.
    async fn verify(&mut self) -> Result<(), End> {
        let app = Arc::clone(&self.app);
        let verifying = async {
            let _permit = app.streams.verifying.acquire().await;
            let caller = layer::verify(&app, &self.headers, PATH).await?;
            caller.require(Scope::MemoryRead)?;
            Ok(caller)
        };
        // Nothing is shown until the store tells again, but not for ever.
        let until = self.verified_at + limits::STREAM_UNVERIFIED;
        let verified: Result<Caller, Failure> = timeout_at(until, verifying)
            .await
            .map_err(|_| End::Code(Code::StoreUnavailable.name()))?;
        match verified {
            Ok(caller) => {
                let is_same = caller.project_limit == self.caller.project_limit;
                self.eyes = self.eyes.take().filter(|_| is_same);
                self.caller = caller;
                self.verified_at = Instant::now();
                Ok(())
            }
            Err(failure) => why_refused(failure).map_or(Ok(()), Err),
        }
    }

    /// What comes next, read at this moment, for a connection that takes it.
    async fn next(&mut self) -> Result<Next, End> {
        if self.verified_at.elapsed() >= limits::CREDENTIAL_CACHE {
            self.verify().await?;
            if self.verified_at.elapsed() >= limits::CREDENTIAL_CACHE {
                return Ok(Next::Later);
            }
        }
        if self.feed.reaches(self.cursor) && self.feed.look().await.is_err() {
            return Ok(Next::Later);
        }
        let next = match self.feed.after(self.cursor) {
            Some(page) => self.next_of_feed(page).await,
            None => self.next_of_store().await,
        };
        next.or_else(|failure| {
            if let Some(cause) = failure.cause() {
                tracing::debug!(cause, "a stream has to wait");
            }
            match failure.into_problem().code {
                Code::Internal => Err(End::Code(Code::Internal.name())),
                code if code.status() >= 500 => Ok(Next::Later),
                code => Err(End::Code(code.name())),
            }
        })
    }

    async fn next_of_feed(&mut self, page: Page) -> Result<Next, Failure> {
        self.is_live = true;
        let known = self.eyes.take();
        let reader = match known.filter(|(_, projects)| *projects == page.projects) {
            Some((reader, _)) => reader,
            None => self.find_eyes().await?,
        };
        let evidence = self.caller.view().evidence;
        let mut piece = Vec::new();
        let mut end = page.end;
        for kept in &page.kept {
            if piece.len() >= PIECE {
                end = kept.change.position - 1;
                break;
            }
            if let Some(event) = kept.event(&reader, page.prompts_shared, evidence)? {
                piece.extend_from_slice(&event);
            }
        }
        self.cursor = end;
        self.eyes = Some((reader, page.projects));
        Ok(Next::of(piece))
    }

    async fn find_eyes(&self) -> Result<Reader, Failure> {
        let app = &self.app;
        let _permit = app.streams.reading.acquire().await;
        let mut tx = app.store.tenant(self.caller.tenant, "streams.eyes").await?;
        let found = place(&mut tx, &self.caller, self.project.as_deref()).await?;
        tx.commit().await?;
        Ok(found.reader)
    }

    /// Further back than what the feed keeps, each stream reads for itself.
    async fn next_of_store(&mut self) -> Result<Next, Failure> {
        self.is_live = false;
        let app = Arc::clone(&self.app);
        let permit = app.streams.reading.acquire().await;
        let mut tx = app.store.tenant(self.caller.tenant, "streams.read").await?;
        let reach = tx.reach_of_changes().await?;
        let reader = place(&mut tx, &self.caller, self.project.as_deref()).await?;
        let reader = reader.reader;
        let whose = Whose::Reader(&reader);
        let found = tx.changes(reach, self.cursor, LOOK, whose).await?;
        tx.commit().await?;
        drop(permit);
        if !self.feed.is_alive_in(&found.horizon.epoch) {
            return Err(Rejection::PositionUnknown.into());
        }
        let evidence = self.caller.view().evidence;
        let mut piece = Vec::new();
        for (position, told) in found.told(&reader) {
            piece.extend_from_slice(&event(position, told, evidence)?);
        }
        self.cursor = found.next;
        Ok(Next::of(piece))
    }

    /// Whether more waits for the connection than may. What is new is counted as it comes, for a
    /// stream that had come as far as that; one that is on its way from further back has not been
    /// sent it because it is not there yet.
    async fn is_lagging(&mut self, heads: &watch::Receiver<Head>) -> bool {
        if self.unsent.upto < self.cursor {
            self.unsent.upto = self.cursor;
            self.unsent.bytes = 0;
        }
        while self.is_live && self.unsent.upto < heads.borrow().latest {
            if self.feed.look().await.is_err() {
                return false;
            }
            let (Some(page), Some((reader, _))) = (self.feed.after(self.unsent.upto), &self.eyes)
            else {
                // It went by uncounted.
                self.is_live = false;
                return false;
            };
            let shared = page.prompts_shared;
            let told = page.kept.iter();
            let told = told.filter(|kept| kept.change.told(reader, shared).is_some());
            self.unsent.bytes += told.map(|kept| kept.bytes()).sum::<usize>();
            self.unsent.upto = page.end;
            if self.unsent.bytes > limits::STREAM_UNSENT_BYTES {
                return true;
            }
        }
        false
    }
}

impl Next {
    fn of(piece: Vec<u8>) -> Self {
        match piece.is_empty() {
            true => Self::Nothing,
            false => Self::Piece(Bytes::from(piece)),
        }
    }
}

/// How a stream ends whose reader could not be verified anew; it goes on if nobody could tell.
pub(super) fn why_refused(failure: Failure) -> Option<End> {
    match failure.into_problem().code {
        // A key that is gone was one.
        Code::Unauthenticated => Some(End::Code(Code::CredentialRevoked.name())),
        code if code.status() >= 500 => None,
        code => Some(End::Code(code.name())),
    }
}

/// The last event of a stream.
pub(super) fn said_at_the_end(code: &'static str) -> String {
    let code = code.to_owned();
    let end = serde_json::to_string(&StreamEnd { code }).unwrap_or_default();
    format!("event: end\ndata: {end}\n\n")
}

pub(super) fn every(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// A change as an event of a stream.
///
/// # Errors
/// A fault of ours, if what is stored cannot be read.
pub(super) fn event(position: i64, told: &Told, evidence: bool) -> Result<Bytes, Failure> {
    let item = changes::item(position, told.clone(), evidence)?;
    let item = serde_json::to_string(&item).map_err(|e| Failure::fault(e.to_string()))?;
    let event = format!("id: {position}\nevent: change\ndata: {item}\n\n");
    Ok(Bytes::from(event))
}
