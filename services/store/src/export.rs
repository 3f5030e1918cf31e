//! Export: what a caller may read, in batches in a fixed order, up to a bound that is set when it
//! begins (contract 20.4). Each batch is a transaction of its own, so none stays open for long.

use cairn_domain::hlc::Hlc;
use cairn_domain::ids::{PrincipalId, RecordId, RecordKind};
use cairn_domain::kind::Kind;
use cairn_domain::project::Reader;
use cairn_domain::record::{Imported, Record};
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use crate::credentials::Noted;
use crate::records::row::{project_keys, readable};
use crate::sessions::known;
use crate::tool_uses::PackedToolUse;
use crate::work_state::hlc;
use crate::{StoreError, TenantTx};

/// What an export holds, beside what its reader may not read.
#[derive(Clone, Debug)]
pub struct ExportFilter {
    /// Of this author alone.
    pub author: Option<PrincipalId>,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
}

/// A batch of sessions.
#[derive(Clone, Debug, Default)]
pub struct ExportedSessions {
    /// In the order of their numbers.
    pub rows: Vec<ExportedSession>,
    /// The place after which the next batch goes on; none after the last.
    pub next: Option<i64>,
}

/// A session that was looked at.
#[derive(FromRow)]
struct LookedAt {
    #[sqlx(flatten)]
    session: ExportedSession,
    is_known: bool,
}

/// A session as it is exported.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct ExportedSession {
    #[sqlx(rename = "session_id")]
    place: i64,
    /// Its id.
    pub uid: Uuid,
    /// The project's key.
    pub project: String,
    /// The project's name.
    pub project_name: String,
    /// The host.
    pub host: String,
    /// The host's id of it.
    #[sqlx(rename = "host_session_id")]
    pub session: String,
    /// Its author's handle, or `key:<key id>`.
    pub author: String,
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

/// A tool use as it is exported. Unpacking it takes time.
#[derive(Clone, Debug, FromRow)]
pub struct ExportedToolUse {
    /// The tool use.
    #[sqlx(flatten)]
    pub packed: PackedToolUse,
    /// Its turn in its session.
    pub turn: i32,
    /// Whether it was imported.
    is_imported: bool,
    imported_id: Option<String>,
    imported_author: Option<String>,
}

impl ExportedToolUse {
    /// What an import kept of the place it came from.
    #[must_use]
    pub fn imported(&self) -> Option<Imported> {
        self.is_imported.then(|| Imported {
            id: self.imported_id.clone(),
            author: self.imported_author.clone(),
        })
    }
}

/// An entry of a work list as it is exported.
#[derive(Clone, Debug, FromRow)]
pub struct ExportedEntry {
    /// Its position.
    pub position: i64,
    /// The client's id of the event.
    pub event_id: Uuid,
    /// The project's key.
    pub project: String,
    /// The project's name.
    pub project_name: String,
    /// The host's id of its session.
    pub session: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// Its author's handle, or `key:<key id>`.
    pub author: String,
    /// The machine it was made on; empty if none was named.
    pub machine: String,
    /// Its list.
    pub list: String,
    /// The exact JSON of its fields.
    pub fields: String,
    /// What it did beside writing.
    pub action: Option<String>,
    hlc_ms: i64,
    hlc_counter: i64,
    after_ms: Option<i64>,
    after_counter: Option<i64>,
    /// When it was made.
    pub at: DateTime<Utc>,
    /// When it arrived.
    pub arrived_at: DateTime<Utc>,
    /// Its author where it was imported from, if nobody here has that handle.
    pub imported_author: Option<String>,
}

impl ExportedEntry {
    /// Its moment.
    #[must_use]
    pub fn hlc(&self) -> Hlc {
        hlc(self.hlc_ms, self.hlc_counter)
    }

    /// The highest moment its writer had seen.
    #[must_use]
    pub fn after(&self) -> Option<Hlc> {
        let both = self.after_ms.zip(self.after_counter);
        both.map(|(ms, counter)| hlc(ms, counter))
    }
}

