//! The bus: what the processes of one service tell each other, through Redis or, in a single
//! process, directly. Messages are hints: one that is lost costs time and never the truth, which
//! is asked of Postgres, sooner or later, by whoever depends on it.

mod answers;
mod shared;

use std::time::Duration;

use redis::RedisError;
use tokio::sync::{broadcast, mpsc, oneshot};
use uuid::Uuid;

use answers::Boxes;
pub use answers::{AnswerStream, Posted};
use shared::Line;

/// Messages that a listener may lag behind before it is told that it missed some.
const HEARD: usize = 1_024;
/// Messages that wait for Redis; more are dropped.
const QUEUED: usize = 4_096;
/// How long [`Bus::flush`] waits.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// What is told. It carries names of tenants and streams, and nothing of what they remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Message {
    /// Keys, grants, members or roles of this tenant have changed.
    RightsChanged(Uuid),
    /// This tenant has a new position.
    Moved(Uuid),
    /// Answers wait for this stream.
    Answered(AnswerStream),
    /// Messages may have been lost: whatever waits for one looks for itself. Told to the listeners
    /// of a process alone, never sent.
    Missed,
}

impl Message {
    /// Its form on the way; none for what is not sent. What a process does not understand, of a
    /// newer version, it ignores.
    fn encode(self) -> Option<String> {
        match self {
            Self::RightsChanged(tenant) => Some(format!("rights:{tenant}")),
            Self::Moved(tenant) => Some(format!("moved:{tenant}")),
            Self::Answered(stream) => Some(format!("answered:{stream}")),
            Self::Missed => None,
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let (kind, named) = text.split_once(':')?;
        match kind {
            "rights" => Some(Self::RightsChanged(named.parse().ok()?)),
            "moved" => Some(Self::Moved(named.parse().ok()?)),
            "answered" => Some(Self::Answered(named.parse().ok()?)),
            _ => None,
        }
    }
}

/// The way to the others. Cheap to clone; all clones are one way.
#[derive(Clone)]
pub struct Bus {
    heard: broadcast::Sender<Message>,
    /// The way out of this process, if there is one.
    out: Option<mpsc::Sender<Parcel>>,
    /// Where answers wait for streams of other processes, if there are any.
    boxes: Option<Boxes>,
}

/// What waits for the way out.
enum Parcel {
    Message(Message),
    /// Answered once all that came before is on its way.
    Flush(oneshot::Sender<()>),
}

impl Bus {
    /// The bus of a process that is alone.
    #[must_use]
    pub fn local() -> Self {
        Self {
            heard: broadcast::channel(HEARD).0,
            out: None,
            boxes: None,
        }
    }

    /// The bus of all processes that use the Redis at `url`, a server or any node of a cluster.
    /// One that is away is connected to when it is back. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with the address, without a password in it.
    pub fn connect(url: &str) -> Result<Self, String> {
        Self::connect_with_prefix(url, "")
    }

    /// As [`Bus::connect`], with a text in front of the channel's name, so that tests can share
    /// one Redis.
    ///
    /// # Errors
    /// As [`Bus::connect`].
    pub fn connect_with_prefix(url: &str, prefix: &str) -> Result<Self, String> {
        let line = Line::new(url, prefix).map_err(|error: RedisError| error.to_string())?;
        let boxes = Boxes::new(url, prefix).map_err(|error| error.to_string())?;
        let (out, queue) = mpsc::channel(QUEUED);
        let heard = broadcast::channel(HEARD).0;
        tokio::spawn(shared::keep_connected(line, queue, heard.clone()));
        Ok(Self {
            heard,
            out: Some(out),
            boxes: Some(boxes),
        })
    }

    /// Tells everybody, the listeners of this process at once. Nobody is waited for; if the others
    /// cannot be reached they are told later, or never.
    pub fn publish(&self, message: Message) {
        // Nobody may be listening.
        drop(self.heard.send(message));
        if let Some(out) = &self.out
            && out.try_send(Parcel::Message(message)).is_err()
        {
            tracing::debug!("a message to the other replicas was dropped");
        }
    }

    /// What is told from now on, by this process and by others. A listener that is too slow misses
    /// some; it learns that by the error of its receiver.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Message> {
        self.heard.subscribe()
    }

    /// Waits until all that was published is on its way, for two seconds at most: for a process
    /// that is about to end. Whether it is on its way.
    pub async fn flush(&self) -> bool {
        let Some(out) = &self.out else { return true };
        let flushed = async {
            let (sender, done) = oneshot::channel();
            out.send(Parcel::Flush(sender)).await.ok()?;
            done.await.ok()
        };
        let flushed = tokio::time::timeout(FLUSH_TIME, flushed).await;
        flushed.is_ok_and(|done| done.is_some())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn messages_read_back_and_unknown_ones_are_none() {
        let tenant = Uuid::from_u128(7);
        let stream = AnswerStream::generate(&mut StdRng::seed_from_u64(1));
        for message in [
            Message::RightsChanged(tenant),
            Message::Moved(tenant),
            Message::Answered(stream),
        ] {
            let sent = message.encode().expect("sent");
            assert_eq!(Message::decode(&sent), Some(message));
        }
        assert_eq!(Message::Missed.encode(), None);
        for text in [
            "",
            "moved",
            "moved:",
            "later:x",
            "answered:x",
            &format!("later:{tenant}"),
        ] {
            assert_eq!(Message::decode(text), None, "{text}");
        }
    }
}
