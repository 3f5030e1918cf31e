//! Records read by their ids, listed, promoted and deleted. Searching stands in `search.rs`, neighbours in
//! `timeline.rs`; what all of them share, how a row is read and who may read it, is in `row.rs`.

mod body;
mod delete;
mod list;
mod locked;
mod promote;
pub(crate) mod row;

pub use delete::Deleted;
pub(crate) use locked::Target;
pub use promote::Promoted;

use std::collections::HashMap;

use cairn_domain::ids::RecordId;
use cairn_domain::project::Reader;
use cairn_domain::record::Record;

use crate::{StoreError, TenantTx};
use body::RecordColumns;
use row::{project_keys, readable, records_by_id, row_columns, row_joins};

/// Whole records of ids, of those on which the condition holds. Selects [`RecordColumns`].
macro_rules! whole_records {
    ($condition:expr) => {
        concat!(
            "select ",
            row_columns!("r"),
            ", r.position, r.private, r.concepts, r.read_tokens, r.work_tokens,
               s.host_session_id, s.host,
               coalesce(o.event_id, y.event_id, q.event_id) as event_id,
               coalesce(o.arrived_at, y.arrived_at, q.arrived_at) as arrived_at,
               coalesce(o.agent_id, y.agent_id, q.agent_id) as agent_id,
               coalesce(o.agent_type, y.agent_type, q.agent_type) as agent_type,
               coalesce(o.branch, y.branch, q.branch) as branch,
               coalesce(o.checkout, y.checkout, q.checkout) as checkout,
               coalesce(o.origin, y.origin, q.origin) as origin,
               o.subtitle, o.narrative, o.facts, o.files_read, o.files_read_more,
               o.files_modified, o.files_modified_more, o.tool_uses,
               y.request, y.investigated, y.learned, y.completed, y.next_steps, y.notes,
               q.text, q.session_number, i.event_id is not null as is_imported, i.imported_id,
               i.imported_author
              from",
            records_by_id!(),
            row_joins!("r"),
            " left join sessions s on s.tenant_id = $1 and s.session_id = r.session_id
             left join observations o on r.kind = 0 and o.tenant_id = $1 and o.number = r.number
             left join summaries y on r.kind = 1 and y.tenant_id = $1 and y.number = r.number
             left join prompts q on r.kind = 2 and q.tenant_id = $1 and q.number = r.number
             left join imported i on i.tenant_id = $1 and i.kind = r.kind and i.number = r.number
             where ",
            $condition,
        )
    };
}

const READABLE: &str = whole_records!(readable!("r"));
/// Without a reader: none may be named.
const UNGUARDED: &str = whole_records!("$2::int is null and $3::int[] is null");

impl TenantTx {
    /// The records of these ids that the reader may read, in the order asked; others are left
    /// out without a word.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a value of no meaning.
    pub async fn get_records(
        &mut self,
        ids: &[RecordId],
        reader: &Reader,
    ) -> Result<Vec<Record>, StoreError> {
        let found = self.read_whole(READABLE, ids, Some(reader)).await?;
        Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
    }

    /// The records of these ids, whoever may read them: for those who decide that themselves, item
    /// by item.
    ///
    /// # Errors
    /// As [`TenantTx::get_records`].
    pub(crate) async fn get_unguarded(
        &mut self,
        ids: &[RecordId],
    ) -> Result<HashMap<RecordId, Record>, StoreError> {
        self.read_whole(UNGUARDED, ids, None).await
    }

    async fn read_whole(
        &mut self,
        statement: &'static str,
        ids: &[RecordId],
        reader: Option<&Reader>,
    ) -> Result<HashMap<RecordId, Record>, StoreError> {
        let (kinds, numbers) = split(ids);
        let rows: Vec<RecordColumns> = sqlx::query_as(statement)
            .bind(self.tenant.key())
            .bind(reader.map(|reader| reader.principal.key))
            .bind(reader.and_then(|reader| project_keys(&reader.projects)))
            .bind(kinds)
            .bind(numbers)
            .fetch_all(&mut *self.tx)
            .await?;
        let mut found: HashMap<RecordId, Record> = HashMap::new();
        for row in rows {
            let record = row.read()?;
            found.insert(record.row.id, record);
        }
        Ok(found)
    }
}

/// Kinds and numbers of ids, as two columns.
pub(crate) fn split(ids: &[RecordId]) -> (Vec<i16>, Vec<i64>) {
    ids.iter().map(|id| (id.kind.code(), id.number)).unzip()
}
