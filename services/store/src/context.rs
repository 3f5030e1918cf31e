//! The rows of a session-start context, chosen and read in one round trip, and the revision at
//! which a kept one may be served.

use cairn_domain::context::{
    ContextObservation, ContextRows, ContextSummary, ContextTotals, Selection, TableRow,
};
use cairn_domain::ids::ProjectId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::summary::SummaryDraft;
use cairn_domain::work_state::WorkState;
use chrono::{DateTime, Utc};
use sqlx::FromRow;

use crate::records::row::{project_keys, read_type, readable};
use crate::work_state::{gather, work_items};
use crate::{StoreError, TenantTx};

/// At what revision the context of a project stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextRevision {
    /// Raised by every write that changes what a session of the project starts with.
    pub project: i64,
    /// Raised by every change of the tenant's settings.
    pub settings: i64,
}

/// All kinds of row in one shape: columns of the other kinds are null. An item of a work list
/// is JSON of its own.
#[derive(FromRow)]
struct Columns {
    kind: i16,
    number: i64,
    at: DateTime<Utc>,
    author: String,
    obs_type: Option<i16>,
    title: String,
    read_tokens: i32,
    work_tokens: i32,
    began: Option<DateTime<Utc>>,
    investigated: Option<String>,
    learned: Option<String>,
    completed: Option<String>,
    next_steps: Option<String>,
    notes: Option<String>,
    narrative: Option<String>,
    facts: Option<Vec<String>>,
    item: Option<String>,
}

