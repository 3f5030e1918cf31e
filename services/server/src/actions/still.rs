//! What goes on for long asks again, before each step, whether its caller still may: a credential
//! can end, and a role be taken away, while it is under way.

use cairn_domain::scope::Scope;
use cairn_store::TenantTx;
use cairn_wire::{Code, Problem};
use chrono::{DateTime, Utc};

use super::Failure;
use crate::auth::Caller;

/// Lets a step begin.
///
/// # Errors
/// `credential_revoked` if the caller's rights have ended since they called; the store's.
pub(super) async fn may_still(
    tx: &mut TenantTx,
    caller: &Caller,
    scope: Scope,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    match caller.may_still(tx, scope, now).await? {
        true => Ok(()),
        false => Err(Problem::new(Code::CredentialRevoked, "revoked meanwhile").into()),
    }
}
