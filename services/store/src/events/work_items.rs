//! What lists say, kept beside their entries: each entry is merged into its item as it is
//! appended, and decides there on the item's claim.

use std::collections::BTreeMap;

use cairn_domain::hlc::Hlc;
use cairn_domain::limits;
use cairn_domain::plain::one_line;
use cairn_domain::work_state::{Claim, Holder, Item, Place, WorkEntry, decide};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use uuid::Uuid;

use super::EventBatch;
use super::work_entries::Appended;
use crate::work_state::hlc;
use crate::{StoreError, TenantTx};

/// Which item: project, list, and the digest of its task's name, empty for the list's own state.
pub(crate) type ItemAt = (i32, String, Vec<u8>);

/// An item as the batch leaves it.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) item: Item,
    /// About the size of its keys as they are kept.
    pub(crate) bytes: usize,
    pub(crate) author: i32,
    pub(crate) claim: Option<Claim>,
}

#[derive(FromRow)]
pub(crate) struct ItemRow {
    project_id: i32,
    list: String,
    task_digest: Vec<u8>,
    task: Option<String>,
    first_ms: i64,
    first_counter: i64,
    first_event: Uuid,
    last_ms: i64,
    last_counter: i64,
    last_event: Uuid,
    author_id: i32,
    keys: String,
    holder_id: Option<i32>,
    holder_session: Option<String>,
    holder: Option<String>,
    held_until: Option<DateTime<Utc>>,
    lease_minutes: Option<i32>,
}

impl ItemRow {
    pub(crate) fn read(self) -> Result<(ItemAt, Kept), StoreError> {
        let claim = self.claim();
        let first = place(self.first_ms, self.first_counter, self.first_event);
        let last = place(self.last_ms, self.last_counter, self.last_event);
        let item = Item::from_stored(self.task, first, last, String::new(), &self.keys);
        let item = item.map_err(|_| StoreError::inconsistent("work_items", "keys", &self.list))?;
        let kept = Kept {
            item,
            bytes: self.keys.len(),
            author: self.author_id,
            claim,
        };
        Ok(((self.project_id, self.list, self.task_digest), kept))
    }

    fn claim(&self) -> Option<Claim> {
        Some(Claim {
            holder: Holder {
                principal: self.holder_id?,
                session: self.holder_session.clone()?,
                name: self.holder.clone()?,
            },
            until: self.held_until?,
            minutes: u32::try_from(self.lease_minutes?).unwrap_or_default(),
        })
    }
}

fn place(ms: i64, counter: i64, event: Uuid) -> Place {
    let hlc = hlc(ms, counter);
    Place { hlc, event }
}