/// The newest records of a kind that a context may show: an ordered walk of the index for each
/// project of the family.
macro_rules! newest {
    ($kind:literal, $limit:literal, $($more:tt)*) => {
        concat!(
            "unnest($4::int[]) f (id)
             cross join lateral (
               select r.* from records r
               where r.tenant_id = $1 and r.project_id = f.id and r.kind = ",
            $kind,
            $($more)*,
            " and not ($9 and r.subagent) and ",
            readable!("r"),
            " order by r.at desc, r.number desc limit ",
            $limit,
            ") c"
        )
    };
}

/// The filters of a pick that observations alone have.
macro_rules! picked {
    () => {
        " and (cardinality($7::smallint[]) = 0 or r.obs_type = any ($7))
          and (cardinality($8::text[]) = 0 or r.concepts && $8)"
    };
}

impl TenantTx {
    /// The newest observations and summaries of a family of projects that the reader may read
    /// and the pick wants, newest first, and the open items of the family's lists: what a session
    /// starts with, in one round trip. `project` is the one whose lists need no mention of it.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn context(
        &mut self,
        project: ProjectId,
        family: &[ProjectId],
        reader: &Reader,
        pick: &Selection,
    ) -> Result<(ContextRows, WorkState), StoreError> {
        let rows: Vec<Columns> = sqlx::query_as(concat!(
            "(select c.kind, c.number, c.at, a.name as author, c.obs_type, c.title, c.read_tokens,
                c.work_tokens, null::timestamptz as began, null as investigated, null as learned,
                null as completed, null as next_steps, null as notes, o.narrative, o.facts,
                null as item
              from (
                select c.*, row_number() over (order by c.at desc, c.number desc) as nth
                from ",
            newest!("0", "$5", picked!()),
            "   order by c.at desc, c.number desc limit $5) c
              join principals a on a.tenant_id = $1 and a.principal_id = c.author_id
              left join observations o
                on c.nth <= $10 and o.tenant_id = $1 and o.number = c.number
              order by c.at desc, c.number desc)
             union all
             (select c.kind, c.number, c.at, '', null, c.title, 0, 0, s.started_at,
                y.investigated, y.learned, y.completed, y.next_steps, y.notes, null, null, null
              from ",
            newest!("1", "$6", ""),
            " join summaries y on y.tenant_id = $1 and y.number = c.number
              left join sessions s on s.tenant_id = $1 and s.session_id = c.session_id
              order by c.at desc, c.number desc limit $6)
             union all
             (select 3::smallint, 0, 'epoch', '', null, '', 0, 0, null, null, null, null, null,
                null, null, null, w.item
              from (",
            work_items!(
                "i.project_id = any ($4) and not i.is_closed and not i.is_blank",
                "$11"
            ),
            ") w)",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(keys(family))
        .bind(i64::from(pick.observations))
        .bind(i64::from(pick.summaries))
        .bind(pick.types.iter().map(|t| t.code()).collect::<Vec<_>>())
        .bind(pick.concepts.iter().map(|c| c.name()).collect::<Vec<_>>())
        .bind(pick.main_agent_only)
        .bind(i64::from(pick.full))
        .bind(i64::from(limits::WORK_ITEMS))
        .fetch_all(&mut *self.tx)
        .await?;
        let (mut context, mut items) = (ContextRows::default(), Vec::new());
        for mut row in rows {
            match (row.kind, row.item.take()) {
                (_, Some(item)) => items.push(item),
                (0, _) => context.observations.push(row.observation()?),
                _ => context.summaries.push(row.summary()),
            }
        }
        Ok((context, gather(items.into_iter(), Some(project))?))
    }

    /// At what revision the context of a project stands, and whether the reader sees one of their
    /// own because they wrote private records in its family. Read it before the rows: a context
    /// may be newer than its revision, never older. Of a merged project, seen by a credential that
    /// is limited to it, all of its family count: writes raise each alone.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn context_revision(
        &mut self,
        project: ProjectId,
        family: &[ProjectId],
        reader: &Reader,
    ) -> Result<(ContextRevision, bool), StoreError> {
        let (project, settings, is_own): (i64, i64, bool) = sqlx::query_as(
            "select
               case when p.merged_into is null then p.context_revision else (
                 select sum(f.context_revision)::bigint from projects f
                 where f.tenant_id = $1 and f.project_id = any ($3)) end,
               t.settings_revision, exists (
               select from records r
               where r.tenant_id = $1 and r.project_id = any ($3) and r.author_id = $4
                 and r.private)
             from projects p join tenants t on t.tenant_id = p.tenant_id
             where p.tenant_id = $1 and p.project_id = $2",
        )
        .bind(self.tenant.key())
        .bind(project.key)
        .bind(keys(family))
        .bind(reader.principal.key)
        .fetch_one(&mut *self.tx)
        .await?;
        Ok((ContextRevision { project, settings }, is_own))
    }

    /// Makes every kept context of the tenant worthless, on every replica.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn clear_contexts(&mut self) -> Result<(), StoreError> {
        sqlx::query(
            "update tenants set settings_revision = settings_revision + 1 where tenant_id = $1",
        )
        .bind(self.tenant.key())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// What the agent said last in the reader's newest session in these projects but the current
    /// one.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn last_reply(
        &mut self,
        family: &[ProjectId],
        reader: &Reader,
        current_session: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "select last_reply from sessions
             where tenant_id = $1 and author_id = $2 and project_id = any ($3)
               and last_reply is not null and host_session_id is distinct from $4
             order by started_at desc, session_id desc limit 1",
        )
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(keys(family))
        .bind(current_session)
        .fetch_optional(&mut *self.tx)
        .await?)
    }

    /// How many observations the reader may read in these projects, from how many sessions, and
    /// what reading all would cost.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn context_totals(
        &mut self,
        family: &[ProjectId],
        reader: &Reader,
    ) -> Result<ContextTotals, StoreError> {
        let (observations, sessions, read): (i64, i64, i64) = sqlx::query_as(concat!(
            "select count(*), count(distinct r.session_id), coalesce(sum(r.read_tokens), 0)::bigint
             from records r
             where r.tenant_id = $1 and r.project_id = any ($4) and r.kind = 0 and ",
            readable!("r"),
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(keys(family))
        .fetch_one(&mut *self.tx)
        .await?;
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        Ok(ContextTotals {
            observations: count(observations),
            sessions: count(sessions),
            read_tokens: count(read),
        })
    }

    /// The newest observations of a family with the file each belongs to: those of a folder, or
    /// all. A folder's are looked for among the newest 5,000 of each project.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn context_by_file(
        &mut self,
        family: &[ProjectId],
        reader: &Reader,
        pick: &Selection,
        folder: Option<&str>,
    ) -> Result<Vec<TableRow>, StoreError> {
        let candidates = match folder {
            Some(_) => limits::FOLDER_CANDIDATES,
            None => pick.observations,
        };
        let rows: Vec<FileColumns> = sqlx::query_as(concat!(
            "select c.kind, c.number, c.at, a.name as author, c.obs_type, c.title, c.read_tokens,
               c.work_tokens, null::timestamptz as began, null as investigated, null as learned,
               null as completed, null as next_steps, null as notes, null as narrative,
               null::text[] as facts, null as item, g.file
             from ",
            newest!("0", "$5", picked!()),
            " join principals a on a.tenant_id = $1 and a.principal_id = c.author_id
             join observations o on o.tenant_id = $1 and o.number = c.number
             left join lateral (
               select f.file from unnest(o.files_modified || o.files_read) with ordinality
                 f (file, nth)
               where $10::text is null or f.file = $10 or starts_with(f.file, $10 || '/')
               order by f.nth limit 1) g on true
             where $10::text is null or g.file is not null
             order by c.at desc, c.number desc limit $6",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(keys(family))
        .bind(i64::from(candidates))
        .bind(i64::from(pick.observations))
        .bind(pick.types.iter().map(|t| t.code()).collect::<Vec<_>>())
        .bind(pick.concepts.iter().map(|c| c.name()).collect::<Vec<_>>())
        .bind(pick.main_agent_only)
        .bind(folder)
        .fetch_all(&mut *self.tx)
        .await?;
        let read = |row: FileColumns| {
            Ok(TableRow {
                observation: row.columns.observation()?,
                file: row.file,
            })
        };
        rows.into_iter().map(read).collect()
    }
}

/// A row with its file.
#[derive(FromRow)]
struct FileColumns {
    #[sqlx(flatten)]
    columns: Columns,
    file: Option<String>,
}

fn keys(projects: &[ProjectId]) -> Vec<i32> {
    projects.iter().map(|project| project.key).collect()
}

impl Columns {
    fn observation(self) -> Result<ContextObservation, StoreError> {
        // Every observation has a type; a null would be as odd as an unknown number.
        let kind = read_type(self.obs_type.unwrap_or(-1), self.number)?;
        Ok(ContextObservation {
            number: self.number,
            at: self.at,
            kind,
            title: self.title,
            narrative: self.narrative,
            facts: self.facts,
            read_tokens: u32::try_from(self.read_tokens).unwrap_or_default(),
            work_tokens: u32::try_from(self.work_tokens).unwrap_or_default(),
            author: self.author,
        })
    }

    fn summary(self) -> ContextSummary {
        ContextSummary {
            number: self.number,
            at: self.at,
            // A summary without a session stands at its own time.
            session_started_at: self.began.unwrap_or(self.at),
            fields: SummaryDraft {
                request: self.title,
                investigated: self.investigated.unwrap_or_default(),
                learned: self.learned.unwrap_or_default(),
                completed: self.completed.unwrap_or_default(),
                next_steps: self.next_steps.unwrap_or_default(),
                notes: self.notes.unwrap_or_default(),
            },
        }
    }
}
