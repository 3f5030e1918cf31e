//! Grants: the programs that members have let in, listed and ended.

use cairn_domain::Rejection;
use cairn_domain::ids::PrincipalId;
use cairn_domain::scope::Scope;
use cairn_store::TenantTx;
use cairn_store::grants::{Listed, Pick};
use cairn_store::page_cursor::PageScope;
use cairn_wire::grants::{Grant, GrantAsk, GrantList};
use uuid::Uuid;

use super::Failure;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "grants";
/// Stands for everybody.
const ALL: &str = "*";

/// A page of grants, newest first: the caller's own, or others' for an admin.
///
/// # Errors
/// `not_found` for a member that there is not; a lacking scope; `invalid_cursor`; an unavailable
/// store.
pub async fn list(app: &App, caller: &Caller, ask: &GrantAsk) -> Result<GrantList, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "grants.list").await?;
    let member = whose(&mut tx, caller, ask.member.as_deref()).await?;
    let ring = app.continuations.ring();
    let conditions = member.map(|member| member.uuid);
    let scope = PageScope::of(LIST, caller.tenant, caller.principal, &conditions);
    let read = |cursor| ring.read_page::<i32>(&scope, cursor);
    let before = ask.cursor.as_deref();
    let before = before.map(|cursor| read(cursor).ok_or(Rejection::InvalidCursor));
    // One more than asked for tells whether there is another page.
    let pick = Pick {
        member,
        before: before.transpose()?,
        limit: i64::from(ask.limit) + 1,
        now: app.clock.now(),
    };
    let mut found = tx.list_grants(&pick).await?;
    tx.commit().await?;
    let wanted = usize::try_from(ask.limit).unwrap_or(usize::MAX);
    let more = found.len() > wanted;
    found.truncate(wanted);
    let next = found.last().filter(|_| more);
    Ok(GrantList {
        next_cursor: next.map(|last| ring.seal_page(&scope, &last.number)),
        items: found.into_iter().map(|one| shown(caller, one)).collect(),
    })
}

/// Whose grants are asked for; everybody's if none.
async fn whose(
    tx: &mut TenantTx,
    caller: &Caller,
    named: Option<&str>,
) -> Result<Option<PrincipalId>, Failure> {
    match named {
        None => Ok(Some(caller.principal)),
        Some(name) if name == caller.name => Ok(Some(caller.principal)),
        Some(ALL) => {
            caller.require_for_tenant(Scope::TenantAdmin)?;
            Ok(None)
        }
        Some(handle) => {
            caller.require_for_tenant(Scope::TenantAdmin)?;
            let member = tx.find_member(handle).await?;
            Ok(Some(member.ok_or(Rejection::NotFound)?))
        }
    }
}

fn shown(caller: &Caller, one: Listed) -> Grant {
    let names = one.scopes.names().into_iter();
    Grant {
        current: one.id == caller.credential,
        id: one.id,
        member: one.member,
        client_id: one.client_id,
        client: one.client_name,
        device: one.device,
        scopes: names.map(str::to_owned).collect(),
        resource: one.resource,
        created_at: one.created_at,
        last_used_at: one.last_used_at,
        expires_at: one.expires_at,
    }
}

/// Ends a grant: the caller's own, or anybody's for an admin whose credential is bound
/// to no project. Ending it again changes nothing.
///
/// # Errors
/// `not_found` for a grant that there is not, or that is not the caller's to end; an unavailable
/// store.
pub async fn revoke(app: &App, caller: &Caller, grant: Uuid) -> Result<(), Failure> {
    let may_end_any = caller.is_admin() && caller.project_limit.is_none();
    let owner = (!may_end_any).then_some(caller.principal);
    let mut tx = app.store.tenant(caller.tenant, "grants.revoke").await?;
    let actor = Some(caller.principal);
    let known = tx
        .revoke_grant(grant, owner, actor, app.clock.now())
        .await?;
    if !known {
        return Err(Rejection::NotFound.into());
    }
    tx.commit().await?;
    app.rights_changed(caller.tenant);
    Ok(())
}
