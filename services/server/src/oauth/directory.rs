//! Directory: which member an e-mail address is that an identity provider has verified, and whom
//! it makes a member.

use cairn_domain::ids::{PrincipalId, TenantId, is_handle};
use cairn_domain::limits;
use cairn_store::StoreError;
use cairn_store::before_sign_in::ByEmail;

use crate::actions::Failure;
use crate::app::App;

/// Handles that are tried for one address.
const TRIES: u32 = 20;

/// What becomes of somebody with an address.
pub enum Entrance {
    /// They are this member, or one of these: it is theirs to say which.
    Members(Vec<ByEmail>),
    /// They have just become this member.
    New(TenantId, PrincipalId),
    /// They are not let in, and why.
    Refused(&'static str),
}

/// The members of an address, in any team; a new one where its domain is allowed and there is one
/// team only, so that it is clear whose member they become. Nobody becomes an owner this way, and
/// nobody comes back who was removed.
///
/// # Errors
/// If the store is unavailable.
pub async fn enter(app: &App, email: &str, domains: &[String]) -> Result<Entrance, Failure> {
    let domain = email
        .rsplit_once('@')
        .map(|(_, domain)| domain.to_ascii_lowercase());
    let is_allowed = domain.is_some_and(|domain| domains.contains(&domain));
    if !domains.is_empty() && !is_allowed {
        return Ok(Entrance::Refused("is not of a domain that is let in."));
    }
    let mut tx = app.store.system("oidc.find_member").await?;
    let found = tx.find_members_by_email(email).await?;
    let only = tx.find_only_tenant().await?;
    tx.commit().await?;
    let was_there = !found.is_empty();
    let present: Vec<ByEmail> = found.into_iter().filter(|found| !found.removed).collect();
    match only {
        _ if !present.is_empty() => Ok(Entrance::Members(present)),
        _ if was_there => Ok(Entrance::Refused("was removed from the team.")),
        Some(tenant) if is_allowed => {
            let member = add(app, tenant, email).await?;
            Ok(Entrance::New(tenant, member))
        }
        _ => Ok(Entrance::Refused(
            "is no member; an admin can add this address to one.",
        )),
    }
}

/// Makes a member of an address, by a handle out of its first part.
async fn add(app: &App, tenant: TenantId, email: &str) -> Result<PrincipalId, Failure> {
    for attempt in 1..=TRIES {
        let mut tx = app.store.tenant(tenant, "oidc.add_member").await?;
        // Never an owner: that is no value of the setting.
        let role = tx.get_settings().await?.oidc_default_role;
        let handle = handle(email, attempt);
        match tx
            .insert_member(&handle, Some(email), role, app.clock.now())
            .await
        {
            Ok(member) => {
                tx.commit().await?;
                app.rights_changed(tenant);
                return Ok(member);
            }
            Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::fault("no free handle for a new member"))
}

/// A handle out of the first part of an address; each further attempt has a number behind it.
fn handle(email: &str, attempt: u32) -> String {
    let name = email
        .split('@')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name.chars().filter(allowed).collect();
    let name = name.trim_start_matches(['.', '_', '-']);
    let number = match attempt {
        1 => String::new(),
        more => format!("-{more}"),
    };
    let room = limits::HANDLE_BYTES - number.len();
    let handle = format!("{}{number}", &name[..name.len().min(room)]);
    if is_handle(&handle) {
        handle
    } else {
        format!("member{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_a_handle() {
        for (email, attempt, made) in [
            ("Lin.Chen+cairn@example.com", 1, "lin.chencairn"),
            ("lin@example.com", 2, "lin-2"),
            ("@example.com", 1, "member"),
            ("…@example.com", 3, "member-3"),
        ] {
            assert_eq!(handle(email, attempt), made);
        }
        assert!(is_handle(&handle(&"x".repeat(80), 12)));
    }
}
