//! Appending an entry, and what its writer is told.

use cairn_domain::event::{EventBody, EventDraft, Origin, SessionKey, Visibility};
use cairn_domain::hex::hex;
use cairn_domain::hlc::Hlc;
use cairn_domain::plain::one_line;
use cairn_domain::project::{ProjectKey, ProjectSet};
use cairn_domain::room::Room;
use cairn_domain::scope::Scope;
use cairn_domain::work_state::{Action, Holder, WorkEntryDraft, WorkState, render_written};
use cairn_domain::{Rejection, context::Zone, limits};
use cairn_store::events::{EventBatch, EventOutcome, LiveWriter, PreparedEvent};
use cairn_store::work_state::{StoredEntry, WorkPick};
use cairn_store::{StoreError, TenantTx};
use cairn_wire::work_state::{WorkTask, WorkWrite, WorkWritten};
use chrono::{DateTime, Utc};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::actions::events::digest;
use crate::actions::projects::{place, project_key, widest_reader};
use crate::actions::{Attempts, Failure, note_quota};
use crate::app::App;
use crate::auth::Caller;
use crate::rates::take_events;

/// Appends an entry, with what it does to the claim on its task.
///
/// # Errors
/// `invalid_field`, `claimed`, `event_id_reused`, a project that cannot be told, a lacking scope,
/// events that come too fast, a quota that is used up, or an unavailable store.
pub async fn write(
    app: &App,
    caller: &Caller,
    write: WorkWrite,
    event_id: Option<Uuid>,
) -> Result<WorkWritten, Failure> {
    caller.require(Scope::WorkWrite)?;
    let entry = write.parse()?;
    let session = write.session.map(|session| session.parse()).transpose()?;
    let arrived_at = app.clock.now();
    take_events(app, caller, 1).await?;
    let made = Made {
        entry,
        session: session.or_else(|| caller.session.clone()),
        made_at: write.at,
        sent_at: write.sent_at,
        event_id: write.event_id.or(event_id).unwrap_or_else(Uuid::now_v7),
        arrived_at,
    };
    let turn = app.store.turn(caller.tenant).await?;
    let mut attempts = Attempts::default();
    let appended = loop {
        match append(app, caller, write.project.as_deref(), &made).await {
            Err(failure) if attempts.go_on_after(&failure).await => {}
            Err(failure) => {
                note_quota(app, &failure);
                return Err(failure);
            }
            Ok(done) => break done,
        }
    };
    // No other writer waits for what is only read.
    drop(turn);
    let can_read = caller.scopes.contains(Scope::MemoryRead);
    let shown = match can_read {
        true => list_after(app, caller, &appended.stored).await,
        false => None,
    };
    Ok(appended.written(&made, shown))
}

/// An entry with where and when it was made.
struct Made {
    entry: WorkEntryDraft,
    session: Option<SessionKey>,
    made_at: Option<DateTime<Utc>>,
    sent_at: Option<DateTime<Utc>>,
    event_id: Uuid,
    arrived_at: DateTime<Utc>,
}

/// An entry that is stored.
struct Appended {
    stored: StoredEntry,
    holder: Holder,
    event_id_reused: bool,
}

async fn append(
    app: &App,
    caller: &Caller,
    project: Option<&str>,
    made: &Made,
) -> Result<Appended, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "work_state.write").await?;
    let found = place(&mut tx, caller, project).await?;
    let key = project_key(&found, caller)?;
    let holder = holder(caller, made.session.as_ref());
    let event_id_reused = record(&mut tx, caller, made, key, &holder).await?;
    // A repeat is answered for what was stored then, whatever it says now.
    let stored = tx.find_work_entry(made.event_id).await?;
    let stored = stored.ok_or(Rejection::EventIdReused)?;
    tx.commit().await?;
    Ok(Appended {
        stored,
        holder,
        event_id_reused,
    })
}

/// What the list of a stored entry says now, and the highest moment of its project. The entry is
/// committed by then: an answer without the list is better than none.
async fn list_after(app: &App, caller: &Caller, stored: &StoredEntry) -> Option<Shown> {
    let read = async {
        let own = ProjectSet::Only(vec![stored.project.id]);
        let mut tx = app.store.tenant(caller.tenant, "work_state.after").await?;
        // Read before the list: what comes in between is shown, and not counted as shown.
        let newest = tx.newest_work_entry(&own).await?;
        let state = tx
            .work_state(WorkPick {
                projects: &own,
                project: Some(stored.project.id),
                list: Some(&stored.list),
                closed: false,
            })
            .await?;
        tx.commit().await?;
        Ok::<_, StoreError>(Shown { state, newest })
    };
    let read = read.await;
    if let Err(error) = &read {
        tracing::warn!(%error, "a list was written to but could not be read");
    }
    read.ok()
}

