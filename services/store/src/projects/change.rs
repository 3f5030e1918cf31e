//! Renaming and merging projects (contract 2.4). Both are changes that clients follow: they take
//! positions, under the tenant's counter like all others, and no context of before is served after.

use std::collections::HashMap;

use cairn_domain::ids::{PrincipalId, ProjectId};
use cairn_domain::project::fold;
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::{StoreError, TenantTx};

/// What became of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The one is an alias of the other from now on.
    Done,
    /// They are one and the same.
    Itself,
    /// The one is merged already.
    Already,
    /// The other is merged itself: into the first, or into a third.
    IntoMerged,
}

impl TenantTx {
    /// Gives a project another name; `actor` is none for the operator.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn rename_project(
        &mut self,
        project: ProjectId,
        name: &str,
        actor: Option<PrincipalId>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let position = self.take_position().await?;
        let (key, was): (String, String) = sqlx::query_as(
            "update projects p set name = $3, name_folded = $4, position = $5
             from projects old
             where p.tenant_id = $1 and p.project_id = $2
               and old.tenant_id = $1 and old.project_id = p.project_id
             returning p.key, old.name",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .bind(name)
        .bind(fold(name))
        .bind(position)
        .fetch_one(&mut *self.tx)
        .await?;
        self.raise_context_revision(project.key).await?;
        let detail = json!({ "name": name, "was": was });
        self.append_audit(actor, "project.rename", &key, detail, now)
            .await
    }

    /// Merges a project into another, together with what was merged into it before. Records keep
    /// their own project; reads of either cover both. `actor` is none for the operator.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn merge_project(
        &mut self,
        project: ProjectId,
        into: ProjectId,
        actor: Option<PrincipalId>,
        now: DateTime<Utc>,
    ) -> Result<Merged, StoreError> {
        if project == into {
            return Ok(Merged::Itself);
        }
        // Two merges at once, of the one into the other and back, wait here for each other.
        let first = self.take_position().await?;
        let rows: Vec<(i32, String, Option<i32>)> = sqlx::query_as(
            "select project_id, key, merged_into from projects
             where tenant_id = $1 and (project_id in ($2, $3) or merged_into = $2)",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .bind(into.key)
        .fetch_all(&mut *self.tx)
        .await?;
        let standing: HashMap<i32, &(i32, String, Option<i32>)> =
            rows.iter().map(|row| (row.0, row)).collect();
        let missing = || StoreError::inconsistent("projects", "project_id", project.uuid);
        let (_, key, merged) = standing.get(&project.key).ok_or_else(missing)?;
        let (_, into_key, into_merged) = standing.get(&into.key).ok_or_else(missing)?;
        if merged.is_some() {
            return Ok(Merged::Already);
        }
        if into_merged.is_some() {
            return Ok(Merged::IntoMerged);
        }
        // The project itself, and what reads look for one step further from now on.
        let mut moved: Vec<i32> = rows.iter().map(|row| row.0).collect();
        moved.retain(|moved| *moved != into.key && *moved != project.key);
        moved.insert(0, project.key);
        let mut positions = vec![first];
        for _ in 1..moved.len() {
            positions.push(self.take_position().await?);
        }
        sqlx::query(
            "update projects p set merged_into = $3, position = u.position,
               merged_through = case when p.project_id = $2 then $3 else p.merged_through end,
               context_revision = p.context_revision + 1
             from unnest($4::int[], $5::bigint[]) u (project_id, position)
             where p.tenant_id = $1 and p.project_id = u.project_id",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .bind(into.key)
        .bind(&moved)
        .bind(&positions)
        .execute(&mut *self.tx)
        .await?;
        self.raise_context_revision(into.key).await?;
        let detail = json!({ "into": into_key });
        self.append_audit(actor, "project.merge", key, detail, now)
            .await?;
        Ok(Merged::Done)
    }
}
