//! Records as lists show them, and observations about some files. What is on a list, and in which
//! order, is found in `search/in_time.rs`.

use cairn_domain::event::Visibility;
use cairn_domain::ids::RecordId;
use cairn_domain::limits;
use cairn_domain::listing::{FileObservation, Listed};
use cairn_domain::project::Reader;
use sqlx::FromRow;

use super::body::read_concepts;
use super::row::{RowColumns, project_keys, readable, records_by_id, row_columns, row_joins};
use super::split;
use crate::{StoreError, TenantTx};

#[derive(FromRow)]
struct ListedColumns {
    #[sqlx(flatten)]
    row: RowColumns,
    concepts: Vec<String>,
    read_tokens: i32,
    private: bool,
    host_session_id: Option<String>,
    subtitle: String,
    files: Vec<String>,
}

#[derive(FromRow)]
struct FileColumns {
    #[sqlx(flatten)]
    row: RowColumns,
    host_session_id: Option<String>,
    files_modified: Vec<String>,
    files: i32,
}

impl TenantTx {
    /// The records of these ids that the reader may read, as lists show them, in the order asked;
    /// others are left out.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a value of no meaning.
    pub async fn get_listed(
        &mut self,
        ids: &[RecordId],
        reader: &Reader,
    ) -> Result<Vec<Listed>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (kinds, numbers) = split(ids);
        let rows: Vec<ListedColumns> = sqlx::query_as(concat!(
            "select ",
            row_columns!("r"),
            ", r.concepts, r.read_tokens, r.private, s.host_session_id,
               coalesce(o.subtitle, '') as subtitle,
               coalesce((o.files_modified || o.files_read)[1:$6], '{}') as files
              from",
            records_by_id!(),
            row_joins!("r"),
            " left join observations o on r.kind = 0 and o.tenant_id = $1 and o.number = r.number
             left join sessions s on s.tenant_id = $1 and s.session_id = r.session_id
             where ",
            readable!("r"),
            " order by u.nth",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(kinds)
        .bind(numbers)
        .bind(i32::try_from(limits::LISTED_FILES).unwrap_or(i32::MAX))
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(ListedColumns::read).collect()
    }

    /// The newest `limit` observations about one of these files that the reader may read, newest
    /// first. They are looked for among the newest 5,000 observations of all.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn observations_by_file(
        &mut self,
        paths: &[String],
        limit: u32,
        reader: &Reader,
    ) -> Result<Vec<FileObservation>, StoreError> {
        let rows: Vec<FileColumns> = sqlx::query_as(concat!(
            "select ",
            row_columns!("r"),
            ", s.host_session_id, o.files_modified,
               cardinality(o.files_modified) + o.files_modified_more
                 + cardinality(o.files_read) + o.files_read_more as files
             from (select c.*
               from projects f cross join lateral (
                 select r.kind, r.number, r.title, r.obs_type, r.at, r.project_id, r.author_id,
                   r.session_id
                 from records r
                 where r.tenant_id = $1 and r.project_id = f.project_id and r.kind = 0 and ",
            readable!("r"),
            "    order by r.at desc, r.number desc limit $4) c
               where f.tenant_id = $1 and ($3::int[] is null or f.project_id = any ($3))
               order by c.at desc, c.number desc limit $4) r ",
            row_joins!("r"),
            " join observations o on o.tenant_id = $1 and o.number = r.number
             left join sessions s on s.tenant_id = $1 and s.session_id = r.session_id
             where o.files_modified && $5 or o.files_read && $5
             order by r.at desc, r.number desc limit $6",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(i64::from(limits::FOLDER_CANDIDATES))
        .bind(paths)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(FileColumns::read).collect()
    }
}

impl ListedColumns {
    fn read(self) -> Result<Listed, StoreError> {
        Ok(Listed {
            row: self.row.read()?,
            subtitle: self.subtitle,
            concepts: read_concepts(&self.concepts)?,
            files: self.files,
            session: self.host_session_id,
            visibility: match self.private {
                true => Visibility::Private,
                false => Visibility::Team,
            },
            read_tokens: u32::try_from(self.read_tokens).unwrap_or_default(),
        })
    }
}

impl FileColumns {
    fn read(self) -> Result<FileObservation, StoreError> {
        Ok(FileObservation {
            row: self.row.read()?,
            session: self.host_session_id,
            files_modified: self.files_modified,
            files: u32::try_from(self.files).unwrap_or_default(),
        })
    }
}
