//! Storing one observation that somebody hands over.

use cairn_domain::Rejection;
use cairn_domain::event::Origin;
use cairn_domain::ids::RecordId;
use cairn_domain::record::Record;
use cairn_domain::scope::Scope;
use cairn_store::events::{EventBatch, EventOutcome, PreparedEvent};
use cairn_wire::observations::{Given, ObservationWrite};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::actions::events::digest;
use crate::actions::projects::{place, project_key, widest_reader};
use crate::actions::{Attempts, Failure, note_quota};
use crate::app::App;
use crate::auth::Caller;
use crate::rates::take_events;

const STAYS_DELETED: &str = "what this event id stored was deleted, and stays so";

/// A record that a call stored, or had stored before.
#[derive(Debug)]
pub struct Added {
    /// The record as it stands.
    pub record: Record,
    /// Whether the event id was stored before with other content; it changed nothing.
    pub event_id_reused: bool,
}

/// Stores an observation, unless its event id was stored before.
///
/// # Errors
/// `invalid_field`, `empty_record`, `event_id_reused`, `conflict` for one that was deleted since;
/// a project that cannot be told, a lacking scope, events that come too fast, a quota that is used
/// up, or an unavailable store.
pub async fn add(
    app: &App,
    caller: &Caller,
    write: ObservationWrite,
    event_id: Option<Uuid>,
) -> Result<Added, Failure> {
    caller.require(Scope::MemoryWrite)?;
    let arrived_at = app.clock.now();
    take_events(app, caller, 1).await?;
    let _turn = app.store.turn(caller.tenant).await?;
    let mut tx = app
        .store
        .tenant(caller.tenant, "observations.place")
        .await?;
    let found = place(&mut tx, caller, write.around.project.as_deref()).await?;
    tx.commit().await?;
    let given = Given {
        event_id: event_id.unwrap_or_else(Uuid::now_v7),
        project: project_key(&found, caller)?,
        session: caller.session.clone(),
        visibility: caller.visibility,
        arrived_at,
        digest: digest("observation", &write.content()),
    };
    let origin = write.origin();
    let draft = write.parse(given)?;
    let preparing = tokio::task::spawn_blocking(move || PreparedEvent::of(draft));
    let event = preparing
        .await
        .map_err(|e| Failure::fault(e.to_string()))??;
    let mut attempts = Attempts::default();
    loop {
        match append(app, caller, &event, origin, arrived_at).await {
            Err(failure) if attempts.go_on_after(&failure).await => {}
            Err(failure) => {
                note_quota(app, &failure);
                return Err(failure);
            }
            done => return done,
        }
    }
}

async fn append(
    app: &App,
    caller: &Caller,
    event: &PreparedEvent,
    origin: Origin,
    arrived_at: DateTime<Utc>,
) -> Result<Added, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "observations.add").await?;
    let reader = widest_reader(&mut tx, caller).await?;
    let batch = EventBatch {
        author: caller.principal,
        projects: &reader.projects,
        arrived_at,
        origin,
        events: &[event],
        live: None,
    };
    let recorded = tx.record_events(&batch).await?;
    let (id, event_id_reused) = match recorded.outcomes.into_iter().next() {
        Some(EventOutcome::Stored { id }) => (id, false),
        Some(EventOutcome::Duplicate { id, differs }) => (id, differs),
        Some(EventOutcome::Deleted) => {
            return Err(Rejection::Conflict(STAYS_DELETED.to_owned()).into());
        }
        Some(EventOutcome::ReusedByAnother) | None => return Err(Rejection::EventIdReused.into()),
    };
    // The caller's own event may have been something else, a tool use or an entry of a list.
    let id: Option<RecordId> = id.and_then(|id| id.parse().ok());
    let id = id.ok_or(Rejection::EventIdReused)?;
    let mut records = tx.get_records(&[id], &reader).await?;
    let record = records.pop().ok_or(Rejection::EventIdReused)?;
    tx.commit().await?;
    Ok(Added {
        record,
        event_id_reused,
    })
}
