//! Buckets in Redis, shared by all replicas. A call is one script over keys of one slot, and is
//! waited for a moment only: a Redis that does not answer holds nobody up.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cairn_domain::limits;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind};

use super::{Draw, Drawn};
use crate::redis_link::RedisLink;

const TAKE: Script = Script {
    text: include_str!("take.lua"),
    sha1: "360b6d1c3160ade3a6194081f40dbb4e399767ab",
};

/// How long a Redis that did not answer is left alone. Then one call finds out whether it is back.
const REST: Duration = Duration::from_secs(1);

/// What is done in one step.
pub(super) struct Script {
    pub text: &'static str,
    /// What Redis calls it, so that it need not be sent with each call. Were it wrong, every call
    /// would send the script.
    pub sha1: &'static str,
}

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
        let fill = |take: &mut Cmd| {
            take.arg(draws.len());
            for draw in draws {
                take.arg(self.key(&draw.key));
            }
            for draw in draws {
                take.arg(draw.bucket.interval).arg(draw.bucket.burst);
                take.arg(draw.told).arg(draw.cost);
            }
        };
        let answer: Vec<i64> = self.run(tag, &TAKE, fill).await?;
        let (granted, used) = answer.split_first()?;
        #[expect(clippy::cast_precision_loss, reason = "microseconds of some minutes")]
        let used = used.iter().map(|used| *used as f64).collect();
        Some(Drawn {
            is_granted: *granted == 1,
            used,
        })
    }

    /// A key as it stands in Redis.
    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Runs a script, which may happen twice, over keys that carry `tag`; `None` while Redis is
    /// away. `fill` adds their number, the keys and what is to be done with them.
    pub async fn run<T: FromRedisValue>(
        &self,
        tag: &str,
        script: &Script,
        fill: impl Fn(&mut Cmd),
    ) -> Option<T> {
        if self.is_resting() {
            return None;
        }
        let answer = tokio::time::timeout(self.patience, self.ask(tag, script, fill)).await;
        if let Ok(Ok(answer)) = answer {
            self.rest(None);
            return Some(answer);
        }
        self.rest(Some(Instant::now() + REST));
        None
    }

    async fn ask<T: FromRedisValue>(
        &self,
        tag: &str,
        script: &Script,
        fill: impl Fn(&mut Cmd),
    ) -> RedisResult<T> {
        let command = |verb: &str, script: &str| {
            let mut command = redis::cmd(verb);
            command.arg(script);
            fill(&mut command);
            command
        };
        let slot = format!("{{{tag}}}");
        let known = command("EVALSHA", script.sha1);
        match self.link.ask(&slot, &known).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let whole = command("EVAL", script.text);
                self.link.ask(&slot, &whole).await
            }
            answer => answer,
        }
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
