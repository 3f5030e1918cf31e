//! Members: who there is in a tenant, adding, changing and removing them (contract 2.2). Owners are
//! made, changed and removed by owners alone.

use cairn_domain::Rejection;
use cairn_domain::quota::Quota;
use cairn_domain::scope::{Role, Scope};
use cairn_domain::settings::Settings;
use cairn_store::members::{Manager, Member, MemberChange, MemberChanged};
use cairn_store::{StoreError, TenantTx};
use cairn_wire::members::{MemberItem, MemberList, MemberPatch, MemberWrite};
use cairn_wire::pages::PageAsk;
use cairn_wire::{Code, Problem};

use super::Failure;
use super::pages::Paging;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "members";

const TAKEN: &str = "a member has this handle or this address";
const LAST_OWNER: &str = "somebody must own the tenant; make another owner first";

/// A page of the members, by handle.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; a lacking scope or an unavailable store.
pub async fn list(app: &App, caller: &Caller, ask: &PageAsk) -> Result<MemberList, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let paging = Paging::of(app, caller, LIST, &(), ask);
    let after: Option<String> = paging.after()?;
    let mut tx = app.store.tenant(caller.tenant, "members.list").await?;
    let found = tx.list_members(after.as_deref(), paging.limit());
    let mut found = found.await?;
    tx.commit().await?;
    let next_cursor = paging.cut(&mut found, |member| member.handle.clone());
    Ok(MemberList {
        items: found.into_iter().map(item).collect(),
        next_cursor,
    })
}

/// Adds a member. They have no key yet.
///
/// # Errors
/// `conflict` if a member has the handle or the address; `quota_exceeded`, `invalid_field`; a
/// lacking scope or an unavailable store.
pub async fn add(app: &App, caller: &Caller, write: MemberWrite) -> Result<MemberItem, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let new = write.parse()?;
    if new.role == Role::Owner {
        caller.require(Scope::TenantOwn)?;
    }
    let now = app.clock.now();
    let mut tx = app.store.tenant(caller.tenant, "members.add").await?;
    check_quota(&mut tx).await?;
    let (actor, email) = (Some(caller.principal), new.email.as_deref());
    let added = tx.insert_member_by(actor, &new.handle, email, new.role, now);
    added.await.map_err(taken)?;
    let member = tx.get_member(&new.handle).await?;
    let member = member.ok_or_else(|| Failure::fault("lost a member"))?;
    tx.commit().await?;
    app.rights_changed(caller.tenant);
    Ok(item(member))
}

/// Changes what a member is, or their address.
///
/// # Errors
/// `not_found`; `last_owner` if nobody would own the tenant; `conflict` for an address of another
/// member; `invalid_field`; a lacking scope or an unavailable store.
pub async fn change(
    app: &App,
    caller: &Caller,
    handle: &str,
    patch: MemberPatch,
) -> Result<MemberItem, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let change = patch.parse()?;
    let change = MemberChange {
        role: change.role,
        email: change.email.as_ref().map(Option::as_deref),
    };
    let mut tx = app.store.tenant(caller.tenant, "members.change").await?;
    let manager = manager(app, caller);
    let changed = tx.change_member(handle, &change, &manager);
    let member = done(changed.await.map_err(taken)?)?;
    tx.commit().await?;
    app.rights_changed(caller.tenant);
    Ok(item(member))
}

/// Removes a member, with all their keys.
///
/// # Errors
/// `not_found`; `last_owner` if nobody would own the tenant; a lacking scope or an unavailable
/// store.
pub async fn remove(app: &App, caller: &Caller, handle: &str) -> Result<(), Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let mut tx = app.store.tenant(caller.tenant, "members.remove").await?;
    let removed = tx.remove_member(handle, &manager(app, caller)).await?;
    done(removed)?;
    tx.commit().await?;
    app.rights_changed(caller.tenant);
    Ok(())
}

fn manager(app: &App, caller: &Caller) -> Manager {
    Manager {
        actor: Some(caller.principal),
        is_owner: caller.scopes.contains(Scope::TenantOwn),
        now: app.clock.now(),
    }
}

/// Refuses a member over the tenant's quota. Two who add one at once wait for each other.
async fn check_quota(tx: &mut TenantTx) -> Result<(), Failure> {
    let settings = Settings::of(&tx.lock_settings().await?);
    let Some(most) = settings.quotas.get(Quota::Members) else {
        return Ok(());
    };
    if tx.count_members().await? < most {
        return Ok(());
    }
    let detail = format!("members: at most {most}");
    Err(Problem::new(Code::QuotaExceeded, detail).into())
}

fn done(changed: MemberChanged) -> Result<Member, Failure> {
    match changed {
        MemberChanged::Done(member) => Ok(member),
        MemberChanged::NotFound => Err(Rejection::NotFound.into()),
        MemberChanged::Forbidden => Err(Rejection::InsufficientScope(Scope::TenantOwn).into()),
        MemberChanged::LastOwner => Err(Problem::new(Code::LastOwner, LAST_OWNER).into()),
    }
}

fn taken(error: StoreError) -> Failure {
    match error {
        StoreError::Conflict(_) => Rejection::Conflict(TAKEN.to_owned()).into(),
        other => other.into(),
    }
}

fn item(member: Member) -> MemberItem {
    MemberItem {
        handle: member.handle,
        email: member.email,
        role: member.role.name().to_owned(),
        joined_at: member.joined_at,
    }
}
