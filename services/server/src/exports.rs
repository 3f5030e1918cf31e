//! Exports under way in this process: how many are open, and how many of them work at a time. One
//! that waits for its reader keeps no other from working.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use cairn_wire::{Code, Problem};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::lock::lock;

/// Seconds after which a caller who was sent away may come back.
const RETRY_SECONDS: u32 = 10;

/// All exports of a process.
#[derive(Debug)]
pub struct Exports {
    /// Whose they are: tenants and principals.
    open: Mutex<HashSet<(Uuid, Uuid)>>,
    working: Semaphore,
}

impl Default for Exports {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            working: Semaphore::new(limits::EXPORTS),
        }
    }
}

impl Exports {
    /// Opens an export for a principal.
    ///
    /// # Errors
    /// `rate_limited` if the principal has one open already, or their tenant as many as it may;
    /// `overloaded` if this process has.
    pub fn open(
        self: &Arc<Self>,
        tenant: TenantId,
        principal: PrincipalId,
    ) -> Result<OpenExport, Problem> {
        let whose = (tenant.uuid(), principal.uuid);
        let mut open = lock(&self.open);
        let of_tenant = open.iter().filter(|other| other.0 == whose.0).count();
        if open.contains(&whose) {
            Err(refused(
                Code::RateLimited,
                "an export of yours is under way",
            ))
        } else if of_tenant >= limits::TENANT_EXPORTS {
            let detail = "as many exports of the tenant are under way as may be";
            Err(refused(Code::RateLimited, detail))
        } else if open.len() >= limits::OPEN_EXPORTS {
            Err(Problem::fault(Code::Overloaded).retry_after(RETRY_SECONDS))
        } else {
            open.insert(whose);
            Ok(OpenExport {
                all: Arc::clone(self),
                whose,
            })
        }
    }
}

fn refused(code: Code, detail: &str) -> Problem {
    Problem::new(code, detail).retry_after(RETRY_SECONDS)
}

/// An export that is open until this is dropped.
#[derive(Debug)]
pub struct OpenExport {
    all: Arc<Exports>,
    whose: (Uuid, Uuid),
}

impl OpenExport {
    /// Waits for a turn to work, which ends when it is dropped. To be held while rows are read and
    /// written out as lines, not while somebody takes them.
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.all.working.acquire().await.ok()
    }
}

impl Drop for OpenExport {
    fn drop(&mut self) {
        lock(&self.all.open).remove(&self.whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "tenants of a test")]
    fn tenant(number: u128) -> TenantId {
        TenantId::verified(1, Uuid::from_u128(number))
    }

    fn principal(number: usize) -> PrincipalId {
        let uuid = Uuid::from_u128(number as u128);
        PrincipalId { key: 1, uuid }
    }

    #[test]
    fn a_principal_has_one_a_tenant_a_few_and_the_process_no_more_than_it_can_hold() {
        let exports = Arc::new(Exports::default());
        let mut open = Vec::new();
        let tenants = limits::OPEN_EXPORTS / limits::TENANT_EXPORTS;
        for (nth, tenant) in (0..).map(tenant).take(tenants).enumerate() {
            for who in 0..limits::TENANT_EXPORTS {
                open.push(exports.open(tenant, principal(who)).expect("room"));
                let again = exports.open(tenant, principal(who)).expect_err("open");
                assert_eq!(again.code, Code::RateLimited);
                assert_eq!(again.retry_after, Some(RETRY_SECONDS));
            }
            let full = exports.open(tenant, principal(99)).expect_err("full");
            assert_eq!(full.code, Code::RateLimited, "{nth}");
        }
        let elsewhere = exports.open(tenant(99), principal(0)).expect_err("full");
        assert_eq!(elsewhere.code, Code::Overloaded);
        open.pop();
        exports.open(tenant(99), principal(0)).expect("room again");
    }
}
