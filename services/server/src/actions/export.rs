//! Export: what the caller may read, as lines, written while they are sent (contract 20.4).

mod lines;

use std::sync::Arc;

use cairn_domain::Rejection;
use cairn_domain::kind::Kind;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::redact::safe;
use cairn_domain::scope::Scope;
use cairn_store::credentials::Noted;
use cairn_store::export::{
    ExportFilter, ExportSpan, Exported, ExportedEntry, ExportedSession, ExportedToolUse,
};
use cairn_store::purge::Span;
use cairn_store::{StoreError, TenantTx};
use cairn_wire::export::{ExportHead, ExportLine, ExportQuery, FORM, WorkEntryLine};
use cairn_wire::observations::Record;
use chrono::{DateTime, Utc};
use serde_json::json;
use serde_json::value::RawValue;

use super::Failure;
use super::projects::place_by_id;
use crate::app::App;
use crate::auth::Caller;
use crate::exports::OpenExport;
use lines::{Counted, Lines, json_line};
pub use lines::{Part, Parts};

/// The word for the caller's own records.
pub const ME: &str = "me";

/// Begins an export; the parts come while it is read. What the caller may not read is not in it:
/// others' private records are their authors' alone, whoever asks.
///
/// # Errors
/// `not_found` for an unknown author or project, `invalid_field`, a lacking scope, `rate_limited`
/// if the caller has one under way, `overloaded` if too many are, or an unavailable store.
pub async fn begin(app: &Arc<App>, caller: &Caller, query: &ExportQuery) -> Result<Parts, Failure> {
    let is_own = query.author.as_deref() == Some(ME);
    let scope = match is_own {
        true => Scope::MemoryRead,
        false => Scope::TenantAdmin,
    };
    caller.require(scope)?;
    let names = query.kinds.as_deref().unwrap_or_default().split(',');
    let mut kinds = Kind::parse_all("/kinds", names)?;
    let shows_evidence = caller.scopes.contains(Scope::EvidenceRead);
    if !shows_evidence {
        kinds.retain(|kind| *kind != Kind::ToolUse);
    }
    let open = app.exports.open(caller.tenant, caller.principal)?;
    let now = app.clock.now();
    let mut tx = app.store.tenant(caller.tenant, "export.begin").await?;
    let reader = place_by_id(&mut tx, caller, query.project.as_deref())
        .await?
        .reader;
    let author = match query.author.as_deref() {
        Some(ME) => Some(caller.principal),
        Some(name) => Some(tx.find_author(name).await?.ok_or(Rejection::NotFound)?),
        None => None,
    };
    let tenant = tx.get_tenant_name().await?;
    let whole = tx.whole_span().await?;
    tx.note(Noted {
        actor: Some(caller.principal),
        action: "export",
        target: query.author.as_deref().unwrap_or("*"),
        detail: json!({
            "project": query.project.as_deref().map(safe),
            "kinds": kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        }),
        at: now,
    })
    .await?;
    tx.commit().await?;
    let export = Export {
        app: Arc::clone(app),
        caller: caller.clone(),
        scope,
        filter: ExportFilter { author, kinds },
        reader,
        shows_evidence,
        whole,
        began_at: now,
        open,
    };
    let head = ExportHead {
        cairn_export: FORM,
        tenant,
        source: caller.tenant.uuid(),
        exported_at: now,
    };
    let (mut out, reading) = Lines::open(limits::EXPORT_TIME);
    tokio::spawn(async move {
        if let Err(failed) = export.write(&head, &mut out).await {
            tracing::warn!(error = %failed, "an export was cut off");
        }
        // Whoever sees the end of one may begin another.
        drop(export);
        drop(out);
    });
    Ok(reading)
}

/// An export under way.
struct Export {
    app: Arc<App>,
    caller: Caller,
    /// What the export is allowed by.
    scope: Scope,
    filter: ExportFilter,
    reader: Reader,
    shows_evidence: bool,
    whole: Span,
    began_at: DateTime<Utc>,
    open: OpenExport,
}

impl Export {
    /// A transaction of a caller whose rights have not ended meanwhile: whoever reads slowly could
    /// go on for hours.
    async fn begin(&self, name: &'static str) -> Result<TenantTx, StoreError> {
        let mut tx = self.app.store.tenant(self.caller.tenant, name).await?;
        let now = self.app.clock.now();
        match self.caller.may_still(&mut tx, self.scope, now).await? {
            true => Ok(tx),
            false => Err(StoreError::Refused("the credential ended".to_owned())),
        }
    }

    async fn write(&self, head: &ExportHead, out: &mut Lines) -> Result<(), StoreError> {
        out.send(vec![(None, json_line(head)?)]).await?;
        self.sessions(out).await?;
        if self.filter.kinds.contains(&Kind::ToolUse) {
            self.tool_uses(out).await?;
        }
        let (_, upto) = self.whole.positions;
        self.records(out, (0, upto), None).await?;
        // What was changed meanwhile has moved to a later position.
        let mut tx = self.begin("export.moved").await?;
        let (_, latest) = tx.whole_span().await?.positions;
        tx.commit().await?;
        self.records(out, (upto, latest), Some(self.began_at))
            .await?;
        out.end().await
    }

