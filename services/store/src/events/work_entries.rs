//! Work entries of a batch: appended with their place in the order of hybrid logical clocks. What
//! they mean for their lists is merged in `work_items.rs`.

use std::collections::HashMap;

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::hlc::{Arrival, Hlc};
use cairn_domain::redact;
use cairn_domain::work_state::{Action, WorkEntryDraft};
use chrono::{DateTime, Utc};

use super::plan::{Item, Plan};
use super::{EventBatch, LiveWriter, PreparedEvent};
use crate::work_state::hlc;
use crate::{StoreError, TenantTx};

/// An entry on its way into the log.
pub(super) struct Appended<'a> {
    pub draft: &'a EventDraft,
    pub own: &'a WorkEntryDraft,
    made_at: DateTime<Utc>,
    sent_at: DateTime<Utc>,
    machine: &'a str,
    pub item: &'a Item,
    /// Its moment where it was imported from.
    kept: Option<Hlc>,
}

impl TenantTx {
    /// Appends the entries, merges them into what their lists say, and answers the highest of
    /// their moments. Called with the tenant's counter held: so no other entry can come between
    /// reading what stands and writing what follows from it.
    ///
    /// # Errors
    /// `Claimed` if the one entry of a live write wants a task that somebody else holds.
    pub(super) async fn append_work_entries(
        &mut self,
        batch: &EventBatch<'_>,
        fresh: &[&PreparedEvent],
        plan: &Plan,
    ) -> Result<Option<Hlc>, StoreError> {
        let entries: Vec<Appended<'_>> = fresh
            .iter()
            .zip(&plan.items)
            .filter_map(|(event, item)| appended(event, item))
            .collect();
        if entries.is_empty() {
            return Ok(None);
        }
        let moments = self.moments(batch, &entries).await?;
        let all = || entries.iter();
        let after = || all().map(|entry| entry.own.after);
        sqlx::query(
            "insert into work_entries (tenant_id, author_id, arrived_at, position, event_id,
               project_id, session_id, machine, list, task, fields, action, hlc_ms, hlc_counter,
               after_ms, after_counter, at, bytes, redacted)
             select $1, u.*, $19 from unnest($2::int[], $3::timestamptz[], $4::bigint[], $5::uuid[],
               $6::int[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[],
               $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
               $17::timestamptz[], $18::int[]) u",
        )
        .bind(self.tenant.key())
        .bind(all().map(|e| e.item.author).collect::<Vec<_>>())
        .bind(all().map(|e| e.item.arrived_at).collect::<Vec<_>>())
        .bind(all().map(|e| e.item.position).collect::<Vec<_>>())
        .bind(all().map(|e| e.draft.event_id).collect::<Vec<_>>())
        .bind(all().map(|e| e.item.project).collect::<Vec<_>>())
        .bind(all().map(|e| e.item.session).collect::<Vec<_>>())
        .bind(all().map(|e| e.machine).collect::<Vec<_>>())
        .bind(all().map(|e| e.own.list.as_str()).collect::<Vec<_>>())
        .bind(all().map(|e| e.own.task.as_deref()).collect::<Vec<_>>())
        .bind(all().map(|e| e.own.fields.as_str()).collect::<Vec<_>>())
        .bind(
            all()
                .map(|e| e.own.action.map(Action::name))
                .collect::<Vec<_>>(),
        )
        .bind(moments.iter().map(|hlc| hlc.ms).collect::<Vec<_>>())
        .bind(
            moments
                .iter()
                .map(|hlc| i64::from(hlc.counter))
                .collect::<Vec<_>>(),
        )
        .bind(after().map(|a| a.map(|hlc| hlc.ms)).collect::<Vec<_>>())
        .bind(
            after()
                .map(|a| a.map(|hlc| i64::from(hlc.counter)))
                .collect::<Vec<_>>(),
        )
        .bind(all().map(|e| e.draft.at).collect::<Vec<_>>())
        .bind(all().map(|e| e.item.bytes).collect::<Vec<_>>())
        .bind(redact::VERSION)
        .execute(&mut *self.tx)
        .await?;
        self.merge_work_entries(batch, &entries, &moments).await?;
        Ok(moments.into_iter().max())
    }

