//! `cairn-server admin`: tenants, members and keys from the machine that runs the service.

use anyhow::{Context, bail};
use cairn_domain::ids::{PrincipalId, ProjectId, TenantId};
use cairn_domain::scope::{Role, Scope, Scopes};
use cairn_store::Store;
use cairn_store::credentials::{KeyOwner, NewCredential};
use chrono::{DateTime, TimeDelta, Utc};

use crate::app::Clock;
use crate::auth::key::ApiKey;

/// Days until a key ends, by default (contract 14.1).
pub const DEFAULT_DAYS: u32 = 90;
/// The longest a key may last.
pub const MAX_DAYS: u32 = 365;

/// Makes a tenant with its owner, and the owner's first key.
///
/// # Errors
/// If the name is taken, the handle is none, or the store is unavailable.
pub async fn create_tenant(
    store: &Store,
    clock: &Clock,
    name: &str,
    owner: &str,
) -> anyhow::Result<ApiKey> {
    check_handle(owner)?;
    if name.trim().is_empty() || name.len() > cairn_domain::limits::PROJECT_BYTES {
        bail!(
            "a tenant's name has 1 to {} bytes",
            cairn_domain::limits::PROJECT_BYTES
        );
    }
    let mut tx = store.system("admin.create_tenant").await?;
    let (tenant, owner) = tx
        .create_tenant(name, owner)
        .await
        .with_context(|| format!("creating the tenant {name:?}: is the name taken?"))?;
    tx.commit().await?;
    new_key(store, clock, tenant, owner, "first key").await
}

/// Adds a member and makes a key for it.
///
/// # Errors
/// If there is no such tenant, the handle is taken or none, or the store is unavailable.
pub async fn add_member(
    store: &Store,
    clock: &Clock,
    tenant: &str,
    handle: &str,
    role: Role,
) -> anyhow::Result<ApiKey> {
    check_handle(handle)?;
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.add_member").await?;
    let member = tx
        .insert_member(handle, None, role, clock.now())
        .await
        .with_context(|| format!("adding the member {handle:?}: is the handle taken?"))?;
    tx.commit().await?;
    new_key(store, clock, tenant, member, "first key").await
}

/// What a new key may do and for how long.
#[derive(Clone, Debug, Default)]
pub struct KeyTerms {
    /// The member's handle; none for a service key.
    pub member: Option<String>,
    /// What the key is for.
    pub name: String,
    /// Fewer scopes than its owner has; all of them if empty.
    pub scopes: Vec<Scope>,
    /// The only project it may see.
    pub project: Option<String>,
    /// Days until it ends.
    pub days: Option<u32>,
}

/// Makes a key for a member, or a service key.
///
/// # Errors
/// If there is no such tenant, member or project, a term is out of bounds, or the store is
/// unavailable.
pub async fn create_key(
    store: &Store,
    clock: &Clock,
    tenant: &str,
    terms: &KeyTerms,
) -> anyhow::Result<ApiKey> {
    let days = terms.days.unwrap_or(DEFAULT_DAYS);
    if days == 0 || days > MAX_DAYS {
        bail!("a key lasts 1 to {MAX_DAYS} days");
    }
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.find_owner").await?;
    let owner = match &terms.member {
        Some(handle) => {
            let member = tx.find_member(handle).await?;
            KeyOwner::Member(member.with_context(|| format!("there is no member {handle:?}"))?)
        }
        None => KeyOwner::Service,
    };
    let project = match &terms.project {
        Some(text) => match tx.find_projects(text).await?.as_slice() {
            [project] => Some(project.id),
            [] => bail!("there is no project {text:?}"),
            _ => bail!("{text:?} fits several projects; use a key or an id"),
        },
        None => None,
    };
    tx.commit().await?;
    let scopes = match terms.scopes.as_slice() {
        [] => Scope::ALL
            .into_iter()
            .filter(|s| *s != Scope::TenantOwn)
            .collect(),
        some => some.iter().copied().collect(),
    };
    let expires_at = clock.now() + TimeDelta::days(i64::from(days));
    insert_key(
        store,
        clock,
        tenant,
        Issue {
            owner,
            name: &terms.name,
            scopes,
            project,
            expires_at,
        },
    )
    .await
}

/// Ends a key.
///
/// # Errors
/// If there is no such tenant or key, or the store is unavailable.
pub async fn revoke_key(
    store: &Store,
    clock: &Clock,
    tenant: &str,
    key_id: &str,
) -> anyhow::Result<()> {
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.revoke_key").await?;
    if !tx.revoke_credential(key_id, clock.now()).await? {
        bail!("there is no key {key_id:?}");
    }
    tx.commit().await?;
    Ok(())
}

/// A key with all that its member may do, for the default time.
///
/// # Errors
/// If the store is unavailable.
pub async fn new_key(
    store: &Store,
    clock: &Clock,
    tenant: TenantId,
    member: PrincipalId,
    name: &str,
) -> anyhow::Result<ApiKey> {
    let issue = Issue {
        owner: KeyOwner::Member(member),
        name,
        scopes: Scope::ALL.into_iter().collect(),
        project: None,
        expires_at: clock.now() + TimeDelta::days(i64::from(DEFAULT_DAYS)),
    };
    insert_key(store, clock, tenant, issue).await
}

struct Issue<'a> {
    owner: KeyOwner,
    name: &'a str,
    scopes: Scopes,
    project: Option<ProjectId>,
    expires_at: DateTime<Utc>,
}

async fn insert_key(
    store: &Store,
    clock: &Clock,
    tenant: TenantId,
    issue: Issue<'_>,
) -> anyhow::Result<ApiKey> {
    #[expect(
        clippy::disallowed_methods,
        reason = "keys are drawn from the system's randomness"
    )]
    let key = ApiKey::generate(&mut rand::rng());
    let mut tx = store.tenant(tenant, "admin.insert_key").await?;
    tx.insert_credential(&NewCredential {
        key_id: key.id(),
        secret_hash: key.hash(),
        name: issue.name,
        owner: issue.owner,
        scopes: issue.scopes,
        project: issue.project,
        expires_at: issue.expires_at,
        now: clock.now(),
    })
    .await?;
    tx.commit().await?;
    Ok(key)
}

async fn find_tenant(store: &Store, name: &str) -> anyhow::Result<TenantId> {
    let mut tx = store.system("admin.find_tenant").await?;
    let tenant = tx.find_tenant(name).await?;
    tx.commit().await?;
    tenant.with_context(|| format!("there is no tenant {name:?}"))
}

/// `[a-z0-9][a-z0-9._-]{0,38}` (contract 1).
fn check_handle(handle: &str) -> anyhow::Result<()> {
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let rest = |b: u8| first(b) || matches!(b, b'.' | b'_' | b'-');
    let is_handle = handle.len() <= cairn_domain::limits::HANDLE_BYTES
        && handle.bytes().next().is_some_and(first)
        && handle.bytes().all(rest);
    if !is_handle {
        bail!("a handle is 1 to 39 of a-z 0-9 . _ -, the first a letter or digit: {handle:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_handle;

    #[test]
    fn handles_are_plain() {
        for handle in ["lin", "a", "0x", "a.b_c-d"] {
            assert!(check_handle(handle).is_ok(), "{handle}");
        }
        for handle in ["", ".a", "Lin", "a b", "ä", &"a".repeat(40)] {
            assert!(check_handle(handle).is_err(), "{handle}");
        }
    }
}
