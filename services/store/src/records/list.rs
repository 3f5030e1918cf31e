//! Lists of observations, newest first, page by page, and those about some files.

use cairn_domain::event::Visibility;
use cairn_domain::limits;
use cairn_domain::listing::{ByAuthor, FileObservation, ListPick, ListPlace, ListedObservation};
use cairn_domain::project::Reader;
use sqlx::FromRow;

use super::body::read_concepts;
use super::row::{RowColumns, project_keys, readable, row_columns, row_joins};
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

/// Observations newest first: an ordered walk of the index for each project of the reader's, and
/// no more rows of any than are wanted of all.
macro_rules! newest_first {
    ($limit:literal, $($wanted:tt)*) => {
        concat!(
            "(select c.*
              from projects f cross join lateral (
                select r.kind, r.number, r.title, r.obs_type, r.at, r.project_id, r.author_id,
                  r.session_id, r.concepts, r.read_tokens, r.private
                from records r
                where r.tenant_id = $1 and r.project_id = f.project_id and r.kind = 0 and ",
            readable!("r"),
            $($wanted)*,
            "   order by r.at desc, r.number desc limit ",
            $limit,
            ") c
              where f.tenant_id = $1 and ($3::int[] is null or f.project_id = any ($3))
              order by c.at desc, c.number desc limit ",
            $limit,
            ") r "
        )
    };
}

impl TenantTx {
    /// The newest `limit` observations of the pick that the reader may read, those after `after`
    /// if it is given, by (`at`, number) descending.
    ///
    /// # Errors
    /// `Timeout` for a file among very many records; otherwise as any call of the store.
    pub async fn list_observations(
        &mut self,
        pick: &ListPick,
        after: Option<ListPlace>,
        limit: u32,
        reader: &Reader,
    ) -> Result<Vec<ListedObservation>, StoreError> {
        let (own, named) = match &pick.author {
            None => (false, None),
            Some(ByAuthor::Me) => (true, None),
            Some(ByAuthor::Named(name)) => (false, Some(name.as_str())),
        };
        let rows: Vec<ListedColumns> = sqlx::query_as(concat!(
            "select ",
            row_columns!("r"),
            ", r.concepts, r.read_tokens, r.private, s.host_session_id, o.subtitle,
               (o.files_modified || o.files_read)[1:$15] as files
             from ",
            newest_first!(
                "$4",
                " and ($5::timestamptz is null or (r.at, r.number) < ($5, $6))
                  and ($7::timestamptz is null or r.at >= $7)
                  and ($8::timestamptz is null or r.at < $8)
                  and (cardinality($9::smallint[]) = 0 or r.obs_type = any ($9))
                  and (cardinality($10::text[]) = 0 or r.concepts && $10)
                  and (not $11 or r.author_id = $2)
                  and ($12::text is null or r.author_id = (
                    select a.principal_id from principals a
                    where a.tenant_id = $1 and a.name = $12))
                  and ($13::text is null or r.session_id in (
                    select s.session_id from sessions s
                    where s.tenant_id = $1
                      and ($13 = s.host_session_id or $13 = s.host || '/' || s.host_session_id)))
                  and ($14::text is null or exists (
                    select from observations o,
                      unnest(o.files_modified || o.files_read) as f (path),
                      replace(f.path, '\\', '/') as p (path)
                    where o.tenant_id = $1 and o.number = r.number
                      and (p.path = $14 or starts_with(p.path, $14 || '/')
                        or right(p.path, length($14) + 1) = '/' || $14)))"
            ),
            row_joins!("r"),
            " join observations o on o.tenant_id = $1 and o.number = r.number
             left join sessions s on s.tenant_id = $1 and s.session_id = r.session_id
             order by r.at desc, r.number desc",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(i64::from(limit))
        .bind(after.map(|place| place.at))
        .bind(after.map(|place| place.id.number))
        .bind(pick.from)
        .bind(pick.until)
        .bind(pick.types.iter().map(|t| t.code()).collect::<Vec<_>>())
        .bind(pick.concepts.iter().map(|c| c.name()).collect::<Vec<_>>())
        .bind(own)
        .bind(named)
        .bind(pick.session.as_deref())
        .bind(pick.file.as_deref())
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
             from ",
            newest_first!("$4", ""),
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
    fn read(self) -> Result<ListedObservation, StoreError> {
        Ok(ListedObservation {
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
