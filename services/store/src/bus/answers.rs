//! Answers on their way to the process that holds the stream they are for: they wait in Redis, a
//! box a stream, until it has taken them, so that none is lost with a connection. The bus says
//! that there is something; whose a box is, is written beside it, and checked with every answer.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cairn_domain::limits;
use rand::Rng;
use redis::{Cmd, FromRedisValue};

use super::Bus;
use crate::StoreError;
use crate::redis_link::RedisLink;

const POST: &str = include_str!("post.lua");
/// How long a call waits for Redis.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a box outlives its last sign of life, in seconds.
const BOX_SECONDS: u64 = limits::STREAM_HEARTBEAT.as_secs() * 3;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Characters of an id: five bits each.
const ID_CHARS: usize = 24;

/// The name of a stream of answers: 120 random bits, that only its owner is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnswerStream([u8; ID_CHARS]);

impl AnswerStream {
    /// A new one.
    pub fn generate(rng: &mut impl Rng) -> Self {
        let mut id = [0; ID_CHARS];
        rng.fill_bytes(&mut id);
        Self(id.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }
}

impl fmt::Display for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl fmt::Debug for AnswerStream {
    /// Without the name, which lets in whoever has its owner's key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerStream")
    }
}

impl FromStr for AnswerStream {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let id: [u8; ID_CHARS] = text.as_bytes().try_into().map_err(|_| ())?;
        id.iter()
            .all(|byte| ALPHABET.contains(byte))
            .then_some(Self(id))
            .ok_or(())
    }
}

/// Where boxes are, for the processes of a service that are several.
#[derive(Clone)]
pub(super) struct Boxes {
    link: RedisLink,
    prefix: String,
}

impl Boxes {
    pub fn new(url: &str, prefix: &str) -> redis::RedisResult<Self> {
        Ok(Self {
            link: RedisLink::new(url)?,
            prefix: prefix.to_owned(),
        })
    }

    async fn ask<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> Result<T, StoreError> {
        let answer = tokio::time::timeout(PATIENCE, self.link.ask(key, command)).await;
        let answer = answer.map_err(|_| StoreError::Unavailable)?;
        answer.map_err(|error| {
            tracing::debug!(%error, "the boxes of answers cannot be reached");
            StoreError::Unavailable
        })
    }

    /// The keys of a stream, in one slot: whose it is, and what waits.
    fn keys(&self, stream: AnswerStream) -> [String; 2] {
        ["owner", "box"].map(|part| format!("{}cairn:answers:{{{stream}}}:{part}", self.prefix))
    }
}

/// What became of an answer that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It waits for the stream, whose process is told.
    Taken,
    /// There is no such stream of this owner.
    Unknown,
    /// Too much waits there already.
    Full,
}

/// Calls about streams that other processes hold. A process that is alone has none: it finds
/// nothing here.
impl Bus {
    /// Says whose a stream of this process is; to be said again with each heartbeat.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] while Redis is away.
    pub async fn open_answers(&self, stream: AnswerStream, owner: &str) -> Result<(), StoreError> {
        let Some(boxes) = &self.boxes else {
            return Ok(());
        };
        let [key, _] = boxes.keys(stream);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(owner).arg("EX").arg(BOX_SECONDS);
        boxes.ask(&key, &set).await
    }

    /// Forgets a stream and all that waits for it.
    ///
    /// # Errors
    /// As [`Bus::open_answers`]; then it is forgotten after a minute.
    pub async fn close_answers(&self, stream: AnswerStream) -> Result<(), StoreError> {
        let Some(boxes) = &self.boxes else {
            return Ok(());
        };
        let keys = boxes.keys(stream);
        boxes.ask(&keys[0], redis::cmd("DEL").arg(&keys)).await
    }

    /// Whose a stream is, of whichever process.
    ///
    /// # Errors
    /// As [`Bus::open_answers`].
    pub async fn owner_of_answers(
        &self,
        stream: AnswerStream,
    ) -> Result<Option<String>, StoreError> {
        let Some(boxes) = &self.boxes else {
            return Ok(None);
        };
        let [key, _] = boxes.keys(stream);
        boxes.ask(&key, redis::cmd("GET").arg(&key)).await
    }

    /// Leaves an answer for a stream of this owner and tells its process. `id` makes it one answer
    /// however often it is left.
    ///
    /// # Errors
    /// As [`Bus::open_answers`].
    pub async fn post_answer(
        &self,
        stream: AnswerStream,
        owner: &str,
        id: &str,
        answer: &str,
    ) -> Result<Posted, StoreError> {
        let Some(boxes) = &self.boxes else {
            return Ok(Posted::Unknown);
        };
        let keys = boxes.keys(stream);
        let mut post = redis::cmd("EVAL");
        post.arg(POST)
            .arg(2)
            .arg(&keys)
            .arg(owner)
            .arg(id)
            .arg(answer);
        post.arg(limits::ANSWERS_WAITING).arg(BOX_SECONDS);
        let became: i64 = boxes.ask(&keys[0], &post).await?;
        match became {
            0 => Ok(Posted::Unknown),
            1 => {
                self.publish(super::Message::Answered(stream));
                Ok(Posted::Taken)
            }
            _ => Ok(Posted::Full),
        }
    }

    /// What waits for a stream: ids and answers. It stays until [`Bus::drop_answers`].
    ///
    /// # Errors
    /// As [`Bus::open_answers`].
    pub async fn waiting_answers(
        &self,
        stream: AnswerStream,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let Some(boxes) = &self.boxes else {
            return Ok(Vec::new());
        };
        let [_, key] = boxes.keys(stream);
        boxes.ask(&key, redis::cmd("HGETALL").arg(&key)).await
    }

    /// Takes answers that were sent out of a stream's box.
    ///
    /// # Errors
    /// As [`Bus::open_answers`].
    pub async fn drop_answers(
        &self,
        stream: AnswerStream,
        ids: &[String],
    ) -> Result<(), StoreError> {
        let Some(boxes) = self.boxes.as_ref().filter(|_| !ids.is_empty()) else {
            return Ok(());
        };
        let [_, key] = boxes.keys(stream);
        boxes.ask(&key, redis::cmd("HDEL").arg(&key).arg(ids)).await
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_name_reads_back_and_nothing_else_is_one() {
        let stream = AnswerStream::generate(&mut StdRng::seed_from_u64(1));
        let text = stream.to_string();
        assert_eq!(text.len(), 24);
        assert_eq!(text.parse(), Ok(stream));
        for other in [
            "",
            "short",
            &text[1..],
            &format!("{text}a"),
            &text.to_uppercase(),
        ] {
            assert_eq!(other.parse::<AnswerStream>(), Err(()), "{other}");
        }
    }
}
