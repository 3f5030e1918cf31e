//! `cairn-server admin`: tenants, members and keys from the machine that runs the service.

use anyhow::{Context, bail};
use cairn_domain::ids::{ProjectId, TenantId, is_handle};
use cairn_domain::limits;
use cairn_domain::scope::{Role, Scope, Scopes};
use cairn_store::credentials::{KeyOwner, NewCredential};
use cairn_store::{FirstKey, Store, StoreError, SystemTx, TenantTx};
use chrono::TimeDelta;

use crate::app::Clock;
use crate::auth::key::ApiKey;

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
    if name.trim().is_empty() || name.len() > limits::PROJECT_BYTES {
        bail!("a tenant's name has 1 to {} bytes", limits::PROJECT_BYTES);
    }
    let mut tx = store.system("admin.create_tenant").await?;
    let key = insert_tenant(&mut tx, clock, name, owner)
        .await
        .with_context(|| format!("creating the tenant {name:?}: is the name taken?"))?;
    tx.commit().await?;
    Ok(key)
}

/// Makes a tenant, its owner and the owner's first key within a transaction: all of them or, if
/// it is not committed, nothing.
///
/// # Errors
/// `Conflict` if the name is taken; as any call of the store.
pub async fn insert_tenant(
    tx: &mut SystemTx,
    clock: &Clock,
    name: &str,
    owner: &str,
) -> Result<ApiKey, StoreError> {
    let (key, now) = (generate(), clock.now());
    let first = FirstKey {
        key_id: key.id(),
        secret_hash: key.hash(),
        scopes: Scope::ALL.into_iter().collect(),
        expires_at: now + TimeDelta::days(i64::from(limits::KEY_DAYS)),
    };
    tx.create_tenant(name, owner, first, now).await?;
    Ok(key)
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
    let issue = Issue {
        owner: KeyOwner::Member(member),
        name: "first key",
        scopes: Scope::ALL.into_iter().collect(),
        project: None,
        days: limits::KEY_DAYS,
    };
    let key = insert_key(&mut tx, clock, issue).await?;
    tx.commit().await?;
    Ok(key)
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
    let days = terms.days.unwrap_or(limits::KEY_DAYS);
    if days == 0 || days > limits::MAX_KEY_DAYS {
        bail!("a key lasts 1 to {} days", limits::MAX_KEY_DAYS);
    }
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.create_key").await?;
    let owner = match &terms.member {
        Some(handle) => {
            let member = tx.find_member(handle).await?;
            KeyOwner::Member(member.with_context(|| format!("there is no member {handle:?}"))?)
        }
        None => KeyOwner::Service,
    };
    let project = match &terms.project {
        Some(text) => match tx.find_projects(text).await?.as_slice() {
            [family] => Some(family.project.id),
            [] => bail!("there is no project {text:?}"),
            _ => bail!("{text:?} fits several projects; use a key or an id"),
        },
        None => None,
    };
    let scopes = match terms.scopes.as_slice() {
        [] => Scope::ALL
            .into_iter()
            .filter(|s| *s != Scope::TenantOwn)
            .collect(),
        some => some.iter().copied().collect(),
    };
    let issue = Issue {
        owner,
        name: &terms.name,
        scopes,
        project,
        days,
    };
    let key = insert_key(&mut tx, clock, issue).await?;
    tx.commit().await?;
    Ok(key)
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

struct Issue<'a> {
    owner: KeyOwner,
    name: &'a str,
    scopes: Scopes,
    project: Option<ProjectId>,
    days: u32,
}

async fn insert_key(
    tx: &mut TenantTx,
    clock: &Clock,
    issue: Issue<'_>,
) -> Result<ApiKey, StoreError> {
    let (key, now) = (generate(), clock.now());
    tx.insert_credential(&NewCredential {
        key_id: key.id(),
        secret_hash: key.hash(),
        name: issue.name,
        owner: issue.owner,
        scopes: issue.scopes,
        project: issue.project,
        expires_at: now + TimeDelta::days(i64::from(issue.days)),
        now,
    })
    .await?;
    Ok(key)
}

#[expect(
    clippy::disallowed_methods,
    reason = "keys are drawn from the system's randomness"
)]
fn generate() -> ApiKey {
    ApiKey::generate(&mut rand::rng())
}

async fn find_tenant(store: &Store, name: &str) -> anyhow::Result<TenantId> {
    let mut tx = store.system("admin.find_tenant").await?;
    let tenant = tx.find_tenant(name).await?;
    tx.commit().await?;
    tenant.with_context(|| format!("there is no tenant {name:?}"))
}

fn check_handle(handle: &str) -> anyhow::Result<()> {
    if !is_handle(handle) {
        bail!("a handle is 1 to 39 of a-z 0-9 . _ -, the first a letter or digit: {handle:?}");
    }
    Ok(())
}
