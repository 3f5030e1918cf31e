//! Projects as lists show them: each with the keys of what was merged into it.

use cairn_domain::ids::ProjectId;
use cairn_domain::project::Project;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use uuid::Uuid;

use super::ProjectRow;
use crate::{StoreError, TenantTx};

/// A project with where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedProject {
    /// The project.
    pub project: Project,
    /// The key of what it was merged into.
    pub merged_into: Option<String>,
    /// The keys of what was merged into it, which read as its own.
    pub aliases: Vec<String>,
    place: ProjectPlace,
}

impl ListedProject {
    /// Its place in a list.
    #[must_use]
    pub const fn place(&self) -> &ProjectPlace {
        &self.place
    }
}

/// The place of a project in a list, which no two share: its name and its key, as they are
/// compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectPlace(String, String);

#[derive(FromRow)]
struct ListedColumns {
    #[sqlx(flatten)]
    project: ProjectRow,
    merged_into: Option<String>,
    aliases: Vec<String>,
    name_folded: String,
    key_folded: String,
}

impl From<ListedColumns> for ListedProject {
    fn from(row: ListedColumns) -> Self {
        Self {
            project: row.project.into(),
            merged_into: row.merged_into,
            aliases: row.aliases,
            place: ProjectPlace(row.name_folded, row.key_folded),
        }
    }
}

macro_rules! listed {
    ($condition:literal) => {
        concat!(
            "select p.project_id, p.uid, p.key, p.name, t.key as merged_into, p.name_folded,
               p.key_folded, array(
                 select a.key from projects a
                 where a.tenant_id = $1 and a.merged_into = p.project_id
                 order by a.key_folded) as aliases
             from projects p
             left join projects t on t.tenant_id = $1 and t.project_id = p.merged_into
             where p.tenant_id = $1 and ",
            $condition
        )
    };
}

impl TenantTx {
    /// The tenant's projects by name, without merged ones: those behind a place, at most `limit`.
    /// `within` names the only ones that there are for the caller, merged or not.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn list_projects_after(
        &mut self,
        after: Option<&ProjectPlace>,
        within: Option<ProjectId>,
        limit: u32,
    ) -> Result<Vec<ListedProject>, StoreError> {
        let place = after.map(|ProjectPlace(name, key)| (name.as_str(), key.as_str()));
        let (name, key) = place.unzip();
        let rows: Vec<ListedColumns> = sqlx::query_as(listed!(
            "($2::int is null and p.merged_into is null or p.project_id = $2)
             and ($3::text is null or (p.name_folded, p.key_folded) > ($3, $4))
             order by p.name_folded, p.key_folded limit $5"
        ))
        .bind(self.tenant.key())
        .bind(within.map(|project| project.key))
        .bind(name)
        .bind(key)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(ListedProject::from).collect())
    }

    /// The project of this id, merged or not.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_project(&mut self, uuid: Uuid) -> Result<Option<ListedProject>, StoreError> {
        let row: Option<ListedColumns> = sqlx::query_as(listed!("p.uid = $2"))
            .bind(self.tenant.key())
            .bind(uuid)
            .fetch_optional(&mut *self.tx)
            .await?;
        Ok(row.map(ListedProject::from))
    }
}