impl TenantTx {
    /// Merges appended entries into the items of their lists. Called with the tenant's counter
    /// held.
    ///
    /// # Errors
    /// `Claimed` if a live write wants a task that somebody else holds; `Overfull` naming the
    /// entries that are too much.
    pub(super) async fn merge_work_entries(
        &mut self,
        batch: &EventBatch<'_>,
        entries: &[Appended<'_>],
        moments: &[Hlc],
    ) -> Result<(), StoreError> {
        let mut wanted: Vec<ItemAt> = entries.iter().map(item_at).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut items = self.find_work_items(&wanted).await?;
        let mut overfull = Vec::new();
        let mut lists: BTreeMap<(i32, &str), Place> = BTreeMap::new();
        for (entry, hlc) in entries.iter().zip(moments) {
            let place = Place {
                hlc: *hlc,
                event: entry.draft.event_id,
            };
            let newest = lists.entry((entry.item.project, &entry.own.list));
            newest
                .and_modify(|newest| *newest = place.max(*newest))
                .or_insert(place);
            let at = item_at(entry);
            let before = items.get(&at);
            let kept = merge(before.cloned(), batch, entry, place)?;
            let grows = before.is_none_or(|before| kept.bytes > before.bytes);
            if grows && kept.bytes > limits::WORK_ITEM_BYTES {
                overfull.push(entry.draft.event_id);
            } else {
                items.insert(at, kept);
            }
        }
        if !overfull.is_empty() {
            return Err(StoreError::Overfull(overfull));
        }
        self.save_work_lists(&lists).await?;
        self.save_work_items(&items).await
    }

    pub(super) async fn find_work_items(
        &mut self,
        wanted: &[ItemAt],
    ) -> Result<BTreeMap<ItemAt, Kept>, StoreError> {
        let rows: Vec<ItemRow> = sqlx::query_as(
            "select i.project_id, i.list, i.task_digest, i.task, i.first_ms, i.first_counter,
               i.first_event, i.last_ms, i.last_counter, i.last_event, i.author_id, i.keys,
               i.holder_id, i.holder_session, i.holder, i.held_until, i.lease_minutes
             from unnest($2::int[], $3::text[], $4::bytea[]) u (project_id, list, task_digest)
             join work_items i on i.tenant_id = $1 and i.project_id = u.project_id
               and i.list = u.list and i.task_digest = u.task_digest",
        )
        .bind(self.tenant.key())
        .bind(wanted.iter().map(|at| at.0).collect::<Vec<_>>())
        .bind(wanted.iter().map(|at| at.1.as_str()).collect::<Vec<_>>())
        .bind(wanted.iter().map(|at| &at.2[..]).collect::<Vec<_>>())
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(ItemRow::read).collect()
    }

    pub(crate) async fn save_work_lists(
        &mut self,
        lists: &BTreeMap<(i32, &str), Place>,
    ) -> Result<(), StoreError> {
        let newest = || lists.values();
        sqlx::query(
            "insert into work_lists as l
               (tenant_id, project_id, list, newest_ms, newest_counter, newest_event)
             select $1, u.* from unnest($2::int[], $3::text[], $4::bigint[], $5::bigint[],
               $6::uuid[]) u
             on conflict (tenant_id, project_id, list) do update set
               newest_ms = excluded.newest_ms, newest_counter = excluded.newest_counter,
               newest_event = excluded.newest_event
             where (l.newest_ms, l.newest_counter, l.newest_event)
               < (excluded.newest_ms, excluded.newest_counter, excluded.newest_event)",
        )
        .bind(self.tenant.key())
        .bind(lists.keys().map(|at| at.0).collect::<Vec<_>>())
        .bind(lists.keys().map(|at| at.1).collect::<Vec<_>>())
        .bind(newest().map(|p| p.hlc.ms).collect::<Vec<_>>())
        .bind(
            newest()
                .map(|p| i64::from(p.hlc.counter))
                .collect::<Vec<_>>(),
        )
        .bind(newest().map(|p| p.event).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    pub(crate) async fn save_work_items(
        &mut self,
        items: &BTreeMap<ItemAt, Kept>,
    ) -> Result<(), StoreError> {
        let kept = || items.values();
        let claim = || kept().map(|kept| kept.claim.as_ref());
        let holder = || claim().map(|claim| claim.map(|claim| &claim.holder));
        let counter = |hlc: Hlc| i64::from(hlc.counter);
        sqlx::query(
            "insert into work_items (tenant_id, project_id, list, task_digest, task, first_ms,
               first_counter, first_event, last_ms, last_counter, last_event, author_id, keys,
               is_closed, is_blank, holder_id, holder_session, holder, held_until, lease_minutes)
             select $1, u.* from unnest($2::int[], $3::text[], $4::bytea[], $5::text[],
               $6::bigint[], $7::bigint[], $8::uuid[], $9::bigint[], $10::bigint[], $11::uuid[],
               $12::int[], $13::text[], $14::bool[], $15::bool[], $16::int[], $17::text[],
               $18::text[], $19::timestamptz[], $20::int[]) u
             on conflict (tenant_id, project_id, list, task_digest) do update set
               first_ms = excluded.first_ms, first_counter = excluded.first_counter,
               first_event = excluded.first_event, last_ms = excluded.last_ms,
               last_counter = excluded.last_counter, last_event = excluded.last_event,
               author_id = excluded.author_id, keys = excluded.keys,
               is_closed = excluded.is_closed, is_blank = excluded.is_blank,
               holder_id = excluded.holder_id, holder_session = excluded.holder_session,
               holder = excluded.holder, held_until = excluded.held_until,
               lease_minutes = excluded.lease_minutes",
        )
        .bind(self.tenant.key())
        .bind(items.keys().map(|at| at.0).collect::<Vec<_>>())
        .bind(items.keys().map(|at| at.1.as_str()).collect::<Vec<_>>())
        .bind(items.keys().map(|at| &at.2[..]).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.task.as_deref()).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.first.hlc.ms).collect::<Vec<_>>())
        .bind(
            kept()
                .map(|k| counter(k.item.first.hlc))
                .collect::<Vec<_>>(),
        )
        .bind(kept().map(|k| k.item.first.event).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.last.hlc.ms).collect::<Vec<_>>())
        .bind(kept().map(|k| counter(k.item.last.hlc)).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.last.event).collect::<Vec<_>>())
        .bind(kept().map(|k| k.author).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.stored_keys()).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.is_closed()).collect::<Vec<_>>())
        .bind(kept().map(|k| k.item.is_blank()).collect::<Vec<_>>())
        .bind(holder().map(|h| h.map(|h| h.principal)).collect::<Vec<_>>())
        .bind(
            holder()
                .map(|h| h.map(|h| h.session.as_str()))
                .collect::<Vec<_>>(),
        )
        .bind(
            holder()
                .map(|h| h.map(|h| h.name.as_str()))
                .collect::<Vec<_>>(),
        )
        .bind(claim().map(|c| c.map(|c| c.until)).collect::<Vec<_>>())
        .bind(
            claim()
                .map(|c| c.map(|c| i32::try_from(c.minutes).unwrap_or(i32::MAX)))
                .collect::<Vec<_>>(),
        )
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