/// What a caller who may read is shown after a write.
struct Shown {
    state: WorkState,
    newest: Option<Hlc>,
}

/// Stores the entry, unless it was stored before; whether it was, with other content.
async fn record(
    tx: &mut TenantTx,
    caller: &Caller,
    made: &Made,
    project: ProjectKey,
    holder: &Holder,
) -> Result<bool, Failure> {
    let reader = widest_reader(tx, caller).await?;
    let made_at = made.made_at.filter(|at| at.timestamp() >= 0);
    // What was made just now is on the service's clock already.
    let sent_at = made
        .sent_at
        .filter(|at| made_at.is_some() && at.timestamp() >= 0);
    // As a spooled one of the same content is counted.
    let list = json!(made.entry.list);
    let body = format!("{{\"list\":{list},\"fields\":{}}}", made.entry.fields);
    let draft = EventDraft {
        event_id: made.event_id,
        at: made_at.unwrap_or(made.arrived_at).min(made.arrived_at),
        project,
        session: made.session.clone(),
        agent_id: None,
        agent_type: None,
        branch: None,
        checkout: None,
        visibility: Visibility::Team,
        digest: digest("work_entry", &body),
        body: EventBody::WorkEntry {
            entry: made.entry.clone(),
            made_at: made_at.unwrap_or(made.arrived_at),
            sent_at: sent_at.unwrap_or(made.arrived_at),
            machine: None,
        },
    };
    let event = PreparedEvent::of(draft)?;
    let batch = EventBatch {
        author: caller.principal,
        projects: &reader.projects,
        arrived_at: made.arrived_at,
        origin: Origin::Api,
        events: &[&event],
        live: Some(LiveWriter {
            holder,
            is_admin: caller.is_admin(),
            is_now: made_at.is_none(),
        }),
    };
    let recorded = tx.record_events(&batch).await?;
    match recorded.outcomes.first() {
        Some(EventOutcome::Stored { .. }) => Ok(false),
        Some(EventOutcome::Duplicate { differs, .. }) => Ok(*differs),
        Some(EventOutcome::Deleted | EventOutcome::ReusedByAnother) | None => {
            Err(Rejection::EventIdReused.into())
        }
    }
}

/// As whom a caller holds a task: two sessions of one member are two holders.
fn holder(caller: &Caller, session: Option<&SessionKey>) -> Holder {
    let digest = session.map(|session| {
        let key = [session.host.as_str(), session.id.as_str()].join("\0");
        hex(&Sha256::digest(key.as_bytes()))
    });
    Holder::new(
        caller.principal.key,
        &caller.name,
        digest.unwrap_or_default(),
    )
}

impl Appended {
    fn written(self, made: &Made, shown: Option<Shown>) -> WorkWritten {
        let Self { stored, .. } = self;
        let now = made.arrived_at;
        let mut head = format!(
            "Stored in \"{}\" ({}).",
            one_line(&stored.list),
            one_line(&stored.project.name)
        );
        if self.event_id_reused {
            head.push_str("\nThis event id was stored before; what differs now was not added.");
        }
        let mut written = WorkWritten {
            id: made.event_id,
            hlc: Some(stored.hlc.to_string()),
            list: stored.list,
            project: stored.project.name,
            event_id_reused: self.event_id_reused,
            open: Vec::new(),
            holder: None,
            until: None,
            text: String::new(),
        };
        let Some(Shown { state, newest }) = shown else {
            written.text = head;
            return written;
        };
        let tasks = state.lists.iter().flat_map(|list| &list.tasks);
        written.open = tasks.map(|task| WorkTask::of(task, now)).collect();
        written.hlc = newest.max(Some(stored.hlc)).map(|hlc| hlc.to_string());
        let task = made.entry.task.as_ref().filter(|_| !self.event_id_reused);
        let own = task.and_then(|own| written.open.iter().find(|task| task.task == *own));
        if let Some((own, holder, until)) = own.and_then(|own| {
            let (holder, until) = own.holder.clone().zip(own.until)?;
            Some((own, holder, until))
        }) {
            if holder != self.holder.name {
                let told = Rejection::Claimed {
                    task: one_line(&own.task),
                    holder: holder.clone(),
                    until,
                };
                head.push_str(&format!("\n{told}"));
            }
            (written.holder, written.until) = (Some(holder), Some(until));
        } else if let (Some(task), Some(Action::Claim { .. })) = (task, made.entry.action) {
            let task = one_line(task);
            head.push_str(&format!("\n{task} is closed, so nobody holds it."));
        }
        let room = Room::units(limits::WORK_ANSWER_UNITS);
        written.text = render_written(&head, &state, room).fill(now, Zone::UTC);
        written
    }
}