    async fn sessions(&self, out: &mut Lines) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            out.taken().await?;
            let turn = self.open.turn().await;
            let mut tx = self.begin("export.sessions").await?;
            let limit = limits::EXPORT_BATCH;
            let (filter, evidence) = (&self.filter, self.shows_evidence);
            let found = tx
                .export_sessions(filter, &self.reader, evidence, after, limit)
                .await?;
            tx.commit().await?;
            drop(turn);
            let lines = found.rows.into_iter();
            let lines =
                lines.map(|session| Ok((Some("session"), json_line(&session_line(session))?)));
            out.send(lines.collect::<Result<_, StoreError>>()?).await?;
            match found.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }

    async fn tool_uses(&self, out: &mut Lines) -> Result<(), StoreError> {
        let (mut after, upto) = self.whole.tool_uses;
        loop {
            out.taken().await?;
            let turn = self.open.turn().await;
            let mut tx = self.begin("export.tool_uses").await?;
            let limit = limits::EXPORT_BATCH;
            let found = tx
                .export_tool_uses(&self.filter, &self.reader, (after, upto), limit)
                .await?;
            tx.commit().await?;
            let Some(last) = found.last() else {
                return Ok(());
            };
            after = last.packed.id().0;
            let lines =
                tokio::task::spawn_blocking(|| found.into_iter().map(tool_use_line).collect());
            let lines: Result<_, StoreError> = joined(lines.await)?;
            drop(turn);
            out.send(lines?).await?;
        }
    }

    async fn records(
        &self,
        out: &mut Lines,
        (mut after, upto): (i64, i64),
        arrived_before: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        loop {
            let span = ExportSpan {
                after,
                upto,
                arrived_before,
            };
            out.taken().await?;
            let turn = self.open.turn().await;
            let mut tx = self.begin("export.records").await?;
            let limit = limits::EXPORT_BATCH;
            let batch = tx
                .export_records(&self.filter, &self.reader, span, limit)
                .await?;
            tx.commit().await?;
            let shows_evidence = self.shows_evidence;
            let lines = tokio::task::spawn_blocking(move || {
                let rows = batch.rows.into_iter();
                rows.map(|row| row_line(row, shows_evidence)).collect()
            });
            let lines: Result<_, StoreError> = joined(lines.await)?;
            drop(turn);
            out.send(lines?).await?;
            match batch.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }
}

fn joined<T>(done: Result<T, tokio::task::JoinError>) -> Result<T, StoreError> {
    done.map_err(|error| StoreError::Bug(error.into()))
}

fn session_line(session: ExportedSession) -> ExportLine {
    ExportLine {
        kind: "session".to_owned(),
        id: Some(session.uid.to_string()),
        project: session.project,
        project_name: Some(session.project_name),
        session: Some(session.session),
        host: Some(session.host),
        author: session.author,
        at: Some(session.started_at),
        ended_at: session.ended_at,
        end_reason: session.end_reason,
        source: session.source,
        model: session.model,
        ..ExportLine::default()
    }
}

fn tool_use_line(exported: ExportedToolUse) -> Result<Counted, StoreError> {
    let (turn, imported) = (exported.turn, exported.imported());
    let tool_use = exported.packed.unpack()?;
    let line = ExportLine::of_tool_use(tool_use, turn, imported);
    Ok((Some(Kind::ToolUse.name()), json_line(&line)?))
}

fn row_line(row: Exported, shows_evidence: bool) -> Result<Counted, StoreError> {
    let (kind, line) = match row {
        Exported::Record(record) => {
            let kind = record.kind().word();
            let record = Record::from(*record);
            let record = match shows_evidence {
                true => record,
                false => record.without_evidence(),
            };
            (kind, ExportLine::of_record(record))
        }
        Exported::Entry(entry) => (Kind::WorkEntry.name(), entry_line(*entry)),
    };
    Ok((Some(kind), json_line(&line)?))
}

fn entry_line(entry: ExportedEntry) -> ExportLine {
    let (hlc, after) = (entry.hlc(), entry.after());
    ExportLine {
        kind: Kind::WorkEntry.name().to_owned(),
        event_id: Some(entry.event_id),
        position: Some(entry.position),
        project: entry.project,
        project_name: Some(entry.project_name),
        session: entry.session,
        host: entry.host,
        author: entry.author,
        at: Some(entry.at),
        arrived_at: Some(entry.arrived_at),
        imported_author: entry.imported_author,
        work_entry: Some(WorkEntryLine {
            list: entry.list,
            // What stands in the log was written as JSON.
            fields: RawValue::from_string(entry.fields).ok(),
            action: entry.action,
            hlc: Some(hlc.to_string()),
            after: after.map(|hlc| hlc.to_string()),
            machine: Some(entry.machine).filter(|machine| !machine.is_empty()),
        }),
        ..ExportLine::default()
    }
}
