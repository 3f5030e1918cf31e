//! What has changed since a position, page by page. As it happens it is told by `streams/`.

use cairn_domain::limits;
use cairn_domain::scope::Scope;
use cairn_store::changes::{Room, Stands, Told, Whose};
use cairn_wire::changes::{
    ChangeItem, ChangeOp, ChangedProject, ChangedRecord, ChangesAnswer, ChangesAsk,
};

use super::Failure;
use super::projects::place;
use super::work_state::history_item;
use crate::app::App;
use crate::auth::Caller;

/// What the caller may read of what has changed after a position.
///
/// # Errors
/// `position_unknown`; as [`place`]; a lacking scope or an unavailable store.
pub async fn list(app: &App, caller: &Caller, ask: &ChangesAsk) -> Result<ChangesAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "changes.list").await?;
    let reach = tx.reach_of_changes().await?;
    let reader = place(&mut tx, caller, ask.project.as_deref()).await?.reader;
    let room = Room {
        changes: usize::try_from(ask.limit).unwrap_or(usize::MAX),
        bytes: limits::CHANGES_BYTES,
    };
    let whose = Whose::Reader(&reader);
    let found = tx.changes(reach, ask.since.after, room, whose).await?;
    tx.commit().await?;
    let horizon = &found.horizon;
    ask.since.check(horizon.latest, &horizon.epoch)?;
    let evidence = caller.view().evidence;
    let told = found.told(&reader);
    let items = told.map(|(position, told)| item(position, told.clone(), evidence));
    Ok(ChangesAnswer {
        items: items.collect::<Result<_, _>>()?,
        next: found.next,
        latest: found.horizon.latest,
        epoch: found.horizon.epoch,
    })
}

/// A change as it is sent to a caller who may, or may not, read tool uses.
///
/// # Errors
/// A fault of ours, if what is stored cannot be read.
pub fn item(position: i64, told: Told, evidence: bool) -> Result<ChangeItem, Failure> {
    let op = match told.now {
        Some(_) => ChangeOp::Upsert,
        None => ChangeOp::Delete,
    };
    let record = told.now.map(record).transpose()?;
    Ok(ChangeItem {
        position,
        op,
        kind: told.kind.word().to_owned(),
        id: told.id,
        event_id: told.event_id,
        project: told.project,
        author: told.author,
        at: told.at,
        record: match evidence {
            true => record,
            false => record.map(ChangedRecord::without_evidence),
        },
    })
}

fn record(now: Stands) -> Result<ChangedRecord, Failure> {
    Ok(match now {
        Stands::Record(record) => ChangedRecord::Record(Box::new((*record).into())),
        Stands::WorkEntry(entry) => ChangedRecord::WorkEntry(history_item(entry)?),
        Stands::Project(project) => ChangedRecord::Project(ChangedProject {
            id: project.id,
            key: project.key,
            name: project.name,
            merged_into: project.merged_into,
        }),
    })
}