    /// The moment of each entry, in order: an entry counts as previous for the next of its
    /// machine. One that is written now, not replayed, comes after all that its list holds:
    /// replicas' clocks may differ, and two writes may meet in one millisecond.
    async fn moments(
        &mut self,
        batch: &EventBatch<'_>,
        entries: &[Appended<'_>],
    ) -> Result<Vec<Hlc>, StoreError> {
        let mut last = self.last_moments(batch, entries).await?;
        let newest = match (batch.live, entries) {
            (Some(LiveWriter { is_now: true, .. }), [entry]) => self.newest_of_list(entry).await?,
            _ => None,
        };
        // Nothing comes from the future, not even an import.
        let now = Hlc {
            ms: batch.arrived_at.timestamp_millis(),
            counter: 0,
        };
        let mut moment = |entry: &Appended<'_>| {
            if let Some(kept) = entry.kept {
                return kept.min(now);
            }
            let hlc = Hlc::of(Arrival {
                at: entry.made_at,
                sent_at: entry.sent_at,
                arrived_at: batch.arrived_at,
                after: entry.own.after,
                previous: last.get(entry.machine).copied().max(newest),
            });
            // Entries that name no machine may come from any.
            if !entry.machine.is_empty() {
                last.insert(entry.machine.to_owned(), hlc);
            }
            hlc
        };
        Ok(entries.iter().map(&mut moment).collect())
    }

    async fn last_moments(
        &mut self,
        batch: &EventBatch<'_>,
        entries: &[Appended<'_>],
    ) -> Result<HashMap<String, Hlc>, StoreError> {
        let named = entries.iter().map(|entry| entry.machine);
        let mut machines: Vec<&str> = named.filter(|machine| !machine.is_empty()).collect();
        machines.sort_unstable();
        machines.dedup();
        if machines.is_empty() {
            return Ok(HashMap::new());
        }
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(
            "select m.machine, w.hlc_ms, w.hlc_counter from unnest($3::text[]) m (machine)
             cross join lateral (
               select hlc_ms, hlc_counter from work_entries
               where tenant_id = $1 and author_id = $2 and machine = m.machine
               order by hlc_ms desc, hlc_counter desc limit 1) w",
        )
        .bind(self.tenant.key())
        .bind(batch.author.key)
        .bind(machines)
        .fetch_all(&mut *self.tx)
        .await?;
        let read = |(machine, ms, counter): (String, i64, i64)| (machine, hlc(ms, counter));
        Ok(rows.into_iter().map(read).collect())
    }

    async fn newest_of_list(&mut self, entry: &Appended<'_>) -> Result<Option<Hlc>, StoreError> {
        let newest: Option<(i64, i64)> = sqlx::query_as(
            "select newest_ms, newest_counter from work_lists
             where tenant_id = $1 and project_id = $2 and list = $3",
        )
        .bind(self.tenant.key())
        .bind(entry.item.project)
        .bind(&entry.own.list)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(newest.map(|(ms, counter)| hlc(ms, counter)))
    }
}

fn appended<'a>(event: &'a PreparedEvent, item: &'a Item) -> Option<Appended<'a>> {
    let draft = &event.draft;
    match &draft.body {
        EventBody::WorkEntry {
            entry,
            made_at,
            sent_at,
            machine,
        } => Some(Appended {
            draft,
            own: entry,
            made_at: *made_at,
            sent_at: *sent_at,
            machine: machine.as_deref().unwrap_or_default(),
            item,
            kept: event.kept.as_ref().and_then(|kept| kept.hlc),
        }),
        _ => None,
    }
}
