//! Searching tool uses: which are the newest, and what of a query each holds. What went in and came
//! out does not leave this file; that it was looked through is in the audit log.

use cairn_domain::filter::{ByAuthor, Filter, file_spellings};
use cairn_domain::ids::ToolUseId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::text::{Held, SearchTerms};
use cairn_domain::tool_use::{ListedToolUse, searched_text};
use sqlx::FromRow;

use super::row::unpacked;
use super::{EvidenceRead, readable};
use crate::records::row::project_keys;
use crate::{StoreError, TenantTx};

/// The newest tool uses that a filter lets pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestToolUses {
    /// The newest first.
    pub listed: Vec<ListedToolUse>,
    /// The highest number among those that were looked at.
    pub top: Option<ToolUseId>,
    /// Whether there are older ones that were not looked at.
    pub more: bool,
}

/// A tool use whose texts can be asked what they hold. That takes time: do it in a thread that
/// nobody waits for.
#[derive(Clone, Debug, FromRow)]
pub struct SearchedToolUse {
    number: i64,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl SearchedToolUse {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> ToolUseId {
        ToolUseId(self.number)
    }

    /// How much of a query its input and output hold together.
    ///
    /// # Errors
    /// `Inconsistent` if what is stored is no text of ours.
    pub fn holds(&self, terms: &SearchTerms) -> Result<Held, StoreError> {
        let text = |column, packed: &[u8]| {
            let odd = || StoreError::inconsistent("tool_uses", column, self.id());
            unpacked(packed)
                .map(|json| searched_text(&json))
                .ok_or_else(odd)
        };
        let (input, output) = (text("input", &self.input)?, text("output", &self.output)?);
        Ok(terms.held_by([input.as_str(), output.as_str()]))
    }
}

#[derive(FromRow)]
struct NewestColumns {
    number: i64,
    tool: String,
    host_session_id: String,
    project: String,
    author: String,
    at: chrono::DateTime<chrono::Utc>,
    is_wanted: bool,
}

impl TenantTx {
    /// The newest [`limits::SEARCHED_TOOL_USES`] of the tool uses that the reader may read, at most
    /// `top`, as far as a filter lets them pass. The read has its line in the audit log, in this
    /// transaction: commit it before anything that was found is shown.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn newest_tool_uses(
        &mut self,
        filter: &Filter,
        top: Option<ToolUseId>,
        reader: &Reader,
        read: &EvidenceRead,
    ) -> Result<NewestToolUses, StoreError> {
        let (own, author) = match &filter.author {
            None => (false, None),
            Some(ByAuthor::Me) => (true, None),
            Some(ByAuthor::Named(name)) => (false, Some(name.as_str())),
        };
        let files = filter.files.iter().flat_map(|file| file_spellings(file));
        let rows: Vec<NewestColumns> = sqlx::query_as(concat!(
            "with noted as (
               insert into audit (tenant_id, at, actor_id, action, target, detail)
               values ($1, $12, $2, 'tool_use.search', '*', $13))
             select t.number, t.tool, s.host_session_id, p.key as project, a.name as author, t.at,
               (not $6 or t.author_id = $2) and ($7::text is null or a.name = $7)
                 and ($8::text is null or $8 in (s.host_session_id, s.host || '/' || s.host_session_id))
                 and ($9::timestamptz is null or t.at >= $9)
                 and ($10::timestamptz is null or t.at < $10)
                 and ($11::text[] = '{}' or exists (
                   select from unnest(t.files) f (path), replace(f.path, '\\', '/') n (path),
                     unnest($11) w (path)
                   where n.path = w.path or starts_with(n.path, w.path || '/')
                     or right(n.path, length(w.path) + 1) = '/' || w.path)) as is_wanted
             from (select n.*
               from projects f cross join lateral (
                 select t.number, t.tool, t.session_id, t.author_id, t.project_id, t.at, t.files
                 from tool_uses t
                 where t.tenant_id = $1 and t.project_id = f.project_id
                   and ($4::bigint is null or t.number <= $4) and ",
            readable!(),
            "    order by t.number desc limit $5) n
               where f.tenant_id = $1 and ($3::int[] is null or f.project_id = any ($3))
               order by n.number desc limit $5) t
             join projects p on p.tenant_id = $1 and p.project_id = t.project_id
             join sessions s on s.tenant_id = $1 and s.session_id = t.session_id
             join principals a on a.tenant_id = $1 and a.principal_id = t.author_id
             order by t.number desc",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(top.map(|top| top.0))
        .bind(i64::from(limits::SEARCHED_TOOL_USES) + 1)
        .bind(own)
        .bind(author)
        .bind(filter.session.as_deref())
        .bind(filter.from)
        .bind(filter.until)
        .bind(files.collect::<Vec<_>>())
        .bind(read.at)
        .bind(&read.detail)
        .fetch_all(&mut *self.tx)
        .await?;
        let most = usize::try_from(limits::SEARCHED_TOOL_USES).unwrap_or(usize::MAX);
        let more = rows.len() > most;
        let top = rows.first().map(|row| ToolUseId(row.number));
        let wanted = rows.into_iter().take(most).filter(|row| row.is_wanted);
        let listed = wanted.map(|row| ListedToolUse {
            id: ToolUseId(row.number),
            tool: row.tool,
            session: row.host_session_id,
            project: row.project,
            author: row.author,
            at: row.at,
        });
        Ok(NewestToolUses {
            listed: listed.collect(),
            top,
            more,
        })
    }

    /// Those of these tool uses that the reader may read, in the order given, to be asked what
    /// they hold.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn searched_tool_uses(
        &mut self,
        ids: &[ToolUseId],
        reader: &Reader,
    ) -> Result<Vec<SearchedToolUse>, StoreError> {
        let numbers: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let rows = sqlx::query_as(concat!(
            "select t.number, t.input, t.output
             from unnest($4::bigint[]) with ordinality u (number, nth)
             join tool_uses t on t.tenant_id = $1 and t.number = u.number
             where ",
            readable!(),
            " order by u.nth",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(numbers)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows)
    }
}
