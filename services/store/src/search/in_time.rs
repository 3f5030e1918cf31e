//! What matches in the order of time, page by page.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::listing::{Horizon, ListPlace};
use cairn_domain::project::Reader;
use sqlx::{Row as _, query};

use super::Question;
use super::conditions::{bind_conditions, conditions};
use crate::{StoreError, TenantTx};

/// A part of what matches, in the order of (`at`, kind, number).
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk<'a> {
    /// From old to new; else from new to old.
    pub ascending: bool,
    /// Begins behind this record.
    pub after: Option<ListPlace>,
    /// Passes by these.
    pub without: &'a [RecordId],
    /// Leaves out so many from its beginning, at most 20,000.
    pub skip: u32,
    /// Ends after so many, at most 2,000.
    pub limit: u32,
}

impl TenantTx {
    /// The places of what matches a question, in the order of time. Where the question has no
    /// terms, its filter alone decides; of terms, those of [`super::Words::Rarest`] decide
    /// nothing here.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn search_in_time(
        &mut self,
        question: &Question<'_>,
        walk: &Walk<'_>,
        reader: &Reader,
    ) -> Result<Vec<ListPlace>, StoreError> {
        if reader.projects.is_empty() {
            return Ok(Vec::new());
        }
        let sql = concat!(
            "select found_at, found_kind, found_number from search_matches(",
            conditions!(),
            ", $17, $18, $19, $20, $21, $22, $23)"
        );
        let without = walk
            .without
            .iter()
            .map(|id| id.number * 4 + i64::from(id.kind.code()));
        let without: Vec<i64> = without.collect();
        let rows = bind_conditions(query(sql), question, reader, self.tenant)
            .bind((!without.is_empty()).then_some(without))
            .bind(walk.ascending)
            .bind(walk.after.map(|place| place.at))
            .bind(walk.after.map(|place| place.id.kind.code()))
            .bind(walk.after.map(|place| place.id.number))
            .bind(i32::try_from(walk.skip).unwrap_or(i32::MAX))
            .bind(i32::try_from(walk.limit).unwrap_or(i32::MAX))
            .fetch_all(&mut *self.tx)
            .await?;
        let place = |row: sqlx::postgres::PgRow| {
            let (kind, number) = (row.try_get(1)?, row.try_get(2)?);
            let kind = RecordKind::from_code(kind)
                .ok_or_else(|| StoreError::inconsistent("records", "kind", number))?;
            let id = RecordId { kind, number };
            Ok(ListPlace {
                at: row.try_get(0)?,
                id,
            })
        };
        rows.into_iter().map(place).collect()
    }

    /// What exists now.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn horizon(&mut self) -> Result<Horizon, StoreError> {
        let (observation, summary, prompt) = sqlx::query_as(
            "select observation, summary, prompt from tenant_counters where tenant_id = $1",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(Horizon {
            observation,
            summary,
            prompt,
        })
    }
}
