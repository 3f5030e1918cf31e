//! Projects: which of them a call is about (contract 2.1), and what an admin does with them.

mod manage;

pub use manage::{change, list, resolve};

use cairn_domain::Rejection;
use cairn_domain::ids::ProjectId;
use cairn_domain::project::{Family, Project, ProjectKey, ProjectSet, Reader, Resolved, fold};
use cairn_domain::redact::safe;
use cairn_store::TenantTx;
use uuid::Uuid;

use super::Failure;
use crate::app::App;
use crate::auth::Caller;

/// Where a call looks.
#[derive(Clone, Debug)]
pub struct Place {
    /// Whose eyes, and which projects.
    pub reader: Reader,
    /// The one project that is meant; `None` for `*`.
    pub project: Option<Project>,
    /// Where a write goes: the project itself, or the merged one that was named.
    pub written: Option<Project>,
    /// The name to show for a project that nothing has been written to yet.
    pub unborn: Option<String>,
}

impl Place {
    /// The name to show for it: `*` for every project.
    #[must_use]
    pub fn name(&self) -> &str {
        let project = self.project.as_ref().map(|project| project.name.as_str());
        project.or(self.unborn.as_deref()).unwrap_or("*")
    }

    /// The ids of the projects that are named: one, none for one that does not exist yet; `None` for
    /// `*`.
    fn named(&self) -> Option<Vec<Uuid>> {
        match (&self.project, &self.unborn) {
            (Some(project), _) => Some(vec![project.id.uuid]),
            (None, Some(_)) => Some(Vec::new()),
            (None, None) => None,
        }
    }

    /// The project with what was merged into it; nothing for `*` and for a project that does not
    /// exist yet.
    #[must_use]
    pub fn members(&self) -> Vec<ProjectId> {
        match &self.reader.projects {
            ProjectSet::Only(members) => members.clone(),
            ProjectSet::All => Vec::new(),
        }
    }
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
                Some(limit) => limited(tx, caller, limit).await,
                None => Ok(everywhere(caller)),
            };
        }
        let found = find(tx, caller, text).await?;
        return Ok(one(caller, found.ok_or(Rejection::NotFound)?));
    }
    if let Some(text) = &caller.current_project {
        return match find(tx, caller, text).await? {
            Some(found) => Ok(one(caller, found)),
            None if caller.project_limit.is_some() => Err(Rejection::NotFound.into()),
            None => unborn(caller, text),
        };
    }
    match &caller.project_limit {
        Some(limit) => limited(tx, caller, limit).await,
        None => Err(Rejection::ProjectRequired.into()),
    }
}

/// Where a search looks that may name several projects, and the ids of those it names, in order:
/// `None` for `*`.
///
/// # Errors
/// As [`place`], for each of them.
pub async fn places(
    tx: &mut TenantTx,
    caller: &Caller,
    arguments: &[String],
) -> Result<(Reader, Option<Vec<Uuid>>), Failure> {
    let first = place(tx, caller, arguments.first().map(String::as_str)).await?;
    let mut all = first.reader.projects.clone();
    let mut named = first.named();
    for argument in arguments.iter().skip(1) {
        let other = place(tx, caller, Some(argument)).await?;
        named = named
            .zip(other.named())
            .map(|(one, two)| [one, two].concat());
        all = all.and(other.reader.projects);
    }
    if let Some(named) = &mut named {
        named.sort_unstable();
        named.dedup();
    }
    let reader = Reader {
        principal: caller.principal,
        projects: all,
    };
    Ok((reader, named))
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

/// Where a caller stands without an argument: in the header's project or the credential's limit;
/// `None` if neither names one.
///
/// # Errors
/// As [`place`].
pub async fn current_place(tx: &mut TenantTx, caller: &Caller) -> Result<Option<Place>, Failure> {
    if caller.current_project.is_none() && caller.project_limit.is_none() {
        return Ok(None);
    }
    place(tx, caller, None).await.map(Some)
}

/// The widest eyes of a caller: the whole tenant, or the project that the credential is limited to.
///
/// # Errors
/// The store's.
pub async fn widest_reader(tx: &mut TenantTx, caller: &Caller) -> Result<Reader, Failure> {
    match &caller.project_limit {
        Some(limit) => Ok(limited(tx, caller, limit).await?.reader),
        None => Ok(everywhere(caller).reader),
    }
}

/// The last of some names that names a project which the caller may see; if none does, the last.
///
/// # Errors
/// `ambiguous_project`, or the store's.
pub async fn last_known<'a>(
    app: &App,
    caller: &Caller,
    names: &[&'a str],
) -> Result<&'a str, Failure> {
    let mut tx = app
        .store
        .tenant(caller.tenant, "projects.last_known")
        .await?;
    let mut last = names.last().copied().ok_or(Rejection::ProjectRequired)?;
    for name in names.iter().rev() {
        if find(&mut tx, caller, name).await?.is_some() {
            last = name;
            break;
        }
    }
    tx.commit().await?;
    Ok(last)
}

