//! Promoting a record: what its author alone could read, the team may read from then on.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::project::Reader;
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::{StoreError, TenantTx};

/// What became of a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promoted {
    /// The team may read the record, from now on or since before.
    Done,
    /// There is none of this id, or none that this reader may know of.
    NotFound,
    /// It is another's.
    Forbidden,
}

impl TenantTx {
    /// Lets the team read an observation or a summary that its author kept private. It takes a
    /// position, and the contexts of its project show it from the commit on; the tool uses that
    /// it names stay as they are. It has its line in the audit log.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn promote_record(
        &mut self,
        id: RecordId,
        reader: &Reader,
        now: DateTime<Utc>,
    ) -> Result<Promoted, StoreError> {
        if id.kind == RecordKind::Prompt {
            return Ok(Promoted::NotFound);
        }
        let Some(target) = self.lock_record(id).await? else {
            return Ok(Promoted::NotFound);
        };
        if !target.is_among(&reader.projects) || (target.private && !target.is_of(reader)) {
            return Ok(Promoted::NotFound);
        }
        if !target.is_of(reader) {
            return Ok(Promoted::Forbidden);
        }
        if !target.private {
            return Ok(Promoted::Done);
        }
        let position = self.take_position().await?;
        sqlx::query(
            "update records set private = false, position = $4
             where tenant_id = $1 and kind = $2 and number = $3",
        )
        .bind(self.tenant.key())
        .bind(id.kind.code())
        .bind(id.number)
        .bind(position)
        .execute(&mut *self.tx)
        .await?;
        self.raise_context_revision(target.project_id).await?;
        let (actor, target) = (Some(reader.principal), id.to_string());
        self.append_audit(actor, "record.promote", &target, json!({}), now)
            .await?;
        Ok(Promoted::Done)
    }
}
