//! Projects: which of them a call is about (contract 2.1).

use cairn_domain::Rejection;
use cairn_domain::ids::ProjectId;
use cairn_domain::project::{Project, ProjectKey, ProjectSet, Reader};
use cairn_store::TenantTx;

use super::Failure;
use crate::auth::Caller;

/// Where a call looks.
#[derive(Clone, Debug)]
pub struct Place {
    /// Whose eyes, and which projects.
    pub reader: Reader,
    /// The one project that is meant; `None` for `*`.
    pub project: Option<Project>,
    /// The name to show for a project that nothing has been written to yet.
    pub unborn: Option<String>,
}

/// Finds the place of a call: the argument, the header, or the credential's limit.
///
/// A current project that does not exist yet is an empty place, not an error: it is made by its
/// first event.
///
/// # Errors
/// `not_found`, `ambiguous_project`, `project_required`, or the store's.
pub async fn place(
    tx: &mut TenantTx,
    caller: &Caller,
    argument: Option<&str>,
) -> Result<Place, Failure> {
    let argument = argument.map(str::trim).filter(|text| !text.is_empty());
    if let Some(text) = argument {
        if text == "*" {
            return match &caller.project_limit {
                Some(limit) => one(tx, caller, limit.clone()).await,
                None => Ok(everywhere(caller)),
            };
        }
        let found = find(tx, text).await?.ok_or(Rejection::NotFound)?;
        return allowed(tx, caller, found).await;
    }
    if let Some(text) = &caller.current_project {
        return match find(tx, text).await? {
            Some(project) => allowed(tx, caller, project).await,
            None if caller.project_limit.is_some() => Err(Rejection::NotFound.into()),
            None => unborn(caller, text),
        };
    }
    match &caller.project_limit {
        Some(limit) => one(tx, caller, limit.clone()).await,
        None => Err(Rejection::ProjectRequired.into()),
    }
}

/// Where a record is looked for by its id: no project is needed, but one that applies confines.
///
/// # Errors
/// As [`place`], but for `project_required`.
pub async fn place_by_id(
    tx: &mut TenantTx,
    caller: &Caller,
    argument: Option<&str>,
) -> Result<Place, Failure> {
    let nothing_applies = argument.is_none_or(|text| text.trim().is_empty())
        && caller.current_project.is_none()
        && caller.project_limit.is_none();
    if nothing_applies {
        Ok(everywhere(caller))
    } else {
        place(tx, caller, argument).await
    }
}

/// The project set of a continuation's scope (contract 7.4): the header's project or the
/// credential's limit, with what was merged into it; `None` if neither names one.
///
/// # Errors
/// As [`place`].
pub async fn scope_projects(
    tx: &mut TenantTx,
    caller: &Caller,
) -> Result<Option<Vec<ProjectId>>, Failure> {
    if caller.current_project.is_none() && caller.project_limit.is_none() {
        return Ok(None);
    }
    match place(tx, caller, None).await?.reader.projects {
        ProjectSet::All => Ok(None),
        ProjectSet::Only(projects) => Ok(Some(projects)),
    }
}

async fn find(tx: &mut TenantTx, text: &str) -> Result<Option<Project>, Failure> {
    let mut found = tx.find_projects(text).await?;
    if found.len() > 1 {
        let candidates = found.into_iter().map(|project| project.key).collect();
        return Err(Rejection::AmbiguousProject {
            name: text.to_owned(),
            candidates,
        }
        .into());
    }
    Ok(found.pop())
}

async fn allowed(tx: &mut TenantTx, caller: &Caller, project: Project) -> Result<Place, Failure> {
    if let Some(limit) = &caller.project_limit
        && limit.id != project.id
    {
        return Err(Rejection::NotFound.into());
    }
    one(tx, caller, project).await
}

async fn one(tx: &mut TenantTx, caller: &Caller, project: Project) -> Result<Place, Failure> {
    let family = tx.get_project_family(project.id).await?;
    let reader = Reader {
        principal: caller.principal,
        projects: ProjectSet::Only(family),
    };
    Ok(Place {
        reader,
        project: Some(project),
        unborn: None,
    })
}

fn everywhere(caller: &Caller) -> Place {
    let reader = Reader {
        principal: caller.principal,
        projects: ProjectSet::All,
    };
    Place {
        reader,
        project: None,
        unborn: None,
    }
}

fn unborn(caller: &Caller, text: &str) -> Result<Place, Failure> {
    let key = ProjectKey::parse(text.to_owned(), None).map_err(|_| Rejection::NotFound)?;
    let reader = Reader {
        principal: caller.principal,
        projects: ProjectSet::Only(Vec::new()),
    };
    Ok(Place {
        reader,
        project: None,
        unborn: Some(key.name),
    })
}
