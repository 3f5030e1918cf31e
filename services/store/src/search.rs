//! The index step of a search: the SQL function proposes numbers, the rows are read through the
//! tenant wall like any others.

use cairn_domain::ids::RecordId;
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::text::SearchTerms;

use crate::records::row::{RowColumns, project_keys, readable, row_columns, row_joins};
use crate::{StoreError, TenantTx};

/// How many of the newest matches are ranked: what the score's half-life of 30 days needs to
/// find nearly all of the best, at a bounded cost for common words.
const CANDIDATES: i32 = 500;

impl TenantTx {
    /// The best `limit` rows that hold all words of the query; if there are fewer, then rows
    /// that hold any of them, after those. A query without words finds nothing.
    ///
    /// # Errors
    /// `Timeout` if the words are too common for the time a statement has.
    pub async fn search_index(
        &mut self,
        query: &SearchTerms,
        reader: &Reader,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let (all, any) = (query.all(), query.any());
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut rows = self.search_rows(&all, reader, wanted).await?;
        if rows.len() < wanted && any != all {
            let found: Vec<RecordId> = rows.iter().map(|row| row.id).collect();
            // The rows found already may come again, first of all.
            let others = self.search_rows(&any, reader, wanted + found.len()).await?;
            rows.extend(others.into_iter().filter(|row| !found.contains(&row.id)));
            rows.truncate(wanted);
        }
        Ok(rows)
    }

    async fn search_rows(
        &mut self,
        tsquery: &str,
        reader: &Reader,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let rows: Vec<RowColumns> = sqlx::query_as(concat!(
            "select ",
            row_columns!("r"),
            " from search_record_ids($4::text::tsquery, $3::int[], $2, null::smallint[], $5, $6) h
             join records r on r.tenant_id = $1 and r.kind = h.kind and r.number = h.number ",
            row_joins!("r"),
            " where ",
            readable!("r"),
            " order by h.score desc, r.at desc, r.kind desc, r.number desc",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(tsquery)
        .bind(CANDIDATES)
        .bind(i32::try_from(limit).unwrap_or(i32::MAX))
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(RowColumns::read).collect()
    }
}
