//! What was said last in sessions, and what jobs were told of them: texts that are no records, and
//! go with the records of their time (contract 20.3). A job that has lost what it was told makes
//! nothing of it any more.

use cairn_domain::kind::Kind;
use cairn_domain::limits;
use chrono::{DateTime, Utc};

use crate::purge::PurgeFilter;
use crate::records::row::project_keys;
use crate::{StoreError, TenantTx};

/// Whose words go, and which: what meets all of it.
#[derive(Default)]
pub(crate) struct Said {
    /// In sessions of these projects.
    pub projects: Option<Vec<i32>>,
    /// In sessions of these authors.
    pub authors: Option<Vec<i32>>,
    /// In sessions that began before this.
    pub begun_before: Option<DateTime<Utc>>,
    /// What was said before this.
    pub said_before: Option<DateTime<Utc>>,
    /// How sessions began and ended goes as well, and the count of their prompts.
    pub with_prompts: bool,
    /// The counts of their tool uses go as well.
    pub with_tool_uses: bool,
}

impl TenantTx {
    /// Takes out of up to `most` sessions and as many jobs what was said before a moment; how many
    /// that were. There may be more unless it was none.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn expire_said(
        &mut self,
        before: DateTime<Utc>,
        most: u32,
    ) -> Result<u64, StoreError> {
        let said = Said {
            said_before: Some(before),
            ..Said::default()
        };
        self.forget_said(&said, most).await
    }

    /// Takes out of sessions what was said in them, and out of the queue the work that would make
    /// something of it; of how many, at most [`limits::REMOVED_AT_ONCE`] of each. To be repeated
    /// until it was none.
    ///
    /// The agent's last words may repeat anything that was captured, so they go whatever kinds are
    /// named, unless it is lists alone, which hold what was written into them and no more. Those
    /// of sessions that began before the filter's moment go.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn scrub_sessions(&mut self, filter: &PurgeFilter) -> Result<u64, StoreError> {
        if filter.kinds.iter().all(|kind| *kind == Kind::WorkEntry) {
            return Ok(0);
        }
        let said = Said {
            projects: project_keys(&filter.projects),
            authors: filter.author.map(|author| vec![author.key]),
            begun_before: filter.before,
            said_before: None,
            with_prompts: filter.kinds.contains(&Kind::Prompt),
            with_tool_uses: filter.kinds.contains(&Kind::ToolUse),
        };
        self.forget_said(&said, limits::REMOVED_AT_ONCE).await
    }

    /// Takes words out of up to `most` sessions and as many jobs; how many that were.
    pub(crate) async fn forget_said(&mut self, said: &Said, most: u32) -> Result<u64, StoreError> {
        // Which index finds them depends on what is asked.
        self.plan_by_values().await?;
        let sessions = sqlx::query(
            "with found as (
               select s.session_id from sessions s
               where s.tenant_id = $1 and ($2::int[] is null or s.project_id = any ($2))
                 and ($3::int[] is null or s.author_id = any ($3))
                 and ($4::timestamptz is null or s.started_at < $4)
                 and ($5::timestamptz is null
                   or coalesce(s.replied_at, s.ended_at, s.started_at) < $5)
                 and (s.last_reply is not null
                   or ($6 and (s.prompt_count > 0 or s.source is not null or s.model is not null
                     or s.end_reason is not null))
                   or ($7 and (s.tool_use_count > 0 or s.turn_tool_uses > 0)))
               order by s.session_id limit $8 for no key update)
             update sessions s set last_reply = null,
               prompt_count = case when $6 then 0 else s.prompt_count end,
               source = case when $6 then null else s.source end,
               model = case when $6 then null else s.model end,
               end_reason = case when $6 then null else s.end_reason end,
               tool_use_count = case when $7 then 0 else s.tool_use_count end,
               turn_tool_uses = case when $7 then 0 else s.turn_tool_uses end
             from found f where s.tenant_id = $1 and s.session_id = f.session_id",
        )
        .bind(self.tenant.key())
        .bind(&said.projects)
        .bind(&said.authors)
        .bind(said.begun_before)
        .bind(said.said_before)
        .bind(said.with_prompts)
        .bind(said.with_tool_uses)
        .bind(i64::from(most))
        .execute(&mut *self.tx)
        .await?;
        let jobs = self.forget_told(said, most).await?;
        Ok(sessions.rows_affected() + jobs)
    }

    /// Takes out of jobs what they were told. One of no session is nobody's, and of all projects.
    async fn forget_told(&mut self, said: &Said, most: u32) -> Result<u64, StoreError> {
        let jobs = sqlx::query(
            "with found as (
               select j.job_id from jobs j
               left join sessions s on s.tenant_id = $1 and s.session_id = j.session_id
               where j.tenant_id = $1 and (j.payload <> '{}' or j.last_error is not null)
                 and ($2::int[] is null or s.project_id = any ($2))
                 and ($3::int[] is null or s.author_id = any ($3))
                 and ($4::timestamptz is null or coalesce(s.started_at, j.created_at) < $4)
                 and ($5::timestamptz is null or j.created_at < $5)
               order by j.job_id limit $6 for no key update of j)
             update jobs j set payload = '{}', last_error = null,
               state = case when j.state in ('queued', 'running') then 'cancelled' else j.state end
             from found f where j.tenant_id = $1 and j.job_id = f.job_id",
        )
        .bind(self.tenant.key())
        .bind(&said.projects)
        .bind(&said.authors)
        .bind(said.begun_before)
        .bind(said.said_before)
        .bind(i64::from(most))
        .execute(&mut *self.tx)
        .await?;
        Ok(jobs.rows_affected())
    }
}
