//! Tool uses: the original input and output of calls, by id. Each read is in the audit log, in the
//! transaction that reads.

use cairn_domain::Rejection;
use cairn_domain::ids::ToolUseId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::scope::Scope;
use cairn_domain::tool_use::{
    ToolUse, ToolUseName, ToolUses, render_tool_use_part, render_tool_uses,
};
use cairn_store::TenantTx;
use cairn_store::records::Deleted;
use cairn_store::tool_uses::{EvidenceRead, FoundToolUse, PackedToolUse};
use cairn_wire::tool_uses::{ToolUseBatch, ToolUseBatchAnswer, ToolUseQuery};
use serde_json::json;

use super::Failure;
use super::projects::place_by_id;
use crate::app::App;
use crate::auth::Caller;

/// Those of some tool uses that the caller may read, with the exact texts that were stored.
///
/// # Errors
/// `invalid_field` for what is no id, a lacking scope, an unknown project, or an unavailable
/// store.
pub async fn list(
    app: &App,
    caller: &Caller,
    batch: &ToolUseBatch,
) -> Result<ToolUseBatchAnswer, Failure> {
    caller.require(Scope::EvidenceRead)?;
    let names = batch.parse()?;
    let mut reading = Reading::begin(app, caller, &names, batch.project.as_deref()).await?;
    let packed = reading.read(app, usize::MAX, json!({})).await?;
    let missing = reading.missing(&names);
    let missing = missing.iter().map(ToString::to_string).collect();
    let items = unpack(packed, |uses| {
        Ok(uses.into_iter().map(Into::into).collect())
    });
    let items = items.await?;
    reading.tx.commit().await?;
    Ok(ToolUseBatchAnswer { items, missing })
}

/// The text of `get_tool_uses`: calls by id, a long one in parts.
///
/// # Errors
/// `invalid_input` naming the argument; otherwise as [`list`].
pub async fn render(app: &App, caller: &Caller, query: ToolUseQuery) -> Result<String, Failure> {
    caller.require(Scope::EvidenceRead)?;
    let project = query.project.as_deref();
    let mut reading = Reading::begin(app, caller, &query.names, project).await?;
    if query.part.is_some() && reading.found.len() > 1 {
        let ids = reading.found.iter().map(|found| found.id.to_string());
        let ids = ids.collect::<Vec<_>>().join(", ");
        return Err(Rejection::invalid_input("part", &format!("only with one of {ids}")).into());
    }
    let detail = json!({"part": query.part.unwrap_or(1)});
    let packed = reading.read(app, limits::TOOL_USES_SHOWN, detail).await?;
    let (count, missing) = (reading.found.len(), reading.missing(&query.names));
    let text = unpack(packed, move |shown| match (query.part, shown.as_slice()) {
        (Some(part), [one]) => render_tool_use_part(one, part),
        (_, shown) => Ok(render_tool_uses(ToolUses {
            shown,
            found: count,
            missing: &missing,
        })),
    });
    // A part that the call does not have drops the transaction: then nothing was read.
    let text = text.await?;
    reading.tx.commit().await?;
    Ok(text)
}

/// A transaction that reads tool uses and writes that down.
struct Reading {
    tx: TenantTx,
    reader: Reader,
    found: Vec<FoundToolUse>,
}

impl Reading {
    async fn begin(
        app: &App,
        caller: &Caller,
        names: &[ToolUseName],
        project: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut tx = app.store.tenant(caller.tenant, "tool_uses.read").await?;
        let reader = place_by_id(&mut tx, caller, project).await?.reader;
        let found = tx.find_tool_uses(names, &reader).await?;
        Ok(Self { tx, reader, found })
    }

    /// Reads the first of what was found. One that was deleted since is not found any more.
    async fn read(
        &mut self,
        app: &App,
        most: usize,
        detail: serde_json::Value,
    ) -> Result<Vec<PackedToolUse>, Failure> {
        let ids: Vec<ToolUseId> = self.found.iter().map(|found| found.id).take(most).collect();
        let read = EvidenceRead {
            at: app.clock.now(),
            detail,
        };
        let packed = self.tx.read_tool_uses(&ids, &self.reader, &read).await?;
        let is_read = |id| packed.iter().any(|packed| packed.id() == id);
        self.found
            .retain(|found| !ids.contains(&found.id) || is_read(found.id));
        Ok(packed)
    }

    /// The names of which nothing was found.
    fn missing(&self, names: &[ToolUseName]) -> Vec<ToolUseName> {
        let is_found = |nth| self.found.iter().any(|found| found.names.contains(&nth));
        let names = names.iter().enumerate();
        let missing = names.filter(|(nth, _)| !is_found(*nth));
        missing.map(|(_, name)| name.clone()).collect()
    }
}

/// What is made of the texts that were read, in a thread that nobody waits for.
async fn unpack<T: Send + 'static>(
    packed: Vec<PackedToolUse>,
    make: impl FnOnce(Vec<ToolUse>) -> Result<T, Rejection> + Send + 'static,
) -> Result<T, Failure> {
    let made = tokio::task::spawn_blocking(move || {
        let unpacked = packed.into_iter().map(PackedToolUse::unpack);
        let uses: Vec<ToolUse> = unpacked.collect::<Result<_, _>>()?;
        make(uses).map_err(Failure::from)
    });
    made.await.map_err(|e| Failure::fault(e.to_string()))?
}

/// Deletes a tool use for good. Doing it again is no error.
///
/// # Errors
/// `not_found` if it never was or is not the caller's to see; `insufficient_scope` if somebody
/// else made the call and the caller is no admin.
pub async fn delete(app: &App, caller: &Caller, id: ToolUseId) -> Result<(), Failure> {
    caller.require(Scope::MemoryWrite)?;
    let mut tx = app.store.tenant(caller.tenant, "tool_uses.delete").await?;
    let place = place_by_id(&mut tx, caller, None).await?;
    let (is_admin, now) = (caller.is_admin(), app.clock.now());
    match tx.delete_tool_use(id, &place.reader, is_admin, now).await? {
        Deleted::Done => {
            tx.commit().await?;
            Ok(())
        }
        Deleted::NotFound => Err(Rejection::NotFound.into()),
        Deleted::Forbidden => Err(Rejection::InsufficientScope(Scope::TenantAdmin).into()),
    }
}
