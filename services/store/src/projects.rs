//! Projects of one tenant: finding them by what a caller wrote, and the families that merging
//! makes. They are made by their first event, in `events/`; renaming and merging stand in
//! `projects/change.rs`.

mod change;
mod list;

pub use change::Merged;
pub use list::{ListedProject, ProjectPlace};

use cairn_domain::ids::ProjectId;
use cairn_domain::project::{Family, Project, Resolved, fold};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// Projects that one name may answer; more would help nobody choose.
const CANDIDATES: i64 = 20;
/// Projects in one list.
const LISTED: i64 = 1_000;

#[derive(FromRow)]
struct ProjectRow {
    project_id: i32,
    uid: Uuid,
    key: String,
    name: String,
}

impl From<ProjectRow> for Project {
    fn from(row: ProjectRow) -> Self {
        Self {
            id: ProjectId {
                key: row.project_id,
                uuid: row.uid,
            },
            key: row.key,
            name: row.name,
        }
    }
}

#[derive(FromRow)]
struct ResolvedRow {
    #[sqlx(flatten)]
    project: ProjectRow,
    member_keys: Vec<i32>,
    member_uids: Vec<Uuid>,
    named_id: i32,
    named_uid: Uuid,
    named_key: String,
    named_name: String,
}

impl From<ResolvedRow> for Resolved {
    fn from(row: ResolvedRow) -> Self {
        let members = row.member_keys.into_iter().zip(row.member_uids);
        Self {
            family: Family {
                project: row.project.into(),
                members: members.map(|(key, uuid)| ProjectId { key, uuid }).collect(),
            },
            named: Project {
                id: ProjectId {
                    key: row.named_id,
                    uuid: row.named_uid,
                },
                key: row.named_key,
                name: row.named_name,
            },
        }
    }
}

impl TenantTx {
    /// The projects that `text` names, each with what was merged into it: the one of this id;
    /// else the one of this key; else all of this name, at most 20, by key. A merged project
    /// answers as the one it was merged into.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_projects(&mut self, text: &str) -> Result<Vec<Family>, StoreError> {
        let found = self.resolve_projects(text, None).await?;
        Ok(found.into_iter().map(|found| found.family).collect())
    }

    /// The same with the project that is meant, which is the merged one where the text names that
    /// alone; `within` names the only projects that there are for the caller.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn resolve_projects(
        &mut self,
        text: &str,
        within: Option<&[ProjectId]>,
    ) -> Result<Vec<Resolved>, StoreError> {
        let folded = fold(text);
        let within: Option<Vec<i32>> =
            within.map(|within| within.iter().map(|project| project.key).collect());
        let rows: Vec<ResolvedRow> = sqlx::query_as(
            "with named as (
               select project_id, merged_into,
                 case when uid = $2 then 0 when key_folded = $3 then 1 else 2 end as rank
               from projects
               where tenant_id = $1 and (uid = $2 or key_folded = $3 or name_folded = $3)
                 and ($5::int[] is null or project_id = any ($5))),
             best as (
               select coalesce(merged_into, project_id) as project_id,
                 (array_agg(project_id order by merged_into is not null, project_id))[1] as meant
               from named where rank = (select min(rank) from named)
               group by 1)
             select p.project_id, p.uid, p.key, p.name, m.member_keys, m.member_uids,
               n.project_id as named_id, n.uid as named_uid, n.key as named_key,
               n.name as named_name
             from best join projects p on p.tenant_id = $1 and p.project_id = best.project_id
             join projects n on n.tenant_id = $1 and n.project_id = best.meant
             cross join lateral (
               select array_agg(f.project_id order by f.uid) as member_keys,
                 array_agg(f.uid order by f.uid) as member_uids
               from projects f
               where f.tenant_id = $1
                 and (f.project_id = p.project_id or f.merged_into = p.project_id)) m
             order by p.key_folded limit $4",
        )
        .bind(self.tenant.key())
        .bind(text.trim().parse::<Uuid>().ok())
        .bind(folded)
        .bind(CANDIDATES)
        .bind(within)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(Resolved::from).collect())
    }

    /// The tenant's projects by name, without merged ones, at most 1,000.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn list_projects(&mut self) -> Result<Vec<Project>, StoreError> {
        let rows: Vec<ProjectRow> = sqlx::query_as(
            "select project_id, uid, key, name from projects
             where tenant_id = $1 and merged_into is null
             order by name_folded, key_folded limit $2",
        )
        .bind(self.tenant.key())
        .bind(LISTED)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(Project::from).collect())
    }

    /// A project and all that were merged into it, ascending by UUID; empty if there is none. For
    /// a project that is known already, as a credential's limit is.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_project_family(
        &mut self,
        id: ProjectId,
    ) -> Result<Vec<ProjectId>, StoreError> {
        let family = self.list_family(id).await?;
        Ok(family.into_iter().map(|project| project.id).collect())
    }

    /// The same with their keys and names. Of a project that was merged itself, it is what was
    /// merged into it before that: not what it went into.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn list_family(&mut self, id: ProjectId) -> Result<Vec<Project>, StoreError> {
        let rows: Vec<ProjectRow> = sqlx::query_as(
            "with recursive family as (
               select project_id, uid, key, name from projects
               where tenant_id = $1 and project_id = $2
               union
               select p.project_id, p.uid, p.key, p.name
               from family f cross join lateral (
                 select * from projects
                 where tenant_id = $1 and merged_into = f.project_id
                 union all
                 select * from projects
                 where tenant_id = $1 and merged_through = f.project_id) p)
             select project_id, uid, key, name from family order by uid",
        )
        .bind(self.tenant.key())
        .bind(id.key)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(Project::from).collect())
    }
}
