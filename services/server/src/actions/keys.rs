//! Keys: making, listing and revoking them (contract 14.1). A key never allows more than the
//! credential that made it and the role of its owner both do, and sees no project that its maker
//! does not.

use cairn_domain::Rejection;
use cairn_domain::ids::ProjectId;
use cairn_domain::project::Project;
use cairn_domain::scope::{Role, Scope, Scopes};
use cairn_store::TenantTx;
use cairn_store::credentials::{KeyOwner, KeyScope, ListedCredential, NewCredential};
use cairn_store::descent::Descent;
use cairn_wire::keys::{KeyFor, KeyItem, KeyList, KeyMade, KeyWrite, NewKey};
use cairn_wire::pages::PageAsk;
use cairn_wire::{Code, Problem};
use chrono::TimeDelta;

use super::Failure;
use super::pages::Paging;
use super::projects::place;
use crate::admin::generate;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "keys";

/// A page of the keys that were not revoked: the caller's own; to an admin, all.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; an unavailable store.
pub async fn list(app: &App, caller: &Caller, ask: &PageAsk) -> Result<KeyList, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "keys.list").await?;
    let reach = Reach::of(&mut tx, caller).await?;
    let paging = Paging::of(app, caller, LIST, &reach, ask);
    let after = paging.after()?;
    let scope = reach.scope(caller);
    let mut found = tx.list_credentials(&scope, after, paging.limit()).await?;
    tx.commit().await?;
    let next_cursor = paging.cut(&mut found, |key| key.place);
    Ok(KeyList {
        items: found.into_iter().map(item).collect(),
        next_cursor,
    })
}

/// Makes a key. The answer shows it, and nothing does again. One that is made with a grant, or
/// with a service key, ends with it at the latest.
///
/// # Errors
/// `insufficient_scope` for what the maker may not give; `invalid_field` for what its owner may
/// not have; `not_found` for a member or a project that is not there for the caller;
/// `credential_revoked` if the maker's own was meanwhile; an unavailable store.
pub async fn create(app: &App, caller: &Caller, write: KeyWrite) -> Result<KeyMade, Failure> {
    let new = write.parse()?;
    let mut tx = app.store.tenant(caller.tenant, "keys.create").await?;
    let (owner, most) = owner(&mut tx, caller, &new.owner).await?;
    let scopes = scopes(caller, &new, most)?;
    let project = project(&mut tx, caller, new.project.as_deref()).await?;
    let (key, now) = (generate(), app.clock.now());
    let asked = now + TimeDelta::days(i64::from(new.days));
    let (parent, expires_at) = match tx.descent(caller.credential, now).await? {
        Some(Descent::Free) => (None, asked),
        Some(Descent::Bound) => (Some(caller.credential), asked.min(caller.expires_at)),
        None => return Err(Problem::new(Code::CredentialRevoked, "it ended just now").into()),
    };
    let made = NewCredential {
        key_id: key.id(),
        secret_hash: key.hash(),
        name: &new.name,
        owner,
        scopes,
        project: project.as_ref().map(|project| project.id),
        expires_at,
        parent,
        now,
    };
    tx.insert_credential_by(Some(caller.principal), &made)
        .await?;
    tx.commit().await?;
    Ok(KeyMade {
        key: key.reveal(),
        item: KeyItem {
            id: key.id().to_owned(),
            name: new.name.clone(),
            service: owner == KeyOwner::Service,
            owner: match new.owner {
                KeyFor::Maker => caller.name.clone(),
                KeyFor::Member(handle) => handle,
                KeyFor::Service => format!("key:{}", key.id()),
            },
            scopes: scopes.names().into_iter().map(str::to_owned).collect(),
            project: project.map(|project| project.key),
            created_at: made.now,
            expires_at: made.expires_at,
            last_used_at: None,
        },
    })
}

