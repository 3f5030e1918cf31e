//! `admin key`: keys from the machine that runs the service.

use anyhow::{Context, bail};
use cairn_domain::ids::ProjectId;
use cairn_domain::limits;
use cairn_domain::scope::{Scope, Scopes};
use cairn_store::credentials::{KeyOwner, KeyScope, ListedCredential, NewCredential};
use cairn_store::{Store, StoreError, TenantTx};
use chrono::TimeDelta;
use clap::Subcommand;

use super::{Operator, find_tenant, generate, rights_changed};
use crate::app::Clock;
use crate::auth::key::ApiKey;

/// What the operator does with keys.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key; prints it, once.
    Create {
        /// The tenant's name.
        tenant: String,
        /// The member's handle; a service key if left out.
        #[arg(long)]
        member: Option<String>,
        /// What the key is for.
        #[arg(long, default_value = "key")]
        name: String,
        /// Only these scopes; may be given several times.
        #[arg(long = "scope", value_parser = str::parse::<Scope>)]
        scopes: Vec<Scope>,
        /// Only this project: id, key or name.
        #[arg(long)]
        project: Option<String>,
        /// Days until it ends: 1 to 365.
        #[arg(long)]
        days: Option<u32>,
    },
    /// List the keys that were not revoked, the newest first.
    List {
        /// The tenant's name.
        tenant: String,
    },
    /// End a key.
    Revoke {
        /// The tenant's name.
        tenant: String,
        /// The part of the key between the underscores.
        key_id: String,
    },
}

impl KeyCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// As [`create_key`] and [`revoke_key`].
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let Operator { store, clock } = operator;
        match self {
            Self::Create {
                tenant,
                member,
                name,
                scopes,
                project,
                days,
            } => {
                let terms = KeyTerms {
                    member,
                    name,
                    scopes,
                    project,
                    days,
                };
                let key = create_key(store, clock, &tenant, &terms).await?;
                Ok(key.reveal())
            }
            Self::List { tenant } => list_keys(store, &tenant).await,
            Self::Revoke { tenant, key_id } => {
                revoke_key(store, clock, &tenant, &key_id).await?;
                Ok("revoked".to_owned())
            }
        }
    }
}

async fn list_keys(store: &Store, tenant: &str) -> anyhow::Result<String> {
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.list_keys").await?;
    let keys = tx
        .list_credentials(&KeyScope::default(), None, u32::MAX)
        .await?;
    tx.commit().await?;
    let line = |key: &ListedCredential| {
        let used = key.last_used_at.map(cairn_wire::time::text);
        format!(
            "{}  {}  {}  {}  {}  ends {}  used {}",
            key.key_id,
            key.owner,
            key.name,
            key.scopes.names().join(","),
            key.project.as_deref().unwrap_or("*"),
            cairn_wire::time::text(key.expires_at),
            used.as_deref().unwrap_or("never")
        )
    };
    Ok(keys.iter().map(line).collect::<Vec<_>>().join("\n"))
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
        [] => Scopes::at_most(None),
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

/// Ends a key, and tells those who let it in.
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
    rights_changed(store, tenant);
    Ok(())
}

/// A key to be made.
pub(super) struct Issue<'a> {
    pub(super) owner: KeyOwner,
    pub(super) name: &'a str,
    pub(super) scopes: Scopes,
    pub(super) project: Option<ProjectId>,
    pub(super) days: u32,
}

/// Makes a key within a transaction.
pub(super) async fn insert_key(
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
        parent: None,
        now,
    })
    .await?;
    Ok(key)
}