/// The key that a write names its project by: a new project is made by it.
///
/// # Errors
/// `project_required` for `*`; `invalid_field` for a key over its limit.
pub fn project_key(place: &Place, caller: &Caller) -> Result<ProjectKey, Failure> {
    match (&place.written, &place.unborn, &caller.current_project) {
        (Some(project), ..) => Ok(ProjectKey {
            key: project.key.clone(),
            name: project.name.clone(),
        }),
        (None, Some(_), Some(text)) => Ok(ProjectKey::parse(text.clone(), None)?),
        _ => Err(Rejection::ProjectRequired.into()),
    }
}

/// The keys under which a caller may report events, in the form in which keys are compared: that
/// of the credential's limit and of what was merged into it. None for a caller without a limit.
///
/// # Errors
/// The store's.
pub async fn reported_keys(app: &App, caller: &Caller) -> Result<Option<Vec<String>>, Failure> {
    let Some(limit) = &caller.project_limit else {
        return Ok(None);
    };
    let tx = app.store.tenant(caller.tenant, "projects.reported_keys");
    let mut tx = tx.await?;
    let family = tx.list_family(limit.id).await?;
    tx.commit().await?;
    Ok(Some(family.iter().map(|one| fold(&one.key)).collect()))
}

/// The one project that a text names among those the caller may see.
async fn find(tx: &mut TenantTx, caller: &Caller, text: &str) -> Result<Option<Resolved>, Failure> {
    let text = &*safe(text);
    let Some(limit) = &caller.project_limit else {
        let found = tx.resolve_projects(text, None).await?;
        return only(text, found);
    };
    // Merged into another, it is still all that there is for this credential.
    let family = family_of(tx, limit).await?;
    let found = tx.resolve_projects(text, Some(&family.members)).await?;
    let found = only(text, found)?;
    Ok(found.map(|found| Resolved { family, ..found }))
}

fn only(text: &str, mut found: Vec<Resolved>) -> Result<Option<Resolved>, Failure> {
    if found.len() > 1 {
        let candidates = found.into_iter();
        let candidates = candidates.map(|found| found.family.project.key).collect();
        return Err(Rejection::AmbiguousProject {
            name: text.to_owned(),
            candidates,
        }
        .into());
    }
    Ok(found.pop())
}

async fn limited(tx: &mut TenantTx, caller: &Caller, limit: &Project) -> Result<Place, Failure> {
    let family = family_of(tx, limit).await?;
    let named = family.project.clone();
    Ok(one(caller, Resolved { family, named }))
}

/// What a credential with this limit sees. The name is read anew: the credential may have been
/// read before it changed.
async fn family_of(tx: &mut TenantTx, limit: &Project) -> Result<Family, Failure> {
    let family = tx.list_family(limit.id).await?;
    let now = family.iter().find(|project| project.id == limit.id);
    Ok(Family {
        project: now.unwrap_or(limit).clone(),
        members: family.iter().map(|project| project.id).collect(),
    })
}

fn one(caller: &Caller, found: Resolved) -> Place {
    let reader = Reader {
        principal: caller.principal,
        projects: ProjectSet::Only(found.family.members),
    };
    Place {
        reader,
        project: Some(found.family.project),
        written: Some(found.named),
        unborn: None,
    }
}

fn everywhere(caller: &Caller) -> Place {
    let reader = Reader {
        principal: caller.principal,
        projects: ProjectSet::All,
    };
    Place {
        reader,
        project: None,
        written: None,
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
        written: None,
        unborn: Some(key.name),
    })
}