fn item_at(entry: &Appended<'_>) -> ItemAt {
    let task = entry.own.task.as_deref();
    (
        entry.item.project,
        entry.own.list.clone(),
        task_digest(task),
    )
}

/// How an item is named within its list: empty for the list's own state.
pub(super) fn task_digest(task: Option<&str>) -> Vec<u8> {
    let digest = task.map(|task| Sha256::digest(task.as_bytes()).to_vec());
    digest.unwrap_or_default()
}

/// An item with one more entry, and what becomes of the claim on it.
fn merge(
    before: Option<Kept>,
    batch: &EventBatch<'_>,
    entry: &Appended<'_>,
    place: Place,
) -> Result<Kept, StoreError> {
    let fields = serde_json::from_str(&entry.own.fields);
    let entry_of_fold = WorkEntry {
        list: entry.own.list.clone(),
        task: entry.own.task.clone(),
        // Written by this service from what it had parsed.
        fields: fields.map_err(|error| StoreError::Bug(error.into()))?,
        place,
        author: String::new(),
    };
    let mut kept = before.unwrap_or_else(|| Kept {
        item: Item::of(&entry_of_fold),
        bytes: 0,
        author: entry.item.author,
        claim: None,
    });
    if let Some(writer) = batch.live {
        let (held, now) = (kept.claim.take(), batch.arrived_at);
        let decided = decide(held, writer.holder, entry.own.action, writer.is_admin, now);
        kept.claim = decided.map_err(|claim| StoreError::Claimed {
            task: one_line(entry.own.task.as_deref().unwrap_or_default()),
            held: claim.held(),
        })?;
    }
    kept.item.add(&entry_of_fold);
    kept.bytes = kept.item.stored_keys().len();
    if kept.item.last == place {
        kept.author = entry.item.author;
    }
    // Nobody works on what is closed.
    kept.claim = kept.claim.filter(|_| !kept.item.is_closed());
    Ok(kept)
}
