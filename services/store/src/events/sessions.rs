//! Sessions of a batch: made by their first event, locked while their turns are counted. Records
//! and work entries move no session, so what brings only those waits for none.

use std::collections::BTreeMap;

use cairn_domain::event::{EventBody, SessionKey};
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::projects::OpenProjects;
use super::{EventBatch, PreparedEvent};
use crate::{StoreError, TenantTx};

/// A session's row as it stands and as the batch leaves it; locked if the batch may move it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(super) struct Session {
    #[sqlx(rename = "session_id")]
    pub id: i64,
    pub uid: Uuid,
    project_id: i32,
    host: String,
    host_session_id: String,
    pub ended_at: Option<DateTime<Utc>>,
    pub end_reason: Option<String>,
    pub source: Option<String>,
    pub model: Option<String>,
    pub prompt_count: i32,
    pub tool_use_count: i32,
    pub turn: i32,
    pub turn_open: bool,
    pub turn_private: bool,
    pub turn_tool_uses: i32,
    /// What the agent said last, if this batch tells; what stands is not read.
    #[sqlx(skip)]
    pub last_reply: Option<String>,
}

/// A session by its project and its host's name for it.
pub(super) type SessionAt = (i32, SessionKey);

/// What a batch wants of a session.
struct Wanted {
    /// Who is its author, if this batch makes it.
    author: i32,
    /// When it began, if this batch makes it.
    started_at: DateTime<Utc>,
    /// Whether an event of the batch may move it.
    moves: bool,
}

/// The sessions of a batch.
pub(super) type Sessions = BTreeMap<SessionAt, Session>;

/// The columns of a [`Session`], which has the alias `s`. Named one by one: a statement of a
/// running server must not change its result when a newer version adds a column.
macro_rules! columns_of_s {
    () => {
        "s.session_id, s.uid, s.project_id, s.host, s.host_session_id, s.ended_at, s.end_reason,
         s.source, s.model, s.prompt_count, s.tool_use_count, s.turn, s.turn_open, s.turn_private,
         s.turn_tool_uses"
    };
}

impl TenantTx {
    /// Makes the sessions that are missing, locks those that may move, and reads all.
    pub(super) async fn open_sessions(
        &mut self,
        batch: &EventBatch<'_>,
        fresh: &[&PreparedEvent],
        projects: &OpenProjects,
    ) -> Result<Sessions, StoreError> {
        let mut wanted: BTreeMap<SessionAt, Wanted> = BTreeMap::new();
        for event in fresh {
            let draft = &event.draft;
            let project = projects.get(&draft.project.folded());
            if let (Some(key), Some(project)) = (&draft.session, project) {
                let at = (project.key, key.clone());
                let first = wanted.entry(at).or_insert(Wanted {
                    author: event.author(batch).key,
                    started_at: draft.at,
                    moves: false,
                });
                first.moves |= may_move(&draft.body);
            }
        }
        if wanted.is_empty() {
            return Ok(Sessions::new());
        }
        let mut sessions = self.find_sessions(&wanted).await?;
        if sessions.len() < wanted.len() {
            wanted.retain(|at, _| !sessions.contains_key(at));
            self.insert_sessions(&wanted).await?;
            sessions.extend(self.find_sessions(&wanted).await?);
        }
        Ok(sessions)
    }

