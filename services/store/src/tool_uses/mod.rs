//! Tool uses read back: found by any of their names, read only together with a line of the audit
//! log (contract 8, 20.1), and searched without showing what they hold. How they are stored stands
//! in `events/tool_uses.rs`.

mod delete;
pub(crate) mod row;
mod search;

use std::collections::HashMap;

use cairn_domain::ids::ToolUseId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::tool_use::ToolUseName;
use chrono::{DateTime, Utc};
use serde_json::Value;

pub use row::PackedToolUse;
pub use search::{NewestToolUses, SearchedToolUse};

use crate::records::row::project_keys;
use crate::{StoreError, TenantTx};

/// Whether the reader may read the tool use `t`: in their projects, and their own, or neither
/// private nor kept to its author by the tenant. Binds are those of `records/row.rs`. A setting
/// of no meaning keeps it to its author.
macro_rules! readable {
    () => {
        "($3::int[] is null or t.project_id = any ($3)) and (t.author_id = $2 or (not t.private \
           and (select coalesce(w.settings ->> 'evidence_visibility', 'team') = 'team' \
             from tenants w where w.tenant_id = $1)))"
    };
}

pub(crate) use readable;

/// A tool use that some names were found to mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundToolUse {
    /// The tool use.
    pub id: ToolUseId,
    /// Which of the names asked for mean it, from 0, at least one.
    pub names: Vec<usize>,
}

/// What a read of tool uses is written down as.
#[derive(Clone, Debug)]
pub struct EvidenceRead {
    /// When.
    pub at: DateTime<Utc>,
    /// How much of them was read, for the audit log.
    pub detail: Value,
}

impl TenantTx {
    /// The tool uses of these names that the reader may read: in the order asked, of one name
    /// first the one of this number, then those of this host's id, newest first and at most
    /// [`limits::TOOL_USES_PER_ID`]; each once, at most [`limits::READ_IDS`] in all, of which
    /// every name that is found has one before any has two.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_tool_uses(
        &mut self,
        names: &[ToolUseName],
        reader: &Reader,
    ) -> Result<Vec<FoundToolUse>, StoreError> {
        let numbers: Vec<Option<i64>> = names.iter().map(|name| name.id.map(|id| id.0)).collect();
        let hosts: Vec<Option<&str>> = names.iter().map(|name| name.host.as_deref()).collect();
        let rows: Vec<(i64, i64)> = sqlx::query_as(concat!(
            "with asked as (
               select u.number, u.host, u.nth - 1 as nth
               from unnest($4::bigint[], $5::text[]) with ordinality u (number, host, nth)),
             meant as (
               select a.nth, 0 as rank, t.number
               from asked a join tool_uses t on t.tenant_id = $1 and t.number = a.number
               where ",
            readable!(),
            " union all
               select a.nth, 1, t.number
               from asked a cross join lateral (
                 select t.number from tool_uses t
                 where t.tenant_id = $1 and t.host_tool_use_id = a.host and ",
            readable!(),
            "    order by t.number desc limit $6) t)
             select nth, number from meant
             order by row_number() over (partition by nth order by rank, number desc), nth",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(numbers)
        .bind(hosts)
        .bind(i64::try_from(limits::TOOL_USES_PER_ID).unwrap_or(i64::MAX))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut found: Vec<FoundToolUse> = Vec::new();
        let mut places: HashMap<i64, usize> = HashMap::new();
        for (nth, number) in rows {
            let name = usize::try_from(nth).unwrap_or_default();
            let place = *places.entry(number).or_insert(found.len());
            match found.get_mut(place) {
                Some(known) => known.names.push(name),
                None => found.push(FoundToolUse {
                    id: ToolUseId(number),
                    names: vec![name],
                }),
            }
        }
        found.truncate(limits::READ_IDS);
        // Stable: within a name the order stays.
        found.sort_by_key(|found| found.names.iter().min().copied());
        Ok(found)
    }

    /// The tool uses of these ids that the reader may read, in the order asked; others are left
    /// out without a word. Each that is read has its line in the audit log, in this transaction:
    /// commit it before anything of them is shown, drop it if nothing is.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn read_tool_uses(
        &mut self,
        ids: &[ToolUseId],
        reader: &Reader,
        read: &EvidenceRead,
    ) -> Result<Vec<PackedToolUse>, StoreError> {
        let numbers: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let rows: Vec<PackedToolUse> = sqlx::query_as(concat!(
            "with found as (
               select u.nth, t.*
               from unnest($4::bigint[]) with ordinality u (number, nth)
               join tool_uses t on t.tenant_id = $1 and t.number = u.number
               where ",
            readable!(),
            "), noted as (
               insert into audit (tenant_id, at, actor_id, action, target, detail)
               select $1, $5, $2, 'tool_use.read', 'T' || number, $6 from found order by nth)
             select t.number, t.event_id, t.at, t.arrived_at, t.private, t.agent_id, t.agent_type,
               t.branch, t.checkout, t.observation, t.tool, t.host_tool_use_id, t.failed, t.files,
               t.input_bytes, t.output_bytes, t.input_sha256, t.output_sha256, t.input, t.output,
               p.project_id, p.uid as project_uid, p.key as project_key, p.name as project_name,
               s.host, s.host_session_id, a.name as author
             from found t
             join projects p on p.tenant_id = $1 and p.project_id = t.project_id
             join sessions s on s.tenant_id = $1 and s.session_id = t.session_id
             join principals a on a.tenant_id = $1 and a.principal_id = t.author_id
             order by t.nth",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(numbers)
        .bind(read.at)
        .bind(&read.detail)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows)
    }
}
