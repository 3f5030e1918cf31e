//! Building vectors and profiles anew that an older analyser built, while the service serves.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::project::{ProjectSet, Reader};
use cairn_domain::text::{ANALYSER, Vector, record_texts, vector};

use crate::{StoreError, TenantTx};

/// The stale rows of a tenant, a batch of them, held against other workers. The version stands
/// in the text, because the index of stale rows names it too (migration 0016).
const STALE: &str = "select r.kind, r.number, r.author_id from records r
    where r.tenant_id = $1 and r.analyser < 2
    order by r.kind, r.number limit $2 for update skip locked";

impl TenantTx {
    /// Builds the vectors and profiles of up to `most` stale rows anew; how many there were. Nothing else of
    /// a record changes: not its position, not what contexts show.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn reindex(&mut self, most: u64) -> Result<u64, StoreError> {
        let stale: Vec<(i16, i64, i32)> = sqlx::query_as(STALE)
            .bind(self.tenant.key())
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.tx)
            .await?;
        for (kind, number, author) in &stale {
            let kind = RecordKind::from_code(*kind)
                .ok_or_else(|| StoreError::inconsistent("records", "kind", number))?;
            let id = RecordId {
                kind,
                number: *number,
            };
            let words = self.words_anew(id, *author).await?;
            self.save_words(id, &words).await?;
        }
        Ok(stale.len() as u64)
    }

    /// Read with the author's eyes: they see all that is theirs.
    async fn words_anew(&mut self, id: RecordId, author: i32) -> Result<Vector, StoreError> {
        let reader = Reader {
            principal: cairn_domain::ids::PrincipalId {
                key: author,
                uuid: uuid::Uuid::nil(),
            },
            projects: ProjectSet::All,
        };
        let records = self.get_records(&[id], &reader).await?;
        let record = records.first();
        let record = record.ok_or_else(|| StoreError::inconsistent("records", "body", id))?;
        Ok(vector(&record_texts(record)))
    }

    async fn save_words(&mut self, id: RecordId, words: &Vector) -> Result<(), StoreError> {
        sqlx::query(
            "update records set analyser = $4, field_lengths = $5, tsv = $6::text::tsvector,
               profile = $7
             where tenant_id = $1 and kind = $2 and number = $3",
        )
        .bind(self.tenant.key())
        .bind(id.kind.code())
        .bind(id.number)
        .bind(ANALYSER)
        .bind(words.lengths.as_slice())
        .bind(words.literal.as_str())
        .bind(words.profile.as_slice())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_rows_are_those_of_older_analysers() {
        assert!(STALE.contains(&format!("r.analyser < {ANALYSER}\n")));
        let migrations = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        let names = std::fs::read_dir(migrations).expect("migrations");
        let texts = names.map(|name| std::fs::read_to_string(name.expect("a name").path()));
        let index = format!("where analyser < {ANALYSER};");
        assert!(texts.flatten().any(|text| text.contains(&index)));
    }
}