    async fn insert_sessions(
        &mut self,
        missing: &BTreeMap<SessionAt, Wanted>,
    ) -> Result<(), StoreError> {
        let (projects, hosts, ids) = columns(missing);
        let starts: Vec<DateTime<Utc>> = missing.values().map(|w| w.started_at).collect();
        sqlx::query(
            "insert into sessions
               (tenant_id, project_id, host, host_session_id, author_id, started_at)
             select $1, u.project_id, u.host, u.id, u.author_id, u.started_at
             from unnest($2::int[], $3::int[], $4::text[], $5::text[], $6::timestamptz[])
               with ordinality u (author_id, project_id, host, id, started_at, nth)
             order by u.nth
             on conflict (tenant_id, project_id, host, host_session_id) do nothing",
        )
        .bind(self.tenant.key())
        .bind(missing.values().map(|w| w.author).collect::<Vec<_>>())
        .bind(projects)
        .bind(hosts)
        .bind(ids)
        .bind(starts)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Reads sessions; those that may move are locked first, in the order of the map, so that two
    /// batches cannot lock each other out.
    async fn find_sessions(
        &mut self,
        wanted: &BTreeMap<SessionAt, Wanted>,
    ) -> Result<Sessions, StoreError> {
        let (projects, hosts, ids) = columns(wanted);
        let moves: Vec<bool> = wanted.values().map(|w| w.moves).collect();
        let rows: Vec<Session> = sqlx::query_as(concat!(
            "with wanted as (
               select * from unnest($2::int[], $3::text[], $4::text[], $5::bool[])
                 with ordinality u (project_id, host, id, moves, nth)),
             locked as (
               select ",
            columns_of_s!(),
            " from wanted u
               join sessions s on s.tenant_id = $1 and s.project_id = u.project_id
                 and s.host = u.host and s.host_session_id = u.id
               where u.moves
               order by u.nth
               for no key update of s)
             select * from locked
             union all
             select ",
            columns_of_s!(),
            " from wanted u
             join sessions s on s.tenant_id = $1 and s.project_id = u.project_id
               and s.host = u.host and s.host_session_id = u.id
             where not u.moves",
        ))
        .bind(self.tenant.key())
        .bind(projects)
        .bind(hosts)
        .bind(ids)
        .bind(moves)
        .fetch_all(&mut *self.tx)
        .await?;
        let keyed = |row: Session| {
            let key = SessionKey {
                host: row.host.clone(),
                id: row.host_session_id.clone(),
            };
            ((row.project_id, key), row)
        };
        Ok(rows.into_iter().map(keyed).collect())
    }

    /// Writes back what the batch changed.
    pub(super) async fn save_sessions(
        &mut self,
        sessions: &[Session],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if sessions.is_empty() {
            return Ok(());
        }
        let all = sessions.iter();
        sqlx::query(
            "update sessions s set ended_at = u.ended_at, end_reason = u.end_reason,
               source = u.source, model = u.model, prompt_count = u.prompt_count,
               tool_use_count = u.tool_use_count, turn = u.turn, turn_open = u.turn_open,
               turn_private = u.turn_private, turn_tool_uses = u.turn_tool_uses,
               last_reply = coalesce(u.last_reply, s.last_reply),
               replied_at = case when u.last_reply is null then s.replied_at else $14 end
             from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[],
               $7::int[], $8::int[], $9::int[], $10::bool[], $11::bool[], $12::int[],
               $13::text[])
               u (session_id, ended_at, end_reason, source, model, prompt_count, tool_use_count,
                  turn, turn_open, turn_private, turn_tool_uses, last_reply)
             where s.tenant_id = $1 and s.session_id = u.session_id",
        )
        .bind(self.tenant.key())
        .bind(all.clone().map(|s| s.id).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.ended_at).collect::<Vec<_>>())
        .bind(
            all.clone()
                .map(|s| s.end_reason.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(all.clone().map(|s| s.source.as_deref()).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.model.as_deref()).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.prompt_count).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.tool_use_count).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.turn).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.turn_open).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.turn_private).collect::<Vec<_>>())
        .bind(all.clone().map(|s| s.turn_tool_uses).collect::<Vec<_>>())
        .bind(all.map(|s| s.last_reply.as_deref()).collect::<Vec<_>>())
        .bind(now)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

/// Whether an event of this kind may change its session's row; the plan follows just these.
const fn may_move(body: &EventBody) -> bool {
    match body {
        EventBody::SessionStart { .. }
        | EventBody::Prompt { .. }
        | EventBody::ToolUse(_)
        | EventBody::TurnEnd { .. }
        | EventBody::SessionEnd { .. } => true,
        EventBody::Observation(_) | EventBody::Summary(_) | EventBody::WorkEntry { .. } => false,
    }
}

fn columns(sessions: &BTreeMap<SessionAt, Wanted>) -> (Vec<i32>, Vec<&str>, Vec<&str>) {
    let keys = sessions.keys();
    (
        keys.clone().map(|(project, _)| *project).collect(),
        keys.clone().map(|(_, key)| key.host.as_str()).collect(),
        keys.map(|(_, key)| key.id.as_str()).collect(),
    )
}
