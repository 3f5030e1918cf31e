//! Sessions, projects and jobs: names of things, what was said last, what a job was told. There
//! are few of them, so that all are looked at each time.

use cairn_domain::project::fold;
use cairn_domain::redact::{safe, safe_json};
use serde_json::Value;
use uuid::Uuid;

use super::{Rescan, Rescanned, RowKey};
use crate::{StoreError, TenantTx};

/// A session's row: its key, its project, its uuid, and its texts.
type SessionRow = (
    i64,
    i32,
    Uuid,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
);

impl TenantTx {
    pub(super) async fn redact_sessions(
        &mut self,
        rescan: &Rescan,
    ) -> Result<Rescanned, StoreError> {
        let rows: Vec<SessionRow> = sqlx::query_as(
            "select session_id, project_id, uid, host_session_id, source, model, end_reason,
               last_reply
             from sessions where tenant_id = $1 and session_id > $2
             order by session_id limit $3 for no key update",
        )
        .bind(self.tenant.key())
        .bind(rescan.after().1)
        .bind(i64::from(rescan.most))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut done = Rescanned::default();
        for (key, project, uid, host_id, source, model, end_reason, last_reply) in rows {
            done.seen += 1;
            done.last = Some(RowKey(0, key));
            let texts = [&source, &model, &end_reason, &last_reply];
            let kept = texts.map(|text| text.as_deref().map(|text| safe(text).into_owned()));
            let host = safe(&host_id);
            let is_renamed = *host != *host_id;
            if !is_renamed && kept == [source, model, end_reason, last_reply] {
                continue;
            }
            done.changed += 1;
            let host = if is_renamed {
                apart(&host, uid)
            } else {
                host.into_owned()
            };
            sqlx::query(
                "update sessions set host_session_id = $3, source = $4, model = $5,
                   end_reason = $6, last_reply = $7
                 where tenant_id = $1 and session_id = $2",
            )
            .bind(self.tenant.key())
            .bind(key)
            .bind(host)
            .bind(&kept[0])
            .bind(&kept[1])
            .bind(&kept[2])
            .bind(&kept[3])
            .execute(&mut *self.tx)
            .await?;
            self.raise_context_revision(project).await?;
        }
        Ok(done)
    }

    pub(super) async fn redact_projects(
        &mut self,
        rescan: &Rescan,
    ) -> Result<Rescanned, StoreError> {
        let rows: Vec<(i32, Uuid, String, String)> = sqlx::query_as(
            "select project_id, uid, key, name from projects
             where tenant_id = $1 and project_id > $2 order by project_id limit $3",
        )
        .bind(self.tenant.key())
        .bind(i32::try_from(rescan.after().1).unwrap_or(i32::MIN))
        .bind(i64::from(rescan.most))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut done = Rescanned::default();
        for (project, uid, key, name) in rows {
            done.seen += 1;
            done.last = Some(RowKey(0, project.into()));
            let (kept_key, kept_name) = (safe(&key), safe(&name));
            if *kept_key == *key && *kept_name == *name {
                continue;
            }
            done.changed += 1;
            let position = self.take_position().await?;
            let key = self.free_key(project, &kept_key, uid).await?;
            sqlx::query(
                "update projects set key = $3, key_folded = $4, name = $5, name_folded = $6,
                   position = $7, context_revision = context_revision + 1
                 where tenant_id = $1 and project_id = $2",
            )
            .bind(self.tenant.key())
            .bind(project)
            .bind(&key)
            .bind(fold(&key))
            .bind(&*kept_name)
            .bind(fold(&kept_name))
            .bind(position)
            .execute(&mut *self.tx)
            .await?;
        }
        Ok(done)
    }

    /// The key itself, unless another project has it.
    async fn free_key(&mut self, own: i32, key: &str, uid: Uuid) -> Result<String, StoreError> {
        let is_taken: bool = sqlx::query_scalar(
            "select exists (select from projects
               where tenant_id = $1 and key_folded = $2 and project_id <> $3)",
        )
        .bind(self.tenant.key())
        .bind(fold(key))
        .bind(own)
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(if is_taken {
            apart(key, uid)
        } else {
            key.to_owned()
        })
    }

    pub(super) async fn redact_jobs(&mut self, rescan: &Rescan) -> Result<Rescanned, StoreError> {
        let rows: Vec<(i64, String, Option<String>)> = sqlx::query_as(
            "select job_id, payload::text, last_error from jobs
             where tenant_id = $1 and job_id > $2 order by job_id limit $3 for no key update",
        )
        .bind(self.tenant.key())
        .bind(rescan.after().1)
        .bind(i64::from(rescan.most))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut done = Rescanned::default();
        for (job, payload, error) in rows {
            done.seen += 1;
            done.last = Some(RowKey(0, job));
            let kept = safe_json(&payload);
            let kept_error = error.as_deref().map(safe);
            if *kept == *payload && kept_error.as_deref() == error.as_deref() {
                continue;
            }
            done.changed += 1;
            let payload: Value = serde_json::from_str(&kept)
                .map_err(|_| StoreError::inconsistent("jobs", "payload", job))?;
            sqlx::query(
                "update jobs set payload = $3, last_error = $4
                 where tenant_id = $1 and job_id = $2",
            )
            .bind(self.tenant.key())
            .bind(job)
            .bind(payload)
            .bind(kept_error.as_deref())
            .execute(&mut *self.tx)
            .await?;
        }
        Ok(done)
    }
}

/// A name that has lost what told it apart, told apart again.
fn apart(name: &str, uid: Uuid) -> String {
    let tail = uid.simple().to_string();
    format!("{name}#{}", &tail[..8])
}