/// Revokes a key, at once and on every replica within seconds. Again is no error.
///
/// # Errors
/// `not_found` for a key that is not there, or not the caller's to revoke; an unavailable store.
pub async fn revoke(app: &App, caller: &Caller, key_id: &str) -> Result<(), Failure> {
    let mut tx = app.store.tenant(caller.tenant, "keys.revoke").await?;
    let reach = Reach::of(&mut tx, caller).await?;
    let (actor, now) = (Some(caller.principal), app.clock.now());
    let scope = reach.scope(caller);
    let is_known = tx.revoke_credential_by(actor, key_id, &scope, now);
    if !is_known.await? {
        return Err(Rejection::NotFound.into());
    }
    tx.commit().await?;
    app.rights_changed(caller.tenant);
    Ok(())
}

/// Which keys there are for a caller.
#[derive(Debug)]
struct Reach {
    is_admin: bool,
    projects: Option<Vec<ProjectId>>,
}

impl Reach {
    async fn of(tx: &mut TenantTx, caller: &Caller) -> Result<Self, Failure> {
        Ok(Self {
            is_admin: caller.is_admin(),
            projects: match &caller.project_limit {
                Some(limit) => Some(tx.get_project_family(limit.id).await?),
                None => None,
            },
        })
    }

    fn scope(&self, caller: &Caller) -> KeyScope<'_> {
        KeyScope {
            owner: (!self.is_admin).then_some(caller.principal),
            projects: self.projects.as_deref(),
        }
    }
}

/// Whose the key is to be, and the most that they may.
async fn owner(
    tx: &mut TenantTx,
    caller: &Caller,
    wanted: &KeyFor,
) -> Result<(KeyOwner, Scopes), Failure> {
    match wanted {
        KeyFor::Service => {
            caller.require(Scope::TenantAdmin)?;
            Ok((KeyOwner::Service, most(None)))
        }
        KeyFor::Member(handle) if *handle != caller.name => {
            caller.require(Scope::TenantAdmin)?;
            let member = tx.get_member(handle).await?.ok_or(Rejection::NotFound)?;
            // Whoever holds an owner's key is one.
            if member.role == Role::Owner {
                caller.require(Scope::TenantOwn)?;
            }
            Ok((KeyOwner::Member(member.id), most(Some(member.role))))
        }
        KeyFor::Maker | KeyFor::Member(_) => {
            Ok((KeyOwner::Member(caller.principal), most(caller.role)))
        }
    }
}

/// All that a role allows; a service key, all but ownership.
fn most(role: Option<Role>) -> Scopes {
    role.unwrap_or(Role::Admin).scopes()
}

/// What the key is to carry. Administration is given by name alone: what is left out means less.
fn scopes(caller: &Caller, new: &NewKey, most: Scopes) -> Result<Scopes, Failure> {
    let Some(wanted) = new.scopes else {
        let is_plain = |scope: &Scope| !matches!(scope, Scope::TenantAdmin | Scope::TenantOwn);
        let plain: Scopes = caller.scopes.and(most).iter().filter(is_plain).collect();
        return match plain.iter().next() {
            Some(_) => Ok(plain),
            None => Err(Rejection::invalid_field("/scopes", "name the scopes").into()),
        };
    };
    for scope in wanted.iter() {
        caller.require(scope)?;
        if !most.contains(scope) {
            let allowed = format!("its owner may not have {scope}");
            return Err(Rejection::invalid_field("/scopes", allowed).into());
        }
    }
    Ok(wanted)
}

/// The project that the key is to be limited to: its maker's limit, unless another is named.
async fn project(
    tx: &mut TenantTx,
    caller: &Caller,
    wanted: Option<&str>,
) -> Result<Option<Project>, Failure> {
    let Some(text) = wanted else {
        return Ok(caller.project_limit.clone());
    };
    Ok(place(tx, caller, Some(text)).await?.project)
}

fn item(listed: ListedCredential) -> KeyItem {
    let scopes = listed.scopes.names().into_iter();
    KeyItem {
        id: listed.key_id,
        name: listed.name,
        owner: listed.owner,
        service: listed.service,
        scopes: scopes.map(str::to_owned).collect(),
        project: listed.project,
        created_at: listed.created_at,
        expires_at: listed.expires_at,
        last_used_at: listed.last_used_at,
    }
}
