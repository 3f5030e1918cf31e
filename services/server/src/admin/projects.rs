//! `admin project`: projects from the machine that runs the service.

use anyhow::bail;
use cairn_domain::project::Project;
use cairn_store::TenantTx;
use cairn_store::projects::{ListedProject, Merged};
use cairn_wire::projects::ProjectPatch;
use clap::Subcommand;

use super::{Operator, find_tenant};

/// What the operator does with projects.
#[derive(Clone, Debug, Subcommand)]
pub enum ProjectCommand {
    /// List the projects, each with the keys of what was merged into it.
    List {
        /// The tenant's name.
        tenant: String,
    },
    /// Give a project another name.
    Rename {
        /// The tenant's name.
        tenant: String,
        /// The project: id, key or name.
        project: String,
        /// Its name from now on.
        name: String,
    },
    /// Make a project an alias of another. There is no way back.
    Merge {
        /// The tenant's name.
        tenant: String,
        /// The project: id, key or name.
        project: String,
        /// What it is merged into: id, key or name.
        into: String,
    },
}

impl ProjectCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// If there is no such tenant or project, a name fits several, the state does not allow it, or
    /// the store is unavailable.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let Operator { store, clock } = operator;
        let tenant = match &self {
            Self::List { tenant } | Self::Rename { tenant, .. } | Self::Merge { tenant, .. } => {
                find_tenant(store, tenant).await?
            }
        };
        let mut tx = store.tenant(tenant, "admin.project").await?;
        let said = match self {
            Self::List { .. } => {
                let projects = tx.list_projects_after(None, None, u32::MAX).await?;
                let lines: Vec<String> = projects.iter().map(line).collect();
                lines.join("\n")
            }
            Self::Rename { project, name, .. } => {
                let patch = ProjectPatch {
                    name: Some(name),
                    merge_into: None,
                };
                let name = patch.parse()?.name.unwrap_or_default();
                let project = named(&mut tx, &project).await?;
                tx.rename_project(project.id, &name, None, clock.now())
                    .await?;
                format!("{} is {name}", project.key)
            }
            Self::Merge { project, into, .. } => {
                let project = named(&mut tx, &project).await?;
                let into = named(&mut tx, &into).await?;
                let now = clock.now();
                match tx.merge_project(project.id, into.id, None, now).await? {
                    Merged::Done => format!("{} is an alias of {}", project.key, into.key),
                    Merged::Itself => bail!("a project cannot be merged into itself"),
                    Merged::Already => bail!("{:?} is merged already", project.key),
                    Merged::IntoMerged => bail!("{:?} is merged itself", into.key),
                }
            }
        };
        tx.commit().await?;
        Ok(said)
    }
}

fn line(listed: &ListedProject) -> String {
    let Project { id, key, name } = &listed.project;
    let aliases: String = listed
        .aliases
        .iter()
        .map(|key| format!("  = {key}"))
        .collect();
    format!("{}  {key}  {name}{aliases}", id.uuid)
}

/// Exactly the project that a text names, merged or not.
async fn named(tx: &mut TenantTx, text: &str) -> anyhow::Result<Project> {
    let mut found = tx.resolve_projects(text, None).await?;
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one.named),
        (None, _) => bail!("there is no project {text:?}"),
        (Some(_), false) => bail!("{text:?} fits several projects; use a key or an id"),
    }
}
