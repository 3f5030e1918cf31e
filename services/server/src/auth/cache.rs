//! Credentials seen a moment ago, so that a burst of calls asks the store once.

use std::sync::Arc;

use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_store::Credential;
use cairn_wire::Problem;
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
                .support_invalidation_closures()
                .build(),
        )
    }

    /// Forgets every credential of a tenant, because rights in it have changed. One that is being
    /// looked up at this moment may stay for its time.
    pub fn forget(&self, tenant: TenantId) {
        let of_tenant = move |_: &[u8; 32], seen: &Arc<Credential>| seen.tenant == tenant;
        // Fails only for a cache that takes no such question.
        drop(self.0.invalidate_entries_if(of_tenant));
    }

    /// The credential of this hash, as it was seen a moment ago or as `find` verifies it now.
    /// Calls that come meanwhile wait for the same answer.
    ///
    /// # Errors
    /// Those of `find`, which is asked again next time.
    pub async fn get_or_find<F>(
        &self,
        hash: [u8; 32],
        find: impl FnOnce() -> F,
    ) -> Result<Arc<Credential>, Problem>
    where
        F: Future<Output = Result<Arc<Credential>, Problem>>,
    {
        if let Some(seen) = self.0.get(&hash).await {
            return Ok(seen);
        }
        // The search is rare and its state large: apart, it does not weigh on every request.
        let found = Box::pin(self.0.try_get_with(hash, find())).await;
        found.map_err(Arc::unwrap_or_clone)
    }
}

impl Default for CredentialCache {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use cairn_domain::ids::PrincipalId;
    use cairn_domain::scope::Scopes;
    use cairn_wire::Code;
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "no store stands behind this test"
    )]
    fn credential() -> Arc<Credential> {
        Arc::new(Credential {
            tenant: TenantId::verified(1, Uuid::nil()),
            credential: Uuid::nil(),
            principal: PrincipalId {
                key: 1,
                uuid: Uuid::nil(),
            },
            principal_name: "ada".to_owned(),
            is_service: false,
            role: None,
            secret_hash: [0; 32],
            scopes: Scopes::default(),
            project: None,
            expires_at: DateTime::UNIX_EPOCH,
            last_used_at: None,
            revoked: false,
            member_removed: false,
        })
    }

    #[tokio::test]
    async fn calls_that_come_together_ask_once() {
        let cache = CredentialCache::new();
        let asked = AtomicU32::new(0);
        let find = || async {
            asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(credential())
        };
        let (one, two, three) = tokio::join!(
            cache.get_or_find([1; 32], find),
            cache.get_or_find([1; 32], find),
            cache.get_or_find([2; 32], find),
        );
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        cache.get_or_find([1; 32], find).await.expect("kept");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn what_a_tenant_changed_is_asked_again() {
        let cache = CredentialCache::new();
        let asked = AtomicU32::new(0);
        let find = || async {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(credential())
        };
        let seen = cache.get_or_find([1; 32], find).await.expect("found");
        cache.forget(seen.tenant);
        cache.get_or_find([1; 32], find).await.expect("found");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let cache = CredentialCache::new();
        let away = || async { Err(Problem::fault(Code::StoreUnavailable)) };
        let failed = cache.get_or_find([1; 32], away).await.expect_err("away");
        assert_eq!(failed.code, Code::StoreUnavailable);
        let found = cache
            .get_or_find([1; 32], || async { Ok(credential()) })
            .await;
        assert!(found.is_ok());
    }
}
