//! Rendered contexts in Redis, where all replicas find them. Each stands under a name that no
//! write leaves valid, so nothing is ever invalidated; what nobody asks for any more frees its
//! room within a day. Without Redis every context is rendered anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cairn_domain::ids::TenantId;
use chrono::{DateTime, Utc};
use redis::Cmd;
use sha2::{Digest, Sha256};

use crate::redis_link::RedisLink;
use cairn_domain::hex::hex;

/// Rendering takes a few milliseconds: waiting much longer for Redis would be slower than that.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a Redis that did not answer is left alone.
const REST_MS: i64 = 5_000;
/// How long an entry takes room, in seconds.
const LIFE_SECONDS: u64 = 24 * 60 * 60;

/// The cache of all replicas. Cheap to clone.
#[derive(Clone)]
pub struct ContextCache {
    link: RedisLink,
    prefix: String,
    patience: Duration,
    /// Until when Redis is left alone, in milliseconds since 1970.
    rests_until: Arc<AtomicI64>,
}

impl ContextCache {
    /// A cache in the Redis at `url`. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with the address, without a password in it.
    pub fn connect(url: &str) -> Result<Self, String> {
        Self::connect_with_prefix(url, "")
    }

    /// As [`ContextCache::connect`], with a text in front of every key, so that tests can share
    /// one Redis.
    ///
    /// # Errors
    /// As [`ContextCache::connect`].
    pub fn connect_with_prefix(url: &str, prefix: &str) -> Result<Self, String> {
        Ok(Self {
            link: RedisLink::new(url).map_err(|error| error.to_string())?,
            prefix: prefix.to_owned(),
            patience: PATIENCE,
            rests_until: Arc::default(),
        })
    }

    /// The same cache, waiting longer for Redis, for those who must know what it holds.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// What is kept under a name of a tenant; `None` also while Redis is away.
    pub async fn load(&self, tenant: TenantId, name: &str, now: DateTime<Utc>) -> Option<Vec<u8>> {
        let key = self.key(tenant, name);
        self.ask(&key, redis::cmd("GET").arg(&key), now).await?
    }

    /// Keeps something under a name of a tenant, if Redis takes it.
    pub async fn save(&self, tenant: TenantId, name: &str, value: &[u8], now: DateTime<Utc>) {
        let key = self.key(tenant, name);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(value).arg("EX").arg(LIFE_SECONDS);
        let _: Option<()> = self.ask(&key, &set, now).await;
    }

    async fn ask<T: redis::FromRedisValue>(
        &self,
        key: &str,
        command: &Cmd,
        now: DateTime<Utc>,
    ) -> Option<T> {
        let now = now.timestamp_millis();
        if now < self.rests_until.load(Ordering::Relaxed) {
            return None;
        }
        let answer = tokio::time::timeout(self.patience, self.link.ask(key, command)).await;
        match answer {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(_)) | Err(_) => {
                self.rests_until.store(now + REST_MS, Ordering::Relaxed);
                tracing::warn!("the context cache does not answer; contexts are rendered anew");
                None
            }
        }
    }

    fn key(&self, tenant: TenantId, name: &str) -> String {
        let digest = Sha256::digest(name.as_bytes());
        let digest = hex(&digest[..16]);
        format!("{}cairn:context:{}:{digest}", self.prefix, tenant.uuid())
    }
}
