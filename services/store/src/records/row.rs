//! How a row of `records` is read, and who may read it: the one place for both.
//!
//! Statements that use these pieces bind $1 = tenant, $2 = the reader's principal, $3 = the
//! projects they look in, null for all. The tenant is named beside row-level security so that
//! the planner knows it.

use cairn_domain::ids::{ProjectId, RecordId, RecordKind};
use cairn_domain::observation::ObservationType;
use cairn_domain::project::{Project, ProjectSet};
use cairn_domain::record::Row;
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use crate::StoreError;

/// The columns of a [`RowColumns`], of the record under this alias.
macro_rules! row_columns {
    ($r:literal) => {
        concat!(
            $r,
            ".kind, ",
            $r,
            ".number, ",
            $r,
            ".title, ",
            $r,
            ".obs_type, ",
            $r,
            ".at, p.project_id, p.uid as project_uid, p.key as project_key, \
             p.name as project_name, a.name as author"
        )
    };
}

/// The joins that [`row_columns`] needs.
macro_rules! row_joins {
    ($r:literal) => {
        concat!(
            " join projects p on p.tenant_id = $1 and p.project_id = ",
            $r,
            ".project_id join principals a on a.tenant_id = $1 and a.principal_id = ",
            $r,
            ".author_id "
        )
    };
}

/// The records of the ids in $4 and $5, kinds and numbers, by their keys, with their place `nth`.
/// Left to choose, the planner might read all of a tenant's.
macro_rules! records_by_id {
    () => {
        " unnest($4::smallint[], $5::bigint[]) with ordinality u (kind, number, nth) \
          cross join lateral (select * from records r where r.tenant_id = $1 \
            and r.kind = u.kind and r.number = u.number limit 1) r "
    };
}

/// Whether the reader may read the record: in their projects, and their own or neither private
/// nor a prompt that the tenant keeps private.
macro_rules! readable {
    ($r:literal) => {
        concat!(
            "($3::int[] is null or ",
            $r,
            ".project_id = any ($3)) and (",
            $r,
            ".author_id = $2 or (not ",
            $r,
            ".private and (",
            $r,
            ".kind <> 2 or (select t.settings ->> 'prompt_visibility' = 'team' \
               from tenants t where t.tenant_id = $1))))"
        )
    };
}

pub(crate) use {readable, records_by_id, row_columns, row_joins};

/// The parameter $3.
pub(crate) fn project_keys(projects: &ProjectSet) -> Option<Vec<i32>> {
    match projects {
        ProjectSet::All => None,
        ProjectSet::Only(ids) => Some(ids.iter().map(|id| id.key).collect()),
    }
}

/// A row as it is selected.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct RowColumns {
    kind: i16,
    number: i64,
    title: String,
    obs_type: Option<i16>,
    at: DateTime<Utc>,
    project_id: i32,
    project_uid: Uuid,
    project_key: String,
    project_name: String,
    author: String,
}

impl RowColumns {
    pub(crate) fn read(self) -> Result<Row, StoreError> {
        let odd = |column| StoreError::inconsistent("records", column, self.number);
        let kind = RecordKind::from_code(self.kind).ok_or_else(|| odd("kind"))?;
        let obs_type = self.obs_type.map(|code| read_type(code, self.number));
        Ok(Row {
            id: RecordId {
                kind,
                number: self.number,
            },
            title: self.title,
            kind: obs_type.transpose()?,
            project: Project {
                id: ProjectId {
                    key: self.project_id,
                    uuid: self.project_uid,
                },
                key: self.project_key,
                name: self.project_name,
            },
            author: self.author,
            at: self.at,
        })
    }
}

pub(crate) fn read_type(code: i16, number: i64) -> Result<ObservationType, StoreError> {
    ObservationType::from_code(code)
        .ok_or_else(|| StoreError::inconsistent("records", "obs_type", number))
}
