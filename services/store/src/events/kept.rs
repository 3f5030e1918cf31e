//! What an imported event keeps of the place it came from: who wrote it, when it arrived there,
//! which ids it had. All else about it is as with any other event.

use cairn_domain::event::EventBody;
use cairn_domain::hlc::Hlc;
use cairn_domain::ids::PrincipalId;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::plan::Plan;
use super::{EventBatch, PreparedEvent};
use crate::{StoreError, TenantTx};

/// What an imported event keeps.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Who wrote it, as far as that is known here.
    pub author: PrincipalId,
    /// Who stands for authors that are not known here: what came in under their name is known
    /// again, even if its author has joined since.
    pub importer: PrincipalId,
    /// When it arrived where it comes from.
    pub arrived_at: DateTime<Utc>,
    /// The tenant or the database it comes from.
    pub source: Uuid,
    /// Its id there, as printed.
    pub id: Option<String>,
    /// Its author there, if nobody here has that handle.
    pub author_name: Option<String>,
    /// The moment of a work entry there.
    pub hlc: Option<Hlc>,
    /// The turn of a tool use in its session.
    pub turn: Option<i32>,
    /// The number of a prompt in its session.
    pub session_number: Option<i32>,
}

impl PreparedEvent {
    /// Who wrote it.
    pub(super) fn author(&self, batch: &EventBatch<'_>) -> PrincipalId {
        self.kept.as_ref().map_or(batch.author, |kept| kept.author)
    }

    /// When it arrived; an imported one never later than now.
    pub(super) fn arrived_at(&self, batch: &EventBatch<'_>) -> DateTime<Utc> {
        let kept = self.kept.as_ref().map(|kept| kept.arrived_at);
        kept.unwrap_or(batch.arrived_at).min(batch.arrived_at)
    }

    /// As whose an earlier event of the same id is this one.
    pub(super) fn authors(&self, batch: &EventBatch<'_>) -> impl Iterator<Item = PrincipalId> {
        let importer = self.kept.as_ref().map(|kept| kept.importer);
        [self.author(batch)].into_iter().chain(importer)
    }
}

impl TenantTx {
    /// Notes where imported events came from, and links tool uses to the observations that rest on
    /// them.
    pub(super) async fn insert_origins(
        &mut self,
        fresh: &[&PreparedEvent],
        plan: &Plan,
    ) -> Result<(), StoreError> {
        let imported = fresh.iter().zip(&plan.items);
        let imported: Vec<_> = imported
            .filter_map(|(event, item)| Some((event.kept.as_ref()?, *event, item)))
            .collect();
        if imported.is_empty() {
            return Ok(());
        }
        let kept = || imported.iter().map(|(kept, ..)| kept);
        let kinds = imported.iter().map(|(_, _, item)| item.kind);
        sqlx::query(
            "insert into imported (tenant_id, event_id, kind, number, source, imported_id,
               imported_author)
             select $1, u.* from unnest($2::uuid[], $3::smallint[], $4::bigint[], $5::uuid[],
               $6::text[], $7::text[]) u",
        )
        .bind(self.tenant.key())
        .bind(
            imported
                .iter()
                .map(|(_, e, _)| e.event_id())
                .collect::<Vec<_>>(),
        )
        .bind(kinds.collect::<Vec<_>>())
        .bind(imported.iter().map(|(.., i)| i.number).collect::<Vec<_>>())
        .bind(kept().map(|k| k.source).collect::<Vec<_>>())
        .bind(kept().map(|k| k.id.as_deref()).collect::<Vec<_>>())
        .bind(kept().map(|k| k.author_name.as_deref()).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        let mut links: Vec<(i64, i64)> = Vec::new();
        for (_, event, item) in &imported {
            if let (EventBody::Observation(own), Some(number)) = (&event.draft.body, item.number) {
                links.extend(own.tool_uses.iter().map(|tool_use| (*tool_use, number)));
            }
        }
        if links.is_empty() {
            return Ok(());
        }
        let (tool_uses, observations): (Vec<i64>, Vec<i64>) = links.into_iter().unzip();
        sqlx::query(
            "update tool_uses t set observation = u.observation
             from unnest($2::bigint[], $3::bigint[]) u (number, observation)
             where t.tenant_id = $1 and t.number = u.number and t.observation is null
               and exists (select from imported i
                 where i.tenant_id = $1 and i.event_id = t.event_id)",
        )
        .bind(self.tenant.key())
        .bind(tool_uses)
        .bind(observations)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
