//! The task of one stream of answers: it takes what waits, here and on the bus, hands it to the
//! connection, and ends for any reason that ends a stream.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::HeaderMap;
use cairn_domain::limits;
use cairn_store::bus::AnswerStream;
use hyper::body::Bytes;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::super::body::Lines;
use super::super::follower::{End, LAGGED, SHUTDOWN, every, said_at_the_end, why_refused};
use super::Open;
use crate::app::App;
use crate::auth::{Caller, layer};
use crate::lock::lock;
use cairn_wire::Code;

/// Where streams of answers are asked for: what lets a caller in there is verified again.
const PATH: &str = "/sse";
const HEARTBEAT: &[u8] = b": \n\n";

/// One stream.
pub(super) struct Follower {
    app: Arc<App>,
    caller: Caller,
    headers: HeaderMap,
    stream: AnswerStream,
    open: Arc<Open>,
    lines: Lines,
    /// What is said before all else.
    hello: Option<String>,
    verified_at: Instant,
    /// Answers that were taken but may still lie in the box.
    taken: HashSet<String>,
}

impl Follower {
    pub fn new(
        app: &Arc<App>,
        caller: Caller,
        headers: HeaderMap,
        (stream, open): (AnswerStream, Arc<Open>),
        lines: Lines,
        hello: String,
    ) -> Self {
        Self {
            app: Arc::clone(app),
            caller,
            headers,
            stream,
            open,
            lines,
            hello: Some(hello),
            verified_at: Instant::now(),
            taken: HashSet::new(),
        }
    }

    /// Goes on until the stream ends.
    pub async fn run(mut self) {
        let stop = self.app.streams.stop.clone();
        let sender = self.lines.sender.clone();
        let end = tokio::select! {
            biased;
            () = stop.cancelled() => End::Code(SHUTDOWN),
            () = sender.closed() => End::Gone,
            end = self.follow() => end,
        };
        if let End::Code(code) = end {
            // What was answered before the end is still said, to whoever may still hear it.
            if code == SHUTDOWN {
                self.take_mail().await;
            }
            let mut last = match code {
                SHUTDOWN => self.next_piece(),
                _ => String::new(),
            };
            last.push_str(&said_at_the_end(code));
            self.lines.end(Bytes::from(last));
        }
    }

    async fn follow(&mut self) -> End {
        let mut recheck = every(limits::STREAM_RECHECK);
        let mut heartbeat = every(limits::STREAM_HEARTBEAT);
        let mut beats = false;
        let mut waits_since = None;
        loop {
            let wants = beats || self.hello.is_some() || !lock(&self.open.queue).events.is_empty();
            let since = match wants {
                true => *waits_since.get_or_insert_with(Instant::now),
                false => Instant::now(),
            };
            if lock(&self.open.queue).bytes > limits::STREAM_UNSENT_BYTES {
                return End::Code(LAGGED);
            }
            let sender = self.lines.sender.clone();
            let open = Arc::clone(&self.open);
            tokio::select! {
                biased;
                () = open.wake.notified() => {
                    let verify = std::mem::take(&mut lock(&open.queue).verify);
                    if verify && let Err(end) = self.verify().await {
                        return end;
                    }
                    if std::mem::take(&mut lock(&open.queue).has_mail) {
                        self.take_mail().await;
                    }
                }
                _ = recheck.tick() => {
                    if let Err(end) = self.verify().await {
                        return end;
                    }
                }
                permit = sender.reserve(), if wants => {
                    let Ok(permit) = permit else { return End::Gone };
                    waits_since = None;
                    let piece = self.next_piece();
                    let only_beats = std::mem::take(&mut beats) && piece.is_empty();
                    permit.send(match only_beats {
                        true => Bytes::from_static(HEARTBEAT),
                        false => Bytes::from(piece),
                    });
                }
                _ = heartbeat.tick() => {
                    beats = true;
                    self.take_mail().await;
                }
                () = sleep_until(since + limits::STREAM_STALL), if wants => {
                    return End::Code(LAGGED);
                }
            }
        }
    }

    /// All that waits, as events.
    fn next_piece(&mut self) -> String {
        let mut piece = self.hello.take().unwrap_or_default();
        let mut queue = lock(&self.open.queue);
        queue.bytes = 0;
        for message in queue.events.drain(..) {
            piece.push_str("event: message\ndata: ");
            piece.push_str(&message);
            piece.push_str("\n\n");
        }
        piece
    }

    /// Takes what other replicas have left, and says that the stream is there: Redis may have
    /// forgotten it.
    async fn take_mail(&mut self) {
        let bus = self.app.store.bus();
        drop(bus.open_answers(self.stream, &self.open.owner).await);
        let Ok(waiting) = bus.waiting_answers(self.stream).await else {
            // Asked again with the next heartbeat, or when the way to Redis is back.
            return;
        };
        let ids: Vec<String> = waiting.iter().map(|(id, _)| id.clone()).collect();
        for (id, texts) in waiting {
            if self.taken.insert(id) {
                self.open.push(texts.lines().map(str::to_owned).collect());
            }
        }
        if bus.drop_answers(self.stream, &ids).await.is_ok() {
            self.taken.retain(|id| !ids.contains(id));
        }
    }

    /// Makes sure that the reader still may.
    async fn verify(&mut self) -> Result<(), End> {
        let app = Arc::clone(&self.app);
        let verifying = async {
            let _permit = app.streams.verifying.acquire().await;
            layer::verify(&app, &self.headers, PATH).await
        };
        let until = self.verified_at + limits::STREAM_UNVERIFIED;
        let verified = timeout_at(until, verifying).await;
        match verified.map_err(|_| End::Code(Code::StoreUnavailable.name()))? {
            Ok(caller) => {
                // With other rights it would be another stream.
                if super::owner(&caller) != super::owner(&self.caller) {
                    return Err(End::Code(Code::CredentialRevoked.name()));
                }
                self.verified_at = Instant::now();
                Ok(())
            }
            Err(failure) => why_refused(failure).map_or(Ok(()), Err),
        }
    }
}
