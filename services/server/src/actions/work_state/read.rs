//! Reading what lists say, and how they came to say it.

use cairn_domain::room::Room;
use cairn_domain::scope::Scope;
use cairn_domain::work_state::{Lines, render_read};
use cairn_domain::{Rejection, context::Zone, limits};
use cairn_store::work_state::{HistoryEntry, WorkPick};
use cairn_wire::work_state::{
    HistoryAnswer, HistoryItem, HistoryQuery, WorkAnswer, WorkList, WorkQuery,
};

use crate::actions::Failure;
use crate::actions::projects::place;
use crate::app::App;
use crate::auth::Caller;

/// Entries of a page of the history, by default.
const PAGE: u32 = 50;

/// What the lists of a project say.
///
/// # Errors
/// As [`place`]; a lacking scope or an unavailable store.
pub async fn read(app: &App, caller: &Caller, query: &WorkQuery) -> Result<WorkAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "work_state.read").await?;
    let place = place(&mut tx, caller, query.project.as_deref()).await?;
    let list = query.list.as_deref().map(str::trim);
    let pick = WorkPick {
        projects: &place.reader.projects,
        project: place.project.as_ref().map(|project| project.id),
        list: list.filter(|list| !list.is_empty()),
        closed: query.include_closed,
    };
    // Read before the lists: what comes in between is shown, and not counted as shown.
    let hlc = tx.newest_work_entry(&place.reader.projects).await?;
    let state = tx.work_state(pick).await?;
    tx.commit().await?;
    let now = app.clock.now();
    let project = place.name().to_owned();
    let which = Lines {
        closed: query.include_closed,
        authors: true,
    };
    let room = Room::units(limits::WORK_READ_UNITS);
    let text = render_read(&project, &state, which, room).fill(now, Zone::UTC);
    let lists = state.lists.iter().map(|list| WorkList::of(list, now));
    Ok(WorkAnswer {
        project,
        lists: lists.collect(),
        more_lines: state.unread_lines,
        hlc: hlc.map(|hlc| hlc.to_string()),
        text,
        snapshot: query.snapshot.then_some(state),
    })
}

/// A page of a project's entries, in the order of the fold.
///
/// # Errors
/// `invalid_cursor`, `invalid_field`; as [`read`].
pub async fn history(
    app: &App,
    caller: &Caller,
    query: &HistoryQuery,
) -> Result<HistoryAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    let after = query.after()?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=limits::HISTORY_ENTRIES).contains(&limit) {
        let allowed = format!("1 to {}", limits::HISTORY_ENTRIES);
        return Err(Rejection::invalid_field("/limit", allowed).into());
    }
    let mut tx = app
        .store
        .tenant(caller.tenant, "work_state.history")
        .await?;
    let place = place(&mut tx, caller, query.project.as_deref()).await?;
    let list = query.list.as_deref().map(str::trim);
    let list = list.filter(|list| !list.is_empty());
    // One more than asked for tells whether there is another page.
    let entries = tx
        .work_history(&place.reader.projects, list, after, limit + 1)
        .await?;
    tx.commit().await?;
    let more = entries.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    let mut items = Vec::with_capacity(entries.len());
    for entry in entries {
        items.push(history_item(entry)?);
    }
    items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_cursor = items.last().filter(|_| more).map(HistoryItem::cursor);
    Ok(HistoryAnswer { items, next_cursor })
}

/// An entry as it is sent.
///
/// # Errors
/// A fault of ours, if what is stored cannot be read.
pub fn history_item(entry: HistoryEntry) -> Result<HistoryItem, Failure> {
    Ok(HistoryItem {
        event_id: entry.event_id,
        hlc: entry.place().hlc.to_string(),
        after: entry.after().map(|hlc| hlc.to_string()),
        fields: serde_json::from_str(&entry.fields).map_err(|e| Failure::fault(e.to_string()))?,
        project: entry.project,
        list: entry.list,
        action: entry.action,
        at: entry.at,
        arrived_at: entry.arrived_at,
        author: entry.author,
        session: entry.session,
    })
}
