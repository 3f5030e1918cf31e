//! Managing projects: which there are, what a text means, renaming and merging (contract 2.4).

use cairn_domain::Rejection;
use cairn_domain::ids::ProjectId;
use cairn_domain::project::fold;
use cairn_domain::scope::Scope;
use cairn_store::TenantTx;
use cairn_store::projects::{ListedProject, Merged};
use cairn_wire::pages::PageAsk;
use cairn_wire::projects::{ProjectItem, ProjectList, ProjectPatch, ProjectResolve};
use uuid::Uuid;

use super::{find, place};
use crate::actions::Failure;
use crate::actions::pages::Paging;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "projects";

/// A page of the projects that the caller sees, by name.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; a lacking scope or an unavailable store.
pub async fn list(app: &App, caller: &Caller, ask: &PageAsk) -> Result<ProjectList, Failure> {
    caller.require(Scope::MemoryRead)?;
    let limit = caller.project_limit.as_ref().map(|project| project.id);
    let paging = Paging::of(app, caller, LIST, &limit, ask);
    let after = paging.after()?;
    let mut tx = app.store.tenant(caller.tenant, "projects.list").await?;
    let found = tx.list_projects_after(after.as_ref(), limit, paging.limit());
    let mut found = found.await?;
    tx.commit().await?;
    let next_cursor = paging.cut(&mut found, |listed| listed.place().clone());
    let items = found.into_iter().map(|listed| item(caller, listed));
    Ok(ProjectList {
        items: items.collect(),
        next_cursor,
    })
}

/// The project that a key or a name means. It is found, never made.
///
/// # Errors
/// `not_found`, `ambiguous_project`, `invalid_field`; a lacking scope or an unavailable store.
pub async fn resolve(
    app: &App,
    caller: &Caller,
    asked: ProjectResolve,
) -> Result<ProjectItem, Failure> {
    caller.require(Scope::MemoryRead)?;
    let (text, is_key) = asked.parse()?;
    let mut tx = app.store.tenant(caller.tenant, "projects.resolve").await?;
    let found = find(&mut tx, caller, &text).await?;
    let found = found.filter(|found| !is_key || fold(&found.named.key) == fold(&text));
    let found = found.ok_or(Rejection::NotFound)?;
    let listed = get(&mut tx, found.family.project.id.uuid).await?;
    tx.commit().await?;
    Ok(item(caller, listed))
}

/// Renames a project, or makes it an alias of another.
///
/// # Errors
/// `not_found` for a project that is not the caller's to see; `conflict` for a merge of what is
/// merged, or with itself; `ambiguous_project`, `invalid_field`; a lacking scope or an unavailable
/// store.
pub async fn change(
    app: &App,
    caller: &Caller,
    id: &str,
    patch: ProjectPatch,
) -> Result<ProjectItem, Failure> {
    caller.require(Scope::TenantAdmin)?;
    let patch = patch.parse()?;
    let id: Uuid = id.trim().parse().map_err(|_| Rejection::NotFound)?;
    let _turn = app.store.turn(caller.tenant).await?;
    let mut tx = app.store.tenant(caller.tenant, "projects.change").await?;
    let project = get(&mut tx, id).await?.project.id;
    if !is_seen(&mut tx, caller, project).await? {
        return Err(Rejection::NotFound.into());
    }
    let (actor, now) = (Some(caller.principal), app.clock.now());
    if let Some(name) = &patch.name {
        tx.rename_project(project, name, actor, now).await?;
    }
    if let Some(target) = &patch.merge_into {
        let into = target_of(&mut tx, caller, target).await?;
        let refused = match tx.merge_project(project, into, actor, now).await? {
            Merged::Done => None,
            Merged::Itself => Some("a project cannot be merged into itself"),
            Merged::Already => Some("it is merged already"),
            Merged::IntoMerged => Some("the other is merged itself; name what it was merged into"),
        };
        if let Some(why) = refused {
            return Err(Rejection::Conflict(why.to_owned()).into());
        }
    }
    let changed = get(&mut tx, id).await?;
    tx.commit().await?;
    // What a limited credential was seen to see may be more now.
    app.rights_changed(caller.tenant);
    Ok(item(caller, changed))
}

/// The project that another is to be merged into: exactly what is named, not what it was merged
/// into itself.
async fn target_of(tx: &mut TenantTx, caller: &Caller, text: &str) -> Result<ProjectId, Failure> {
    let place = place(tx, caller, Some(text)).await?;
    let named = place.written.ok_or(Rejection::ProjectRequired)?;
    Ok(named.id)
}

async fn is_seen(tx: &mut TenantTx, caller: &Caller, project: ProjectId) -> Result<bool, Failure> {
    match &caller.project_limit {
        None => Ok(true),
        Some(limit) => Ok(tx.get_project_family(limit.id).await?.contains(&project)),
    }
}

async fn get(tx: &mut TenantTx, id: Uuid) -> Result<ListedProject, Failure> {
    let found = tx.get_project(id).await?;
    found.ok_or_else(|| Rejection::NotFound.into())
}

/// What a caller is told of a project. One that is limited to it sees nothing of what it was
/// merged into.
fn item(caller: &Caller, listed: ListedProject) -> ProjectItem {
    let is_limited = caller.project_limit.is_some();
    ProjectItem {
        id: listed.project.id.uuid,
        key: listed.project.key,
        name: listed.project.name,
        merged_into: listed.merged_into.filter(|_| !is_limited),
        aliases: listed.aliases,
    }
}
