//! Projects of a batch: made by their first event, marked when their context changes.

use std::collections::BTreeMap;

use cairn_domain::event::EventDraft;
use cairn_domain::project::{ProjectKey, fold};
use sqlx::FromRow;

use super::plan::Plan;
use crate::{StoreError, TenantTx};

/// A project that a batch writes to.
#[derive(Clone, FromRow)]
pub(super) struct OpenProject {
    #[sqlx(rename = "project_id")]
    pub key: i32,
    key_folded: String,
    /// None only for a project that this transaction made.
    pub position: Option<i64>,
}

/// The projects of a batch by their folded keys.
pub(super) type OpenProjects = BTreeMap<String, OpenProject>;

impl TenantTx {
    /// Finds the projects that events name and makes those that are missing.
    pub(super) async fn open_projects(
        &mut self,
        fresh: &[&EventDraft],
    ) -> Result<OpenProjects, StoreError> {
        let mut named: BTreeMap<String, &ProjectKey> = BTreeMap::new();
        for draft in fresh {
            named
                .entry(draft.project.folded())
                .or_insert(&draft.project);
        }
        let mut found = self.find_open_projects(&named).await?;
        named.retain(|folded, _| !found.contains_key(folded));
        if !named.is_empty() {
            self.insert_projects(&named).await?;
            found.extend(self.find_open_projects(&named).await?);
        }
        Ok(found)
    }

    async fn find_open_projects(
        &mut self,
        named: &BTreeMap<String, &ProjectKey>,
    ) -> Result<OpenProjects, StoreError> {
        let keys: Vec<&str> = named.keys().map(String::as_str).collect();
        let rows: Vec<OpenProject> = sqlx::query_as(
            "select project_id, key_folded, position from projects
             where tenant_id = $1 and key_folded = any($2)",
        )
        .bind(self.tenant.key())
        .bind(keys)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.key_folded.clone(), row))
            .collect())
    }

    /// Inserts in the order of the map, so that two batches cannot lock each other out.
    pub(crate) async fn insert_projects(
        &mut self,
        named: &BTreeMap<String, &ProjectKey>,
    ) -> Result<(), StoreError> {
        let folded: Vec<&str> = named.keys().map(String::as_str).collect();
        let keys: Vec<&str> = named.values().map(|project| project.key.as_str()).collect();
        let names: Vec<&str> = named
            .values()
            .map(|project| project.name.as_str())
            .collect();
        let folded_names: Vec<String> = names.iter().map(|name| fold(name)).collect();
        sqlx::query(
            "insert into projects (tenant_id, key, key_folded, name, name_folded)
             select $1, u.key, u.key_folded, u.name, u.name_folded
             from unnest($2::text[], $3::text[], $4::text[], $5::text[])
               with ordinality u (key, key_folded, name, name_folded, nth)
             order by u.nth
             on conflict (tenant_id, key_folded) do nothing",
        )
        .bind(self.tenant.key())
        .bind(keys)
        .bind(folded)
        .bind(names)
        .bind(folded_names)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Gives new projects their positions, counts their new records, and raises the context
    /// revision of those whose context changed, and of what they were merged into: by now, for a
    /// merge holds the tenant's counter, as this is called with it held.
    pub(super) async fn save_projects(&mut self, plan: &Plan) -> Result<(), StoreError> {
        let changed = plan.changed_projects();
        let raised: Vec<i32> = changed.iter().map(|project| project.key).collect();
        let placed = plan.new_projects();
        let gains = plan.gains();
        if raised.is_empty() && placed.is_empty() && gains.is_empty() {
            return Ok(());
        }
        let (new, positions): (Vec<i32>, Vec<i64>) = placed.into_iter().unzip();
        let (grown, gains): (Vec<i32>, Vec<i64>) = gains.into_iter().unzip();
        sqlx::query(
            "with raised as (
               select id from unnest($2::int[]) id
               union select m.merged_into from projects m
               where m.tenant_id = $1 and m.project_id = any($2) and m.merged_into is not null)
             update projects p set
               position = coalesce(u.position, p.position),
               context_revision = p.context_revision + (r.id is not null)::int,
               records = p.records + coalesce(g.gain, 0)
             from (
               select id from raised union select id from unnest($3::int[]) id
               union select id from unnest($5::int[]) id) t
             left join raised r on r.id = t.id
             left join unnest($3::int[], $4::bigint[]) u (id, position) on u.id = t.id
             left join unnest($5::int[], $6::bigint[]) g (id, gain) on g.id = t.id
             where p.tenant_id = $1 and p.project_id = t.id",
        )
        .bind(self.tenant.key())
        .bind(raised)
        .bind(new)
        .bind(positions)
        .bind(grown)
        .bind(gains)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
