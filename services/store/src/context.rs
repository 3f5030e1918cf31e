//! The rows of a session-start context, chosen and read in one round trip.

use cairn_domain::context::{ContextObservation, ContextRows, ContextSummary};
use cairn_domain::ids::ProjectId;
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::project::Reader;
use cairn_domain::summary::SummaryDraft;
use chrono::{DateTime, Utc};
use sqlx::FromRow;

use crate::records::row::{project_keys, read_type, readable};
use crate::{StoreError, TenantTx};

/// Which rows a context wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextPick {
    /// The newest observations, at most.
    pub observations: u32,
    /// The newest summaries, at most.
    pub summaries: u32,
    /// Observations of these types only; empty for all.
    pub types: Vec<ObservationType>,
    /// Observations with one of these concepts only; empty for all.
    pub concepts: Vec<Concept>,
    /// Leave out what subagents did.
    pub main_agent_only: bool,
}

/// Both kinds of row in one shape: columns of the other kind are null.
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
}

impl TenantTx {
    /// The newest observations and summaries of a family of projects that the reader may read
    /// and the pick wants, newest first.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn context(
        &mut self,
        projects: &[ProjectId],
        reader: &Reader,
        pick: &ContextPick,
    ) -> Result<ContextRows, StoreError> {
        let family: Vec<i32> = projects.iter().map(|project| project.key).collect();
        let types: Vec<i16> = pick.types.iter().map(|kind| kind.code()).collect();
        let concepts: Vec<&str> = pick.concepts.iter().map(|c| c.name()).collect();
        // One ordered walk of the index for each project of the family, then the newest of all.
        let rows: Vec<Columns> = sqlx::query_as(concat!(
            "(select c.kind, c.number, c.at, a.name as author, c.obs_type, c.title, c.read_tokens,
                c.work_tokens, null::timestamptz as began, null as investigated, null as learned,
                null as completed, null as next_steps, null as notes
              from unnest($4::int[]) f (id)
              cross join lateral (
                select r.* from records r
                where r.tenant_id = $1 and r.project_id = f.id and r.kind = 0
                  and (cardinality($7::smallint[]) = 0 or r.obs_type = any ($7))
                  and (cardinality($8::text[]) = 0 or r.concepts && $8)
                  and not ($9 and r.subagent) and ",
            readable!("r"),
            "   order by r.at desc, r.number desc limit $5) c
              join principals a on a.tenant_id = $1 and a.principal_id = c.author_id
              order by c.at desc, c.number desc limit $5)
             union all
             (select c.kind, c.number, c.at, a.name, null, c.title, 0, 0, s.started_at,
                y.investigated, y.learned, y.completed, y.next_steps, y.notes
              from unnest($4::int[]) f (id)
              cross join lateral (
                select r.* from records r
                where r.tenant_id = $1 and r.project_id = f.id and r.kind = 1
                  and not ($9 and r.subagent) and ",
            readable!("r"),
            "   order by r.at desc, r.number desc limit $6) c
              join principals a on a.tenant_id = $1 and a.principal_id = c.author_id
              join summaries y on y.tenant_id = $1 and y.number = c.number
              left join sessions s on s.tenant_id = $1 and s.session_id = c.session_id
              order by c.at desc, c.number desc limit $6)",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(family)
        .bind(i64::from(pick.observations))
        .bind(i64::from(pick.summaries))
        .bind(types)
        .bind(concepts)
        .bind(pick.main_agent_only)
        .fetch_all(&mut *self.tx)
        .await?;
        let mut context = ContextRows::default();
        for row in rows {
            if row.kind == 0 {
                context.observations.push(row.observation()?);
            } else {
                context.summaries.push(row.summary());
            }
        }
        Ok(context)
    }
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
            narrative: None,
            facts: None,
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
            author: self.author,
        }
    }
}
