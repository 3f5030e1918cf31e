//! Sign-in of members: one-time codes that an admin hands out.

use cairn_domain::Rejection;
use cairn_domain::limits;
use cairn_domain::scope::{Role, Scope};
use cairn_wire::sign_in::SignInCode;

use super::Failure;
use crate::app::App;
use crate::auth::Caller;
use crate::auth::secret::{self, Purpose};

/// Letters of a sign-in code: 69 bits, good once and for fifteen minutes.
pub const CODE_LETTERS: usize = 16;

/// Makes a code with which a member signs in on a page, once. A code for an owner can be made by
/// an owner only: with it one acts as an owner.
///
/// # Errors
/// A lacking scope, or a service key; `not_found` for a member that there is not; an
/// unavailable store.
pub async fn make_code(app: &App, caller: &Caller, handle: &str) -> Result<SignInCode, Failure> {
    // Whoever signs in with it is bound to no project.
    caller.require_for_tenant(Scope::TenantAdmin)?;
    // What is signed in with it would outlive a service key, and may more.
    if caller.role.is_none() {
        return Err(Rejection::InsufficientScope(Scope::TenantAdmin).into());
    }
    let mut tx = app.store.tenant(caller.tenant, "sign_in.make_code").await?;
    let member = tx
        .member_to_sign_in(handle)
        .await?
        .ok_or(Rejection::NotFound)?;
    if member.role == Role::Owner {
        caller.require(Scope::TenantOwn)?;
    }
    let (code, now) = (secret::code(CODE_LETTERS), app.clock.now());
    let expires_at = now + limits::SIGN_IN_CODE_TIME;
    let hash = Purpose::SignIn.hash(&code);
    let whose = (member.member, handle);
    tx.insert_sign_in_code(whose, Some(caller.principal), hash, (now, expires_at))
        .await?;
    tx.commit().await?;
    Ok(SignInCode {
        handle: member.handle,
        code,
        page: app.sign_in.address.at("/device"),
        expires_at,
    })
}
