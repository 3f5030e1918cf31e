//! Credentials seen a moment ago, so that a burst of calls asks the store once.

use std::sync::Arc;

use cairn_domain::limits;
use cairn_store::Credential;
use moka::future::Cache;

/// Credentials kept in memory at once.
const CAPACITY: u64 = 10_000;

/// Verified credentials by the hash of their key, for at most five seconds: a revoked one ends
/// within that time on every replica.
pub struct CredentialCache(Cache<[u8; 32], Arc<Credential>>);

impl CredentialCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        let cache = Cache::builder();
        Self(
            cache
                .max_capacity(CAPACITY)
                .time_to_live(limits::CREDENTIAL_CACHE)
                .build(),
        )
    }

    /// The credential of this hash, if it was seen a moment ago.
    pub async fn find(&self, hash: &[u8; 32]) -> Option<Arc<Credential>> {
        self.0.get(hash).await
    }

    /// Remembers a credential whose secret has been verified.
    pub async fn keep(&self, hash: [u8; 32], credential: Arc<Credential>) {
        self.0.insert(hash, credential).await;
    }
}

impl Default for CredentialCache {
    fn default() -> Self {
        Self::new()
    }
}
