//! `admin member`: members from the machine that runs the service.

use anyhow::{Context, bail};
use cairn_domain::limits;
use cairn_domain::scope::{Role, Scope};
use cairn_store::credentials::KeyOwner;
use cairn_store::members::{Manager, Member, MemberChange, MemberChanged};
use cairn_store::{Store, StoreError};
use clap::Subcommand;

use super::keys::{Issue, insert_key};
use super::{Operator, check_handle, find_tenant, rights_changed};
use crate::actions::sign_in::CODE_LETTERS;
use crate::app::Clock;
use crate::auth::key::ApiKey;
use crate::auth::secret::{self, Purpose};

/// What the operator does with members.
#[derive(Clone, Debug, Subcommand)]
pub enum MemberCommand {
    /// Add a member; prints its first key, once.
    Add {
        /// The tenant's name.
        tenant: String,
        /// The member's handle.
        handle: String,
        /// owner, admin, member or reader.
        #[arg(long, default_value = "member", value_parser = parse_role)]
        role: Role,
    },
    /// Print a one-time code with which a member signs in on a page within 15 minutes.
    Code {
        /// The tenant's name.
        tenant: String,
        /// The member's handle.
        handle: String,
    },
    /// List the members.
    List {
        /// The tenant's name.
        tenant: String,
    },
    /// Make a member something else.
    Role {
        /// The tenant's name.
        tenant: String,
        /// The member's handle.
        handle: String,
        /// owner, admin, member or reader.
        #[arg(value_parser = parse_role)]
        role: Role,
    },
    /// Remove a member and end all their keys. What they shared stays.
    Remove {
        /// The tenant's name.
        tenant: String,
        /// The member's handle.
        handle: String,
    },
}

impl MemberCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// As [`add_member`] and [`make_code`]; if there is no such tenant or member, or nobody would
    /// own the tenant.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let Operator { store, clock } = operator;
        match self {
            Self::Add {
                tenant,
                handle,
                role,
            } => {
                let key = add_member(store, clock, &tenant, &handle, role).await?;
                Ok(key.reveal())
            }
            Self::Code { tenant, handle } => make_code(store, clock, &tenant, &handle).await,
            Self::List { tenant } => list_members(store, &tenant).await,
            Self::Role {
                tenant,
                handle,
                role,
            } => {
                let tenant = find_tenant(store, &tenant).await?;
                let mut tx = store.tenant(tenant, "admin.change_member").await?;
                let change = MemberChange {
                    role: Some(role),
                    ..MemberChange::default()
                };
                let changed = tx.change_member(&handle, &change, &manager(clock)).await?;
                check(changed, &handle)?;
                tx.commit().await?;
                rights_changed(store, tenant);
                Ok(format!("{handle} is {}", role.name()))
            }
            Self::Remove { tenant, handle } => {
                let tenant = find_tenant(store, &tenant).await?;
                let mut tx = store.tenant(tenant, "admin.remove_member").await?;
                let removed = tx.remove_member(&handle, &manager(clock)).await?;
                check(removed, &handle)?;
                tx.commit().await?;
                rights_changed(store, tenant);
                Ok(format!("{handle} is removed"))
            }
        }
    }
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
    let added = tx.insert_member(handle, None, role, clock.now()).await;
    if let Err(StoreError::OverQuota { limit, .. }) = &added {
        bail!("the quota of members is used up: {}", limit.unwrap_or(0));
    }
    let member =
        added.with_context(|| format!("adding the member {handle:?}: is the handle taken?"))?;
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

/// Makes a code with which a member signs in on a page, once.
///
/// # Errors
/// If there is no such tenant or member, or the store is unavailable.
pub async fn make_code(
    store: &Store,
    clock: &Clock,
    tenant: &str,
    handle: &str,
) -> anyhow::Result<String> {
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.make_code").await?;
    let member = tx.find_member(handle).await?;
    let member = member.with_context(|| format!("there is no member {handle:?}"))?;
    let (code, now) = (secret::code(CODE_LETTERS), clock.now());
    let time = (now, now + limits::SIGN_IN_CODE_TIME);
    let hash = Purpose::SignIn.hash(&code);
    tx.insert_sign_in_code((member, handle), None, hash, time)
        .await?;
    tx.commit().await?;
    Ok(code)
}

/// The operator may do all.
fn manager(clock: &Clock) -> Manager {
    Manager {
        actor: None,
        is_owner: true,
        now: clock.now(),
    }
}

fn check(changed: MemberChanged, handle: &str) -> anyhow::Result<()> {
    match changed {
        MemberChanged::Done(_) => Ok(()),
        MemberChanged::NotFound => bail!("there is no member {handle:?}"),
        MemberChanged::Forbidden => bail!("owners are not the operator's to change"),
        MemberChanged::LastOwner => bail!("{handle:?} is the last owner; make another one first"),
    }
}

async fn list_members(store: &Store, tenant: &str) -> anyhow::Result<String> {
    let tenant = find_tenant(store, tenant).await?;
    let mut tx = store.tenant(tenant, "admin.list_members").await?;
    let members = tx.list_members(None, u32::MAX).await?;
    tx.commit().await?;
    let line = |member: &Member| {
        let email = member.email.as_deref().unwrap_or("-");
        let joined = cairn_wire::time::text(member.joined_at);
        format!(
            "{}  {}  {email}  {joined}",
            member.handle,
            member.role.name()
        )
    };
    Ok(members.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn parse_role(name: &str) -> Result<Role, String> {
    Role::from_name(name).ok_or_else(|| "one of owner, admin, member, reader".to_owned())
}
