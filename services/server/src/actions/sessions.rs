//! Sessions: which there were in a project, and how much of each the caller may read.

use cairn_domain::Rejection;
use cairn_domain::scope::Scope;
use cairn_store::sessions::{ListedSession, SessionPick};
use cairn_wire::session::SessionName;
use cairn_wire::sessions::{SessionAsk, SessionCounts, SessionItem, SessionList};

use super::Failure;
use super::pages::Paging;
use super::projects::{place, place_by_id};
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "sessions";

/// A page of a project's sessions, the newest first.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; as [`place`]; a lacking scope or an unavailable
/// store.
pub async fn list(app: &App, caller: &Caller, ask: &SessionAsk) -> Result<SessionList, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "sessions.list").await?;
    let place = place(&mut tx, caller, ask.project.as_deref()).await?;
    let named = place.project.as_ref().map(|project| project.id.uuid);
    let conditions = (named, &ask.author, &ask.period);
    let paging = Paging::of(app, caller, LIST, &conditions, &ask.page);
    let pick = SessionPick {
        author: ask.author.as_ref(),
        from: ask.period.from,
        until: ask.period.until,
        evidence: caller.view().evidence,
        after: paging.after()?,
        limit: paging.limit(),
    };
    let mut found = tx.list_sessions(&pick, &place.reader).await?;
    tx.commit().await?;
    let next_cursor = paging.cut(&mut found, |session| session.place);
    let items = found.into_iter().map(|session| item(caller, session));
    Ok(SessionList {
        items: items.collect(),
        next_cursor,
    })
}

/// The session of this id, or the newest that the host gave it.
///
/// # Errors
/// `not_found` if there is none of which the caller may read anything; as [`place_by_id`]; a
/// lacking scope or an unavailable store.
pub async fn get(app: &App, caller: &Caller, id: &str) -> Result<SessionItem, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "sessions.get").await?;
    let place = place_by_id(&mut tx, caller, None).await?;
    let evidence = caller.view().evidence;
    let found = tx.get_session(id.trim(), evidence, &place.reader).await?;
    tx.commit().await?;
    let found = found.ok_or(Rejection::NotFound)?;
    Ok(item(caller, found))
}

fn item(caller: &Caller, session: ListedSession) -> SessionItem {
    let name = SessionName {
        host: session.host.clone(),
        id: session.host_session_id.clone(),
    };
    SessionItem {
        id: session.uid,
        key: name.to_header(),
        host: session.host,
        session: session.host_session_id,
        project: session.project.key,
        author: session.author,
        started_at: session.started_at,
        ended_at: session.ended_at,
        end_reason: session.end_reason,
        source: session.source,
        model: session.model,
        counts: SessionCounts {
            observations: session.observations,
            summaries: session.summaries,
            prompts: session.prompts,
            tool_uses: caller.view().evidence.then_some(session.tool_uses),
        },
    }
}
