//! Import: what stands around imported events. The events themselves are stored as any others
//! (`events/`), with what they keep of where they came from.

use std::collections::{BTreeMap, HashMap};

use cairn_domain::ids::{PrincipalId, ToolUseId};
use cairn_domain::kind::Kind;
use cairn_domain::project::ProjectKey;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// The name of whoever stands for authors that are not known here.
pub const IMPORTER: &str = "importer";
/// The same, where somebody else has that name: no handle looks like it.
const OTHER_IMPORTER: &str = "import:importer";

/// A session as it comes from elsewhere.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// Its project.
    pub project: ProjectKey,
    /// The host.
    pub host: String,
    /// The host's id of it.
    pub id: String,
    /// Its author.
    pub author: PrincipalId,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    pub end_reason: Option<String>,
    /// Why it began.
    pub source: Option<String>,
    /// The model in use.
    pub model: Option<String>,
}

impl TenantTx {
    /// The principals of these handles, removed or not; others are left out.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_authors(
        &mut self,
        names: &[&str],
    ) -> Result<HashMap<String, PrincipalId>, StoreError> {
        let rows: Vec<(String, i32, Uuid)> = sqlx::query_as(
            "select name, principal_id, uid from principals
             where tenant_id = $1 and name = any ($2) and kind <> 'import'",
        )
        .bind(self.tenant.key())
        .bind(names)
        .fetch_all(&mut *self.tx)
        .await?;
        let read = |(name, key, uuid)| (name, PrincipalId { key, uuid });
        Ok(rows.into_iter().map(read).collect())
    }

    /// Who stands for authors that are not known here; made by the first import.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn importer(&mut self, now: DateTime<Utc>) -> Result<PrincipalId, StoreError> {
        for name in [IMPORTER, OTHER_IMPORTER] {
            let find = "select principal_id, uid from principals
                where tenant_id = $1 and name = $2 and kind = 'import'";
            let known: Option<(i32, Uuid)> = sqlx::query_as(find)
                .bind(self.tenant.key())
                .bind(name)
                .fetch_optional(&mut *self.tx)
                .await?;
            if let Some((key, uuid)) = known {
                return Ok(PrincipalId { key, uuid });
            }
            let made: Option<(i32, Uuid)> = sqlx::query_as(
                "insert into principals (kind, name, created_at) values ('import', $1, $2)
                 on conflict (tenant_id, name) do nothing returning principal_id, uid",
            )
            .bind(name)
            .bind(now)
            .fetch_optional(&mut *self.tx)
            .await?;
            if let Some((key, uuid)) = made {
                return Ok(PrincipalId { key, uuid });
            }
        }
        // Another import has just made it.
        Err(StoreError::Raced)
    }

    /// Makes sessions that are not there yet, and their projects; which of them were made. Those
    /// that are there are left as they are.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn import_sessions(
        &mut self,
        sessions: &[ImportedSession],
    ) -> Result<Vec<bool>, StoreError> {
        let mut named: BTreeMap<String, &ProjectKey> = BTreeMap::new();
        for session in sessions {
            named
                .entry(session.project.folded())
                .or_insert(&session.project);
        }
        let known = self.placed_projects(&named).await?;
        let project = |session: &ImportedSession| known.get(&session.project.folded()).copied();
        let mut made = vec![false; sessions.len()];
        let placed: Vec<(usize, &ImportedSession, i32)> = sessions
            .iter()
            .enumerate()
            .filter_map(|(nth, session)| Some((nth, session, project(session)?)))
            .collect();
        let all = || placed.iter().map(|(_, session, _)| *session);
        let rows: Vec<(i32, String, String)> = sqlx::query_as(
            "insert into sessions (tenant_id, project_id, host, host_session_id, author_id,
               started_at, ended_at, end_reason, source, model)
             select $1, u.project_id, u.host, u.id, u.author_id, u.started_at, u.ended_at,
               u.end_reason, u.source, u.model
             from unnest($2::int[], $3::text[], $4::text[], $5::int[], $6::timestamptz[],
               $7::timestamptz[], $8::text[], $9::text[], $10::text[])
               u (project_id, host, id, author_id, started_at, ended_at, end_reason, source, model)
             order by u.project_id, u.host, u.id
             on conflict (tenant_id, project_id, host, host_session_id) do nothing
             returning project_id, host, host_session_id",
        )
        .bind(self.tenant.key())
        .bind(
            placed
                .iter()
                .map(|(.., project)| *project)
                .collect::<Vec<_>>(),
        )
        .bind(all().map(|s| s.host.as_str()).collect::<Vec<_>>())
        .bind(all().map(|s| s.id.as_str()).collect::<Vec<_>>())
        .bind(all().map(|s| s.author.key).collect::<Vec<_>>())
        .bind(all().map(|s| s.started_at).collect::<Vec<_>>())
        .bind(all().map(|s| s.ended_at).collect::<Vec<_>>())
        .bind(all().map(|s| s.end_reason.as_deref()).collect::<Vec<_>>())
        .bind(all().map(|s| s.source.as_deref()).collect::<Vec<_>>())
        .bind(all().map(|s| s.model.as_deref()).collect::<Vec<_>>())
        .fetch_all(&mut *self.tx)
        .await?;
        let rows: std::collections::HashSet<_> = rows.into_iter().collect();
        for (nth, session, project) in placed {
            let at = (project, session.host.clone(), session.id.clone());
            made[nth] = rows.contains(&at);
        }
        Ok(made)
    }

    /// The projects of these folded keys; those that are missing are made, each with its position.
    async fn placed_projects(
        &mut self,
        named: &BTreeMap<String, &ProjectKey>,
    ) -> Result<HashMap<String, i32>, StoreError> {
        let find = "select key_folded, project_id, position from projects
            where tenant_id = $1 and key_folded = any ($2) order by key_folded";
        let keys: Vec<&str> = named.keys().map(String::as_str).collect();
        let mut found: Vec<(String, i32, Option<i64>)> = sqlx::query_as(find)
            .bind(self.tenant.key())
            .bind(&keys)
            .fetch_all(&mut *self.tx)
            .await?;
        if found.len() < named.len() {
            self.insert_projects(named).await?;
            found = sqlx::query_as(find)
                .bind(self.tenant.key())
                .bind(&keys)
                .fetch_all(&mut *self.tx)
                .await?;
            for (_, project, _) in found.iter().filter(|(.., position)| position.is_none()) {
                let position = self.take_position().await?;
                sqlx::query(
                    "update projects set position = $3 where tenant_id = $1 and project_id = $2",
                )
                .bind(self.tenant.key())
                .bind(project)
                .bind(position)
                .execute(&mut *self.tx)
                .await?;
            }
        }
        let read = |(key, project, _): (String, i32, Option<i64>)| (key, project);
        Ok(found.into_iter().map(read).collect())
    }

    /// The numbers that tool uses have here which had these ids where they came from.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn imported_tool_uses(
        &mut self,
        source: Uuid,
        ids: &[ToolUseId],
    ) -> Result<HashMap<ToolUseId, i64>, StoreError> {
        let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "select imported_id, number from imported
             where tenant_id = $1 and source = $2 and kind = $3 and imported_id = any ($4)
               and number is not null",
        )
        .bind(self.tenant.key())
        .bind(source)
        .bind(Kind::ToolUse.code())
        .bind(texts)
        .fetch_all(&mut *self.tx)
        .await?;
        let read = |(id, number): (String, i64)| Some((id.parse().ok()?, number));
        Ok(rows.into_iter().filter_map(read).collect())
    }
}
