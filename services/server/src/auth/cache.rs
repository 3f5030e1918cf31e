//! Credentials seen a moment ago, so that a burst of calls asks the store once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cairn_domain::limits;
use cairn_store::Credential;
use cairn_wire::Problem;
use moka::future::Cache;
use tokio::time::Instant;
use uuid::Uuid;

use crate::lock::lock;

/// Credentials kept in memory at once.
const CAPACITY: u64 = 10_000;
/// How often a credential is looked up while its tenant's rights go on changing.
const ATTEMPTS: u32 = 3;

/// Verified credentials by the hash of their key, for at most five seconds from the moment at
/// which the store was asked: a revoked one ends within that time on every replica.
pub struct CredentialCache {
    seen: Cache<[u8; 32], Seen>,
    forgotten: Mutex<Forgotten>,
}

/// A credential as the store answered it.
#[derive(Clone)]
struct Seen {
    credential: Arc<Credential>,
    /// Before the question: what changed after this moment may be missing in the answer.
    asked_at: Instant,
}

/// Since when what is known of a tenant counts no more.
#[derive(Default)]
struct Forgotten {
    tenants: HashMap<Uuid, Instant>,
    /// The same for all tenants.
    everything: Option<Instant>,
}

impl CredentialCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        let seen = Cache::builder()
            .max_capacity(CAPACITY)
            .time_to_live(limits::CREDENTIAL_CACHE)
            .build();
        Self {
            seen,
            forgotten: Mutex::default(),
        }
    }

    /// Forgets every credential of a tenant, because rights in it have changed; those that are
    /// being looked up at this moment, too.
    pub fn forget(&self, tenant: Uuid) {
        let now = Instant::now();
        let mut forgotten = lock(&self.forgotten);
        // What was asked so long ago counts no more in any case.
        let is_recent = |at: &mut Instant| now - *at <= limits::CREDENTIAL_CACHE;
        forgotten.tenants.retain(|_, at| is_recent(at));
        forgotten.tenants.insert(tenant, now);
    }

    /// Forgets every credential, because it is not known in which tenants rights have changed.
    pub fn forget_all(&self) {
        lock(&self.forgotten).everything = Some(Instant::now());
    }

    /// The credential of this hash, as it was seen a moment ago or as `find` verifies it now.
    /// Calls that come meanwhile wait for the same answer.
    ///
    /// # Errors
    /// Those of `find`, which is asked again next time.
    pub async fn get_or_find<F>(
        &self,
        hash: [u8; 32],
        find: impl Fn() -> F,
    ) -> Result<Arc<Credential>, Problem>
    where
        F: Future<Output = Result<Arc<Credential>, Problem>>,
    {
        let mut attempt = 0;
        loop {
            if let Some(seen) = self.seen.get(&hash).await {
                if self.counts(&seen) {
                    return Ok(seen.credential);
                }
                self.seen.invalidate(&hash).await;
            }
            let look = async {
                let asked_at = Instant::now();
                let credential = find().await?;
                Ok(Seen {
                    credential,
                    asked_at,
                })
            };
            // The search is rare and its state large: apart, it does not weigh on every request.
            let found = Box::pin(self.seen.try_get_with(hash, look)).await;
            let found = found.map_err(|problem: Arc<Problem>| Arc::unwrap_or_clone(problem))?;
            attempt += 1;
            if self.counts(&found) || attempt == ATTEMPTS {
                return Ok(found.credential);
            }
        }
    }

    /// Whether an answer may still be believed.
    fn counts(&self, seen: &Seen) -> bool {
        let forgotten = lock(&self.forgotten);
        let of_tenant = forgotten.tenants.get(&seen.credential.tenant.uuid());
        let since = of_tenant.copied().max(forgotten.everything);
        let is_fresh = seen.asked_at.elapsed() < limits::CREDENTIAL_CACHE;
        is_fresh && since.is_none_or(|since| since < seen.asked_at)
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

    use cairn_domain::ids::{PrincipalId, TenantId};
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
        cache.forget(seen.tenant.uuid());
        cache.get_or_find([1; 32], find).await.expect("found");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        cache.forget(Uuid::max());
        cache.get_or_find([1; 32], find).await.expect("kept");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        cache.forget_all();
        cache.get_or_find([1; 32], find).await.expect("found");
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn what_changes_while_it_is_looked_up_is_asked_again() {
        let cache = CredentialCache::new();
        let asked = AtomicU32::new(0);
        let find = || async {
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                cache.forget(Uuid::nil());
            }
            Ok(credential())
        };
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
