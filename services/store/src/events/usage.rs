//! What a batch counts for: the bytes of what it leaves, and whether its tenant may have more.

use std::collections::BTreeMap;

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::quota::Quota;
use serde_json::Value;

use super::EventBatch;
use super::plan::Plan;
use super::tool_uses::Packed;
use crate::quotas::require;
use crate::{StoreError, TenantTx};

/// How a tenant stands with a batch in it; totals where a quota asks for them.
type Standing = (Option<Value>, Option<i64>, Option<i64>);

impl TenantTx {
    /// Counts the events of a batch and their bytes, and refuses them if that passes a quota.
    /// Called with the counters held that the batch takes numbers from, before it writes a row:
    /// so writers of one kind pass no quota together, and those of two kinds by one batch at
    /// most.
    ///
    /// # Errors
    /// `OverQuota`; as any call of the store.
    pub(super) async fn count_usage(
        &mut self,
        batch: &EventBatch<'_>,
        plan: &Plan,
    ) -> Result<(), StoreError> {
        let mut parts: BTreeMap<i32, (i64, i64)> = BTreeMap::new();
        for item in &plan.items {
            let part = parts.entry(item.author).or_default();
            part.0 += 1;
            part.1 += i64::from(item.bytes);
        }
        // In the order of authors, so that two batches never wait for each other.
        for (author, part) in parts {
            self.count_part(batch, author, part).await?;
        }
        Ok(())
    }

    /// What one author has of a batch: most have one author.
    async fn count_part(
        &mut self,
        batch: &EventBatch<'_>,
        author: i32,
        (events, bytes): (i64, i64),
    ) -> Result<(), StoreError> {
        // A row that another batch of this author has just changed is read as it left it; those
        // of others as they were when the statement began.
        let standing: Standing = sqlx::query_as(
            "with today as (
               insert into usage_days as d (tenant_id, day, principal_id, events, bytes)
               values ($1, $2, $3, $4, $5)
               on conflict (tenant_id, day, principal_id) do update
                 set events = d.events + excluded.events, bytes = d.bytes + excluded.bytes
               returning d.events),
             kept as (
               insert into stored_bytes as s (tenant_id, principal_id, bytes) values ($1, $3, $5)
               on conflict (tenant_id, principal_id) do update
                 set bytes = s.bytes + excluded.bytes
               returning s.bytes)
             select t.settings -> 'quotas',
               case when t.settings #> '{quotas,events_a_day}' is not null then
                 (select events from today) + (select coalesce(sum(d.events), 0)::bigint
                   from usage_days d
                   where d.tenant_id = $1 and d.day = $2 and d.principal_id <> $3) end,
               case when t.settings #> '{quotas,stored_bytes}' is not null then
                 (select bytes from kept) + (select coalesce(sum(s.bytes), 0)::bigint
                   from stored_bytes s
                   where s.tenant_id = $1 and s.principal_id <> $3) end
             from tenants t where t.tenant_id = $1",
        )
        .bind(self.tenant.key())
        .bind(batch.arrived_at.date_naive())
        .bind(author)
        .bind(events)
        .bind(bytes)
        .fetch_one(&mut *self.tx)
        .await?;
        let (quotas, events, bytes) = standing;
        let held = [
            (Quota::EventsADay, events.unwrap_or_default()),
            (Quota::StoredBytes, bytes.unwrap_or_default()),
        ];
        held.into_iter()
            .try_for_each(|(quota, total)| require(quota, quotas.as_ref(), total))
    }
}

/// Bytes of what an event leaves if it leaves a row: of its texts, packed where they are kept so.
pub(super) fn bytes(draft: &EventDraft, packed: Option<&Packed>) -> i32 {
    let all = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let bytes = match &draft.body {
        EventBody::Observation(own) => {
            let texts = [&own.title, &own.subtitle, &own.narrative].map(String::len);
            let lists = [&own.facts, &own.files_read, &own.files_modified].map(|list| all(list));
            texts.into_iter().chain(lists).sum()
        }
        EventBody::Summary(own) => {
            let texts = [
                &own.request,
                &own.investigated,
                &own.learned,
                &own.completed,
                &own.next_steps,
                &own.notes,
            ];
            texts.map(String::len).into_iter().sum()
        }
        EventBody::Prompt { text } => text.as_ref().map_or(0, String::len),
        EventBody::ToolUse(own) => packed.map_or(0, Packed::bytes) + all(&own.files),
        EventBody::WorkEntry { entry, .. } => entry.list.len() + entry.fields.len(),
        EventBody::SessionStart { .. }
        | EventBody::TurnEnd { .. }
        | EventBody::SessionEnd { .. } => 0,
    };
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
