//! Sessions read back, with what there is of each that its reader may read (contract 2.3, 3.2). How
//! they are made and moved stands in `events/sessions.rs`.
//!
//! A session of which somebody may read nothing is not there for them: what was captured in private
//! is its author's alone, and so is that it was.

use cairn_domain::filter::ByAuthor;
use cairn_domain::ids::ProjectId;
use cairn_domain::project::{Project, Reader};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use uuid::Uuid;

use crate::records::row::{project_keys, readable};
use crate::tool_uses::readable as readable_tool_use;
use crate::{StoreError, TenantTx};

/// Which sessions are wanted.
#[derive(Clone, Debug, Default)]
pub struct SessionPick<'a> {
    /// Of one author.
    pub author: Option<&'a ByAuthor>,
    /// Begun not before this moment.
    pub from: Option<DateTime<Utc>>,
    /// Begun before this moment.
    pub until: Option<DateTime<Utc>>,
    /// Whether the reader may read tool uses at all.
    pub evidence: bool,
    /// Behind this session.
    pub after: Option<SessionPlace>,
    /// At most so many.
    pub limit: u32,
}

/// The place of a session in a list, which no two share: when it began, to the microsecond, and
/// its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPlace(i64, i64);

/// A session with counts of what its reader may read of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSession {
    /// Its id.
    pub uid: Uuid,
    /// The host.
    pub host: String,
    /// The host's id of it.
    pub host_session_id: String,
    /// Its project.
    pub project: Project,
    /// Whose it is: a handle, or `key:<key id>`.
    pub author: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended, if it has.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended, as the host says.
    pub end_reason: Option<String>,
    /// How it began, as the host says.
    pub source: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Observations.
    pub observations: u64,
    /// Summaries.
    pub summaries: u64,
    /// Prompts.
    pub prompts: u64,
    /// Tool uses.
    pub tool_uses: u64,
    /// Its place in a list.
    pub place: SessionPlace,
}

#[derive(FromRow)]
struct Columns {
    session_id: i64,
    uid: Uuid,
    host: String,
    host_session_id: String,
    project_id: i32,
    project_uid: Uuid,
    project_key: String,
    project_name: String,
    author: String,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    end_reason: Option<String>,
    source: Option<String>,
    model: Option<String>,
    observations: i64,
    summaries: i64,
    prompts: i64,
    tool_uses: i64,
}

impl From<Columns> for ListedSession {
    fn from(row: Columns) -> Self {
        let count = |stored: i64| u64::try_from(stored).unwrap_or_default();
        Self {
            place: SessionPlace(row.started_at.timestamp_micros(), row.session_id),
            uid: row.uid,
            host: row.host,
            host_session_id: row.host_session_id,
            project: Project {
                id: ProjectId {
                    key: row.project_id,
                    uuid: row.project_uid,
                },
                key: row.project_key,
                name: row.project_name,
            },
            author: row.author,
            started_at: row.started_at,
            ended_at: row.ended_at,
            end_reason: row.end_reason,
            source: row.source,
            model: row.model,
            observations: count(row.observations),
            summaries: count(row.summaries),
            prompts: count(row.prompts),
            tool_uses: count(row.tool_uses),
        }
    }
}

/// Whether the reader may know of session `s`: it is their own, or they may read something of it.
/// Binds are those of `records/row.rs`; $4 is whether tool uses may be read.
macro_rules! known {
    () => {
        concat!(
            "(s.author_id = $2 or exists (
               select from records r
               where r.tenant_id = $1 and r.session_id = s.session_id and ",
            $crate::records::row::readable!("r"),
            ") or ($4 and exists (
               select from tool_uses t
               where t.tenant_id = $1 and t.session_id = s.session_id and ",
            $crate::tool_uses::readable!(),
            ")))"
        )
    };
}
pub(crate) use known;

/// Sessions `s` of the reader's projects on which the condition holds and of which the reader may
/// know, the newest first. Binds are those of `records/row.rs`; $4 is whether tool uses
/// may be read, $5 how many sessions there are at most.
macro_rules! sessions {
    ($condition:literal) => {
        concat!(
            "select s.session_id, s.uid, s.host, s.host_session_id, p.project_id,
               p.uid as project_uid, p.key as project_key, p.name as project_name,
               a.name as author, s.started_at, s.ended_at, s.end_reason, s.source, s.model,
               r.observations, r.summaries, r.prompts, t.tool_uses
             from (
               select n.*
               from projects f cross join lateral (
                 select s.* from sessions s
                 where s.tenant_id = $1 and s.project_id = f.project_id and ",
            $condition,
            "      and ",
            known!(),
            "    order by s.started_at desc, s.session_id desc limit $5) n
               where f.tenant_id = $1 and ($3::int[] is null or f.project_id = any ($3))
               order by n.started_at desc, n.session_id desc limit $5) s
             join projects p on p.tenant_id = $1 and p.project_id = s.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = s.author_id
             cross join lateral (
               select count(*) filter (where r.kind = 0) as observations,
                 count(*) filter (where r.kind = 1) as summaries,
                 count(*) filter (where r.kind = 2) as prompts
               from records r
               where r.tenant_id = $1 and r.session_id = s.session_id and ",
            readable!("r"),
            ") r
             cross join lateral (
               select count(*) as tool_uses from tool_uses t
               where $4 and t.tenant_id = $1 and t.session_id = s.session_id and ",
            readable_tool_use!(),
            ") t
             order by s.started_at desc, s.session_id desc"
        )
    };
}

impl TenantTx {
    /// The sessions that are wanted, of the reader's projects, the newest first.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn list_sessions(
        &mut self,
        pick: &SessionPick<'_>,
        reader: &Reader,
    ) -> Result<Vec<ListedSession>, StoreError> {
        let (own, author) = match pick.author {
            None => (false, None),
            Some(ByAuthor::Me) => (true, None),
            Some(ByAuthor::Named(name)) => (false, Some(name.as_str())),
        };
        let after = pick.after.map(|SessionPlace(micros, number)| {
            let at = DateTime::from_timestamp_micros(micros).unwrap_or_default();
            (at, number)
        });
        let rows: Vec<Columns> = sqlx::query_as(sessions!(
            "(not $6 or s.author_id = $2) and ($7::text is null or s.author_id = (
               select q.principal_id from principals q where q.tenant_id = $1 and q.name = $7))
             and ($8::timestamptz is null or s.started_at >= $8)
             and ($9::timestamptz is null or s.started_at < $9)
             and ($10::timestamptz is null or (s.started_at, s.session_id) < ($10, $11))"
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(pick.evidence)
        .bind(i64::from(pick.limit))
        .bind(own)
        .bind(author)
        .bind(pick.from)
        .bind(pick.until)
        .bind(after.map(|place| place.0))
        .bind(after.map(|place| place.1))
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows.into_iter().map(ListedSession::from).collect())
    }

    /// The newest session of the reader's projects that a text names: by its id, by the host's id
    /// of it, or by that behind the host's name and `/`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_session(
        &mut self,
        text: &str,
        evidence: bool,
        reader: &Reader,
    ) -> Result<Option<ListedSession>, StoreError> {
        let row: Option<Columns> = sqlx::query_as(sessions!(
            "(s.uid = $6 or s.host_session_id = $7 or s.host || '/' || s.host_session_id = $7)"
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(evidence)
        .bind(1_i64)
        .bind(text.parse::<Uuid>().ok())
        .bind(text)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(row.map(ListedSession::from))
    }
}
