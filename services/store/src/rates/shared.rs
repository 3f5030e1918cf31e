//! Buckets in Redis, shared by all replicas. A call is one script over keys of one slot, and is
//! waited for a moment only: a Redis that does not answer holds nobody up.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cairn_domain::limits;
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind};

use super::{Draw, Drawn};
use crate::redis_link::RedisLink;

const TAKE: &str = include_str!("take.lua");
/// What Redis calls the script, so that it need not be sent with each call. Were it wrong, every
/// call would send the script.
const TAKE_SHA1: &str = "360b6d1c3160ade3a6194081f40dbb4e399767ab";

/// How long a Redis that did not answer is left alone. Then one call finds out whether it is back.
const REST: Duration = Duration::from_secs(1);

pub(super) struct SharedBuckets {
    link: RedisLink,
    prefix: String,
    /// How long a call waits.
    pub patience: Duration,
    /// Until when Redis is left alone.
    rests_until: Mutex<Option<Instant>>,
}

impl SharedBuckets {
    pub fn connect(url: &str, prefix: &str) -> Result<Self, String> {
        Ok(Self {
            link: RedisLink::new(url).map_err(|error| error.to_string())?,
            prefix: prefix.to_owned(),
            patience: limits::RATE_TIME,
            rests_until: Mutex::default(),
        })
    }

    /// Takes from buckets whose keys carry `tag`; `None` while Redis is away. A call that is sent
    /// twice, because its connection broke, takes twice: that is a token or a few.
    pub async fn draw(&self, tag: &str, draws: &[Draw]) -> Option<Drawn> {
        if self.is_resting() {
            return None;
        }
        let answer = tokio::time::timeout(self.patience, self.ask(tag, draws)).await;
        let answer: Vec<i64> = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => {
                self.rest(Some(Instant::now() + REST));
                return None;
            }
        };
        self.rest(None);
        let (granted, used) = answer.split_first()?;
        #[expect(clippy::cast_precision_loss, reason = "microseconds of some minutes")]
        let used = used.iter().map(|used| *used as f64).collect();
        Some(Drawn {
            is_granted: *granted == 1,
            used,
        })
    }

    async fn ask(&self, tag: &str, draws: &[Draw]) -> RedisResult<Vec<i64>> {
        let slot = format!("{{{tag}}}");
        let known = self.command("EVALSHA", TAKE_SHA1, draws);
        match self.link.ask(&slot, &known).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let whole = self.command("EVAL", TAKE, draws);
                self.link.ask(&slot, &whole).await
            }
            answer => answer,
        }
    }

    fn command(&self, verb: &str, script: &str, draws: &[Draw]) -> Cmd {
        let mut take = redis::cmd(verb);
        take.arg(script).arg(draws.len());
        for draw in draws {
            take.arg(format!("{}{}", self.prefix, draw.key));
        }
        for draw in draws {
            take.arg(draw.bucket.interval).arg(draw.bucket.burst);
            take.arg(draw.told).arg(draw.cost);
        }
        take
    }

    /// Whether Redis is left alone. The first call after its rest tries it for all others, which
    /// do not wait for what comes of it.
    fn is_resting(&self) -> bool {
        let mut rests_until = self.lock();
        let now = Instant::now();
        match *rests_until {
            None => false,
            Some(until) if now < until => true,
            Some(_) => {
                *rests_until = Some(now + REST);
                false
            }
        }
    }

    fn rest(&self, until: Option<Instant>) {
        *self.lock() = until;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // Nothing panics while it holds the lock.
        self.rests_until
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