/// What has a position.
#[derive(Clone, Debug)]
pub enum Exported {
    /// A record.
    Record(Box<Record>),
    /// An entry of a work list.
    Entry(Box<ExportedEntry>),
}

/// A batch of what has positions.
#[derive(Clone, Debug, Default)]
pub struct ExportBatch {
    /// Ascending by position.
    pub rows: Vec<Exported>,
    /// The position after which the next batch goes on; none after the last.
    pub next: Option<i64>,
}

/// Positions that a batch looks at.
#[derive(Clone, Copy, Debug)]
pub struct ExportSpan {
    /// Beyond this.
    pub after: i64,
    /// Up to this.
    pub upto: i64,
    /// Only what arrived before this: what was changed since is found at its new position.
    pub arrived_before: Option<DateTime<Utc>>,
}

impl TenantTx {
    /// Writes down in the audit log that something of note was asked for.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn note(&mut self, noted: Noted<'_>) -> Result<(), StoreError> {
        let Noted {
            actor,
            action,
            target,
            detail,
            at,
        } = noted;
        self.append_audit(actor, action, target, detail, at).await
    }

    /// Looks at up to `limit` sessions in the order of their numbers, those after a place, and
    /// gives those that the reader may know of, as in a list; `evidence` says whether they may read
    /// tool uses at all.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn export_sessions(
        &mut self,
        filter: &ExportFilter,
        reader: &Reader,
        evidence: bool,
        after: i64,
        limit: u32,
    ) -> Result<ExportedSessions, StoreError> {
        let looked_at: Vec<LookedAt> = sqlx::query_as(concat!(
            "select s.session_id, s.uid, p.key as project, p.name as project_name, s.host,
               s.host_session_id, a.name as author, s.started_at, s.ended_at, s.end_reason,
               s.source, s.model, ",
            known!(),
            "  as is_known
             from sessions s
             join projects p on p.tenant_id = $1 and p.project_id = s.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = s.author_id
             where s.tenant_id = $1 and s.session_id > $6
               and ($5::int is null or s.author_id = $5)
               and ($3::int[] is null or s.project_id = any ($3))
             order by s.session_id limit $7",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(evidence)
        .bind(filter.author.map(|author| author.key))
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?;
        let full = u32::try_from(looked_at.len()).is_ok_and(|found| found == limit);
        let next = looked_at.last().map(|last| last.session.place);
        let known = looked_at.into_iter().filter(|row| row.is_known);
        Ok(ExportedSessions {
            rows: known.map(|row| row.session).collect(),
            next: next.filter(|_| full),
        })
    }

    /// Tool uses that the reader may read, in the order of their numbers, those after one and up to
    /// another, at most `limit`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn export_tool_uses(
        &mut self,
        filter: &ExportFilter,
        reader: &Reader,
        (after, upto): (i64, i64),
        limit: u32,
    ) -> Result<Vec<ExportedToolUse>, StoreError> {
        Ok(sqlx::query_as(
            "select t.number, t.event_id, t.at, t.arrived_at, t.private, t.agent_id, t.agent_type,
               t.branch, t.checkout, t.observation, t.tool, t.host_tool_use_id, t.failed, t.files,
               t.input_bytes, t.output_bytes, t.input_sha256, t.output_sha256, t.input, t.output,
               p.project_id, p.uid as project_uid, p.key as project_key, p.name as project_name,
               s.host, s.host_session_id, a.name as author, t.turn,
               i.event_id is not null as is_imported, i.imported_id, i.imported_author
             from tool_uses t
             join projects p on p.tenant_id = $1 and p.project_id = t.project_id
             join sessions s on s.tenant_id = $1 and s.session_id = t.session_id
             join principals a on a.tenant_id = $1 and a.principal_id = t.author_id
             left join imported i on i.tenant_id = $1 and i.event_id = t.event_id
             where t.tenant_id = $1 and t.number > $4 and t.number <= $5
               and ($3::int[] is null or t.project_id = any ($3))
               and ($6::int is null or t.author_id = $6)
               and (t.author_id = $2 or (not t.private
                 and (select coalesce(w.settings ->> 'evidence_visibility', 'team') = 'team'
                   from tenants w where w.tenant_id = $1)))
             order by t.number limit $7",
        )
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(after)
        .bind(upto)
        .bind(filter.author.map(|author| author.key))
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?)
    }

    /// Records and work entries that the reader may read, in the order of their positions, at most
    /// `limit` of those in a span.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn export_records(
        &mut self,
        filter: &ExportFilter,
        reader: &Reader,
        span: ExportSpan,
        limit: u32,
    ) -> Result<ExportBatch, StoreError> {
        let records = filter.kinds.iter().filter(|kind| kind.record().is_some());
        let records: Vec<i16> = records.map(|kind| kind.code()).collect();
        let places: Vec<(i64, i16, i64)> = sqlx::query_as(concat!(
            "select * from (
               (select r.position, r.kind, r.number from records r
                where r.tenant_id = $1 and r.position > $4 and r.position <= $5
                  and r.kind = any ($6) and ($7::int is null or r.author_id = $7) and ",
            readable!("r"),
            "   order by r.position limit $9)
               union all
               (select w.position, 7::smallint, w.position from work_entries w
                where w.tenant_id = $1 and w.position > $4 and w.position <= $5
                  and $8 and ($7::int is null or w.author_id = $7)
                  and ($3::int[] is null or w.project_id = any ($3))
                order by w.position limit $9)) u
             order by 1 limit $9",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(span.after)
        .bind(span.upto)
        .bind(records)
        .bind(filter.author.map(|author| author.key))
        .bind(filter.kinds.contains(&Kind::WorkEntry))
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?;
        let full = u32::try_from(places.len()).is_ok_and(|found| found == limit);
        let next = places.last().map(|last| last.0).filter(|_| full);
        let ids = places.iter().filter_map(|(_, kind, number)| {
            let kind = RecordKind::from_code(*kind)?;
            Some(RecordId {
                kind,
                number: *number,
            })
        });
        let ids: Vec<RecordId> = ids.collect();
        let entries = places
            .iter()
            .filter(|place| place.1 == Kind::WorkEntry.code());
        let entries: Vec<i64> = entries.map(|place| place.0).collect();
        let mut rows: Vec<(i64, Exported)> = Vec::with_capacity(places.len());
        for record in self.get_records(&ids, reader).await? {
            rows.push((record.position, Exported::Record(Box::new(record))));
        }
        for entry in self.export_entries(&entries).await? {
            rows.push((entry.position, Exported::Entry(Box::new(entry))));
        }
        if let Some(before) = span.arrived_before {
            rows.retain(|(_, row)| match row {
                Exported::Record(record) => record.arrived_at < before,
                Exported::Entry(_) => false,
            });
        }
        rows.sort_by_key(|(position, _)| *position);
        Ok(ExportBatch {
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            next,
        })
    }

    async fn export_entries(
        &mut self,
        positions: &[i64],
    ) -> Result<Vec<ExportedEntry>, StoreError> {
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        Ok(sqlx::query_as(
            "select w.position, w.event_id, p.key as project, p.name as project_name,
               s.host_session_id as session, s.host, a.name as author, w.machine, w.list, w.fields,
               w.action, w.hlc_ms, w.hlc_counter, w.after_ms, w.after_counter, w.at, w.arrived_at,
               i.imported_author
             from work_entries w
             join projects p on p.tenant_id = $1 and p.project_id = w.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = w.author_id
             left join sessions s on s.tenant_id = $1 and s.session_id = w.session_id
             left join imported i on i.tenant_id = $1 and i.event_id = w.event_id
             where w.tenant_id = $1 and w.position = any ($2)",
        )
        .bind(self.tenant.key())
        .bind(positions)
        .fetch_all(&mut *self.tx)
        .await?)
    }
}
