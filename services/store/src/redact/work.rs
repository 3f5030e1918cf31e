//! Entries of work lists, and the items that stand beside them: a list in which an entry changed
//! is folded anew. Two tasks whose names differed in a secret alone become one.

use std::collections::{BTreeMap, BTreeSet};

use cairn_domain::redact::VERSION;
use cairn_domain::work_state::{Item, Place, WorkEntry, WorkEntryDraft};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use uuid::Uuid;

use super::{Rescan, Rescanned, RowKey};
use crate::events::work_items::{ItemAt, ItemRow, Kept};
use crate::work_state::hlc;
use crate::{StoreError, TenantTx};

#[derive(FromRow)]
struct EntryRow {
    position: i64,
    project_id: i32,
    list: String,
    task: Option<String>,
    fields: String,
    author_id: i32,
    event_id: Uuid,
    hlc_ms: i64,
    hlc_counter: i64,
}

/// A list of a project.
type ListAt = (i32, String);

impl TenantTx {
    pub(super) async fn redact_work_entries(
        &mut self,
        rescan: &Rescan,
    ) -> Result<Rescanned, StoreError> {
        // As an append does: nothing can come between reading lists and writing what follows.
        sqlx::query("select 1 from tenant_counters where tenant_id = $1 for update")
            .bind(self.tenant.key())
            .execute(&mut *self.tx)
            .await?;
        let rows: Vec<EntryRow> = sqlx::query_as(
            "select position, project_id, list, task, fields, author_id, event_id, hlc_ms,
               hlc_counter
             from work_entries where tenant_id = $1 and position > $2 and redacted < $3
             order by position limit $4",
        )
        .bind(self.tenant.key())
        .bind(rescan.after().1)
        .bind(rescan.below())
        .bind(i64::from(rescan.most))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut done = Rescanned::default();
        let mut unchanged = Vec::new();
        let mut renamed: BTreeMap<ItemAt, ItemAt> = BTreeMap::new();
        let mut lists: BTreeSet<ListAt> = BTreeSet::new();
        for row in rows {
            done.seen += 1;
            done.last = Some(RowKey(0, row.position));
            let kept = kept(&row)?;
            if (&kept.list, &kept.fields) == (&row.list, &row.fields) {
                unchanged.push(row.position);
                continue;
            }
            done.changed += 1;
            let position = self.take_position().await?;
            self.rewrite_entry(&row, &kept, position).await?;
            let (old, new) = (
                item_at(row.project_id, &row.list, row.task.as_deref()),
                item_at(row.project_id, &kept.list, kept.task.as_deref()),
            );
            lists.extend([(old.0, old.1.clone()), (new.0, new.1.clone())]);
            renamed.insert(old, new);
        }
        self.note_entries(&unchanged).await?;
        self.fold_anew(&lists, &renamed).await?;
        Ok(done)
    }

