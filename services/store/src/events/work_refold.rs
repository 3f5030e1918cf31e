//! What lists say once entries were taken out of the log: folded anew from those that are left.

use std::collections::{BTreeMap, BTreeSet};

use cairn_domain::work_state::{Item, Place, WorkEntry};
use sqlx::FromRow;
use uuid::Uuid;

use super::work_items::{ItemAt, Kept, task_digest};
use crate::work_state::hlc;
use crate::{StoreError, TenantTx};

/// An entry that was taken out of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, FromRow)]
pub(crate) struct DroppedEntry {
    pub position: i64,
    pub event_id: Uuid,
    #[sqlx(rename = "project_id")]
    pub project: i32,
    #[sqlx(rename = "author_id")]
    pub author: i32,
    pub list: String,
    pub task: Option<String>,
}

#[derive(FromRow)]
struct LeftEntry {
    event_id: Uuid,
    author_id: i32,
    fields: String,
    hlc_ms: i64,
    hlc_counter: i64,
}

impl TenantTx {
    /// Folds anew what dropped entries were part of. A claim of one whose entries went goes with
    /// them. Called with the tenant's counter held, once the entries are gone.
    pub(crate) async fn refold_work_items(
        &mut self,
        dropped: &[DroppedEntry],
    ) -> Result<(), StoreError> {
        let touched: BTreeSet<(i32, &str, Option<&str>)> = dropped
            .iter()
            .map(|entry| (entry.project, entry.list.as_str(), entry.task.as_deref()))
            .collect();
        let writers: BTreeSet<i32> = dropped.iter().map(|entry| entry.author).collect();
        let (mut kept, mut gone) = (BTreeMap::new(), Vec::new());
        for (project, list, task) in touched {
            let at: ItemAt = (project, list.to_owned(), task_digest(task));
            let before = self.find_work_items(std::slice::from_ref(&at)).await?;
            let claim = before.into_values().find_map(|before| before.claim);
            match self.fold_item(project, list, task).await? {
                Some((item, author)) => {
                    let claim = claim.filter(|claim| !writers.contains(&claim.holder.principal));
                    let claim = claim.filter(|_| !item.is_closed());
                    let bytes = item.stored_keys().len();
                    let item = Kept {
                        item,
                        bytes,
                        author,
                        claim,
                    };
                    kept.insert(at, item);
                }
                None => gone.push(at),
            }
        }
        if !kept.is_empty() {
            self.save_work_items(&kept).await?;
        }
        self.drop_work_items(&gone).await?;
        self.date_work_lists(dropped).await
    }

    /// What the entries of an item fold to, and who wrote the newest; none if there are none.
    async fn fold_item(
        &mut self,
        project: i32,
        list: &str,
        task: Option<&str>,
    ) -> Result<Option<(Item, i32)>, StoreError> {
        let left: Vec<LeftEntry> = sqlx::query_as(
            "select event_id, author_id, fields, hlc_ms, hlc_counter from work_entries
             where tenant_id = $1 and project_id = $2 and list = $3 and task is not distinct from $4
             order by hlc_ms, hlc_counter, event_id",
        )
        .bind(self.tenant.key())
        .bind(project)
        .bind(list)
        .bind(task)
        .fetch_all(&mut *self.tx)
        .await?;
        let mut folded: Option<(Item, i32)> = None;
        for entry in left {
            let fields = serde_json::from_str(&entry.fields);
            let of_fold = WorkEntry {
                list: list.to_owned(),
                task: task.map(str::to_owned),
                // Written by this service from what it had parsed.
                fields: fields.map_err(|error| StoreError::Bug(error.into()))?,
                place: Place {
                    hlc: hlc(entry.hlc_ms, entry.hlc_counter),
                    event: entry.event_id,
                },
                author: String::new(),
            };
            match &mut folded {
                Some((item, author)) => {
                    item.add(&of_fold);
                    *author = entry.author_id;
                }
                None => folded = Some((Item::of(&of_fold), entry.author_id)),
            }
        }
        Ok(folded)
    }

    async fn drop_work_items(&mut self, gone: &[ItemAt]) -> Result<(), StoreError> {
        sqlx::query(
            "delete from work_items i
             using unnest($2::int[], $3::text[], $4::bytea[]) u (project_id, list, task_digest)
             where i.tenant_id = $1 and i.project_id = u.project_id and i.list = u.list
               and i.task_digest = u.task_digest",
        )
        .bind(self.tenant.key())
        .bind(gone.iter().map(|at| at.0).collect::<Vec<_>>())
        .bind(gone.iter().map(|at| at.1.as_str()).collect::<Vec<_>>())
        .bind(gone.iter().map(|at| &at.2[..]).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Dates lists by the newest entries that are left in them; those without any go.
    async fn date_work_lists(&mut self, dropped: &[DroppedEntry]) -> Result<(), StoreError> {
        let lists: BTreeSet<(i32, &str)> = dropped
            .iter()
            .map(|entry| (entry.project, entry.list.as_str()))
            .collect();
        sqlx::query(
            "with touched as (
               select u.project_id, u.list, n.hlc_ms, n.hlc_counter, n.event_id
               from unnest($2::int[], $3::text[]) u (project_id, list)
               left join lateral (
                 select w.hlc_ms, w.hlc_counter, w.event_id from work_entries w
                 where w.tenant_id = $1 and w.project_id = u.project_id and w.list = u.list
                 order by w.hlc_ms desc, w.hlc_counter desc, w.event_id desc limit 1) n on true),
             gone as (
               delete from work_lists l using touched t
               where l.tenant_id = $1 and l.project_id = t.project_id and l.list = t.list
                 and t.event_id is null)
             update work_lists l set newest_ms = t.hlc_ms, newest_counter = t.hlc_counter,
               newest_event = t.event_id
             from touched t
             where l.tenant_id = $1 and l.project_id = t.project_id and l.list = t.list
               and t.event_id is not null",
        )
        .bind(self.tenant.key())
        .bind(lists.iter().map(|list| list.0).collect::<Vec<_>>())
        .bind(lists.iter().map(|list| list.1).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