    async fn rewrite_entry(
        &mut self,
        row: &EntryRow,
        kept: &WorkEntryDraft,
        position: i64,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "update work_entries set list = $3, task = $4, fields = $5, redacted = $6,
               position = $7
             where tenant_id = $1 and position = $2",
        )
        .bind(self.tenant.key())
        .bind(row.position)
        .bind(&kept.list)
        .bind(&kept.task)
        .bind(&kept.fields)
        .bind(VERSION)
        .bind(position)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn note_entries(&mut self, positions: &[i64]) -> Result<(), StoreError> {
        sqlx::query(
            "update work_entries set redacted = $3
             where tenant_id = $1 and position = any ($2) and redacted < $3",
        )
        .bind(self.tenant.key())
        .bind(positions)
        .bind(VERSION)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Makes the items of lists from their entries; claims stay with their tasks.
    async fn fold_anew(
        &mut self,
        lists: &BTreeSet<ListAt>,
        renamed: &BTreeMap<ItemAt, ItemAt>,
    ) -> Result<(), StoreError> {
        if lists.is_empty() {
            return Ok(());
        }
        let claims = self.take_items(lists).await?;
        let mut items = BTreeMap::new();
        let mut newest: BTreeMap<ListAt, Place> = BTreeMap::new();
        for at in lists {
            for row in self.entries_of(at).await? {
                let place = Place {
                    hlc: hlc(row.hlc_ms, row.hlc_counter),
                    event: row.event_id,
                };
                let last = newest.entry(at.clone()).or_insert(place);
                *last = place.max(*last);
                fold(&mut items, &row, place)?;
            }
        }
        for (at, before) in claims {
            let at = renamed.get(&at).unwrap_or(&at);
            if let Some(kept) = items.get_mut(at) {
                let claim = before.claim.filter(|_| !kept.item.is_closed());
                kept.claim = kept.claim.take().or(claim);
            }
        }
        let newest = newest
            .iter()
            .map(|(at, place)| ((at.0, at.1.as_str()), *place));
        self.save_work_lists(&newest.collect()).await?;
        self.save_work_items(&items).await?;
        let projects: BTreeSet<i32> = lists.iter().map(|at| at.0).collect();
        for project in projects {
            self.raise_context_revision(project).await?;
        }
        Ok(())
    }

    /// Takes out lists with their items, and gives what they were.
    async fn take_items(
        &mut self,
        lists: &BTreeSet<ListAt>,
    ) -> Result<Vec<(ItemAt, Kept)>, StoreError> {
        let projects: Vec<i32> = lists.iter().map(|at| at.0).collect();
        let names: Vec<&str> = lists.iter().map(|at| at.1.as_str()).collect();
        let rows: Vec<ItemRow> = sqlx::query_as(
            "delete from work_items i
             using unnest($2::int[], $3::text[]) u (project_id, list)
             where i.tenant_id = $1 and i.project_id = u.project_id and i.list = u.list
             returning i.project_id, i.list, i.task_digest, i.task, i.first_ms, i.first_counter,
               i.first_event, i.last_ms, i.last_counter, i.last_event, i.author_id, i.keys,
               i.holder_id, i.holder_session, i.holder, i.held_until, i.lease_minutes",
        )
        .bind(self.tenant.key())
        .bind(&projects)
        .bind(&names)
        .fetch_all(&mut *self.tx)
        .await?;
        sqlx::query(
            "delete from work_lists l
             using unnest($2::int[], $3::text[]) u (project_id, list)
             where l.tenant_id = $1 and l.project_id = u.project_id and l.list = u.list",
        )
        .bind(self.tenant.key())
        .bind(projects)
        .bind(names)
        .execute(&mut *self.tx)
        .await?;
        rows.into_iter().map(ItemRow::read).collect()
    }

    async fn entries_of(&mut self, at: &ListAt) -> Result<Vec<EntryRow>, StoreError> {
        let rows = sqlx::query_as(
            "select position, project_id, list, task, fields, author_id, event_id, hlc_ms,
               hlc_counter
             from work_entries where tenant_id = $1 and project_id = $2 and list = $3
             order by hlc_ms, hlc_counter, event_id",
        )
        .bind(self.tenant.key())
        .bind(at.0)
        .bind(&at.1)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows)
    }
}

/// Merges an entry into its item.
fn fold(
    items: &mut BTreeMap<ItemAt, Kept>,
    row: &EntryRow,
    place: Place,
) -> Result<(), StoreError> {
    let entry = WorkEntry {
        list: row.list.clone(),
        task: row.task.clone(),
        fields: fields(row)?,
        place,
        author: String::new(),
    };
    let at = item_at(row.project_id, &row.list, row.task.as_deref());
    let kept = items.entry(at).or_insert_with(|| Kept {
        item: Item::of(&entry),
        bytes: 0,
        author: row.author_id,
        claim: None,
    });
    kept.item.add(&entry);
    if kept.item.last == place {
        kept.author = row.author_id;
    }
    Ok(())
}

fn fields(row: &EntryRow) -> Result<Map<String, Value>, StoreError> {
    serde_json::from_str(&row.fields)
        .map_err(|_| StoreError::inconsistent("work_entries", "fields", row.position))
}

/// An entry as it may be kept. One that was within its limits stays so.
fn kept(row: &EntryRow) -> Result<WorkEntryDraft, StoreError> {
    WorkEntryDraft::parse(&row.list, fields(row)?, None).or_else(|_| {
        // Nothing of it can be kept but that it was.
        let task = row.task.as_ref().map(|_| Value::from("[withheld]"));
        let fields = [("task".to_owned(), task.unwrap_or(Value::Null))];
        WorkEntryDraft::parse("[withheld]", fields.into_iter().collect(), None)
            .map_err(|_| StoreError::inconsistent("work_entries", "fields", row.position))
    })
}

fn item_at(project: i32, list: &str, task: Option<&str>) -> ItemAt {
    let digest = task.map(|task| Sha256::digest(task.as_bytes()).to_vec());
    (project, list.to_owned(), digest.unwrap_or_default())
}
