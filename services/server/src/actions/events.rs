//! Events: taking in what clients send, item by item, in one transaction.

use std::collections::HashSet;

use cairn_domain::Rejection;
use cairn_domain::event::{EventBody, EventDraft, Origin};
use cairn_domain::hlc::Hlc;
use cairn_domain::limits;
use cairn_domain::project;
use cairn_domain::scope::Scope;
use cairn_store::StoreError;
use cairn_store::events::{EventBatch, EventOutcome, EventStatus, PreparedEvent, Recorded};
use cairn_wire::events::{
    Batch, BatchAnswer, Check, CheckAnswer, CheckedItem, Item, ItemAnswer, ItemStatus, ProjectName,
    Surroundings,
};
use cairn_wire::reading::{Reader, whole};
use cairn_wire::{Code, Problem};
use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::projects::{place, reported_keys, widest_reader};
use super::{Attempts, Failure, note_quota};
use crate::app::App;
use crate::auth::Caller;
use crate::rates::take_events;

/// Stores the valid items of a batch and says what became of each.
///
/// # Errors
/// A body that cannot be read, a lacking scope, events that come too fast, or an unavailable store;
/// never a single bad item, nor what a quota refuses.
pub async fn record(app: &App, caller: &Caller, json: String) -> Result<BatchAnswer, Failure> {
    caller.require(Scope::MemoryWrite)?;
    let arrived_at = app.clock.now();
    // Held to the end of the batch, so that one tenant takes no more than its part of the threads
    // and connections.
    let _turn = app.store.turn(caller.tenant).await?;
    let sent = apart(move || Sent::of(&json)).await?;
    take_events(app, caller, sent.batch.items.len()).await?;
    let here = current_project(app, caller).await?;
    let reporter = Reporter {
        caller: caller.clone(),
        keys: reported_keys(app, caller).await?,
    };
    let read = apart(move || Reading::of(&reporter, here.as_ref(), sent, arrived_at)).await?;
    let stored = store(app, caller, &read.events, arrived_at, Origin::Api, true).await?;
    let mut outcomes = read.events.iter().zip(stored.outcomes);
    let mut items = Vec::with_capacity(read.items.len());
    for (index, refused) in read.items.into_iter().enumerate() {
        items.push(match refused {
            Some(refused) => refused,
            None => match outcomes.next() {
                Some((event, Ok(outcome))) => answer(event.event_id(), outcome),
                Some((event, Err(rejection))) => {
                    refuse(Some(event.event_id().to_string()), index, rejection.into())
                }
                None => return Err(Failure::fault("lost an outcome")),
            },
        });
    }
    Ok(BatchAnswer {
        items,
        position: stored.position,
        hlc: stored.hlc.map(|hlc| hlc.to_string()),
        ignored: read.ignored,
    })
}

/// The project of a batch that names none: the header's, or the one the credential is limited to.
async fn current_project(app: &App, caller: &Caller) -> Result<Option<ProjectName>, Failure> {
    let key = match (&caller.current_project, &caller.project_limit) {
        // A key in full, as clients send it, needs no looking up.
        (Some(text), _) if text.contains(':') => Some(text.clone()),
        (Some(text), _) => {
            let mut tx = app.store.tenant(caller.tenant, "events.project").await?;
            let place = place(&mut tx, caller, None).await?;
            tx.commit().await?;
            Some(
                place
                    .written
                    .map_or_else(|| text.clone(), |project| project.key),
            )
        }
        (None, Some(limit)) => Some(limit.key.clone()),
        (None, None) => None,
    };
    Ok(key.map(|key| ProjectName { key, name: None }))
}

/// Does what takes time in a thread that nobody else waits for.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::fault(error.to_string()))?
}

/// A batch whose items are counted, not read.
struct Sent {
    batch: Batch,
    reader: Reader,
}

impl Sent {
    fn of(json: &str) -> Result<Self, Failure> {
        let mut reader = Reader::default();
        let batch: Batch = reader.read(json, "").map_err(Problem::from)?;
        if batch.items.len() > limits::BATCH_ITEMS {
            let detail = format!("at most {} items", limits::BATCH_ITEMS);
            return Err(Rejection::invalid_field("/items", detail).into());
        }
        Ok(Self { batch, reader })
    }
}

/// Who reports, and under which keys alone, if the credential is limited.
struct Reporter {
    caller: Caller,
    keys: Option<Vec<String>>,
}

/// A batch as it was read: work of some time, for a thread that nobody waits for.
struct Reading {
    /// For each item, why it is refused; none for one of `events`, in their order.
    items: Vec<Option<ItemAnswer>>,
    events: Vec<PreparedEvent>,
    ignored: Vec<String>,
}

impl Reading {
    fn of(
        reporter: &Reporter,
        here: Option<&ProjectName>,
        sent: Sent,
        arrived_at: DateTime<Utc>,
    ) -> Result<Self, Failure> {
        let Sent { batch, mut reader } = sent;
        let around = Surroundings {
            arrived_at,
            // A clock that was never set tells nothing.
            sent_at: batch
                .sent_at
                .filter(|at| at.timestamp() >= 0)
                .unwrap_or(arrived_at),
            project: batch.project.as_ref().or(here),
            machine: batch.machine.as_deref(),
            visibility: reporter.caller.visibility,
        };
        let (mut items, mut events) = (Vec::new(), Vec::new());
        for (index, raw) in batch.items.iter().enumerate() {
            items.push(match parse(raw, around, reporter, &mut reader) {
                Ok(draft) => {
                    events.push(PreparedEvent::of(draft)?);
                    None
                }
                Err(rejection) => Some(refuse(event_id_as_sent(raw), index, rejection.into())),
            });
        }
        Ok(Self {
            items,
            events,
            ignored: reader.ignored.into_iter().collect(),
        })
    }
}

/// Says what became of events that were sent before.
///
/// # Errors
/// `invalid_field` for too many ids, a lacking scope, or an unavailable store.
pub async fn check(app: &App, caller: &Caller, json: &str) -> Result<CheckAnswer, Failure> {
    caller.require(Scope::MemoryWrite)?;
    let check: Check = whole(json).map_err(Problem::from)?;
    if check.event_ids.len() > limits::CHECK_IDS {
        let detail = format!("at most {} ids", limits::CHECK_IDS);
        return Err(Rejection::invalid_field("/event_ids", detail).into());
    }
    let mut tx = app.store.tenant(caller.tenant, "events.check").await?;
    let reader = widest_reader(&mut tx, caller).await?;
    let known = tx.check_events(&check.event_ids, &reader).await?;
    tx.commit().await?;
    let items = known.into_iter().map(|known| {
        let (status, id) = match known.status {
            EventStatus::Stored { id } => (ItemStatus::Stored, id),
            EventStatus::Deleted => (ItemStatus::Deleted, None),
            EventStatus::Unknown => (ItemStatus::Unknown, None),
        };
        CheckedItem {
            event_id: known.event_id,
            status,
            id,
        }
    });
    Ok(CheckAnswer {
        items: items.collect(),
    })
}

/// Stores events; if they are not to be kept, says what would become of them.
pub(super) async fn store(
    app: &App,
    caller: &Caller,
    events: &[PreparedEvent],
    arrived_at: DateTime<Utc>,
    origin: Origin,
    keep: bool,
) -> Result<Stored, Failure> {
    let mut attempts = Attempts::default();
    let mut left_out: HashSet<Uuid> = HashSet::new();
    loop {
        let is_wanted = |event: &&PreparedEvent| !left_out.contains(&event.event_id());
        let wanted: Vec<&PreparedEvent> = events.iter().filter(is_wanted).collect();
        match commit(app, caller, &wanted, arrived_at, origin, keep).await {
            Ok(recorded) => {
                let mut outcomes = recorded.outcomes.into_iter();
                let outcomes = events.iter().filter_map(|event| match is_wanted(&event) {
                    true => outcomes.next().map(Ok),
                    false => Some(Err(overfull())),
                });
                return Ok(Stored {
                    outcomes: outcomes.collect(),
                    position: recorded.position,
                    hlc: recorded.hlc,
                });
            }
            // No entry holds up the others, so these are left out. There are fewer each time.
            Err(Failure::Store(StoreError::Overfull(ids))) if !ids.is_empty() => {
                left_out.extend(ids);
            }
            Err(failure) if attempts.go_on_after(&failure).await => {}
            Err(failure) => {
                note_quota(app, &failure);
                let Failure::Store(StoreError::OverQuota { quota, limit }) = failure else {
                    return Err(failure);
                };
                let refused = Rejection::QuotaExceeded { quota, limit };
                return repeats(app, caller, events, arrived_at, &refused).await;
            }
        }
    }
}

/// What became of events of which none may be stored now: those that are stored already are named,
/// so that their sender need not keep them.
async fn repeats(
    app: &App,
    caller: &Caller,
    events: &[PreparedEvent],
    arrived_at: DateTime<Utc>,
    refused: &Rejection,
) -> Result<Stored, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "events.repeats").await?;
    let reader = widest_reader(&mut tx, caller).await?;
    let events: Vec<&PreparedEvent> = events.iter().collect();
    let batch = batch_of(caller, &reader, &events, arrived_at, Origin::Api);
    let known = tx.repeated_events(&batch).await?;
    tx.commit().await?;
    let outcomes = known.into_iter();
    Ok(Stored {
        outcomes: outcomes
            .map(|known| known.ok_or_else(|| refused.clone()))
            .collect(),
        position: None,
        hlc: None,
    })
}

/// What became of a batch.
pub(super) struct Stored {
    /// One for each event, or why it is refused.
    pub outcomes: Vec<Result<EventOutcome, Rejection>>,
    position: Option<i64>,
    hlc: Option<Hlc>,
}

async fn commit(
    app: &App,
    caller: &Caller,
    events: &[&PreparedEvent],
    arrived_at: DateTime<Utc>,
    origin: Origin,
    keep: bool,
) -> Result<Recorded, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "events.record").await?;
    let reader = widest_reader(&mut tx, caller).await?;
    let batch = batch_of(caller, &reader, events, arrived_at, origin);
    let recorded = tx.record_events(&batch).await?;
    if keep {
        tx.commit().await?;
    }
    Ok(recorded)
}

fn batch_of<'a>(
    caller: &Caller,
    reader: &'a project::Reader,
    events: &'a [&'a PreparedEvent],
    arrived_at: DateTime<Utc>,
    origin: Origin,
) -> EventBatch<'a> {
    EventBatch {
        author: caller.principal,
        projects: &reader.projects,
        arrived_at,
        origin,
        events,
        live: None,
    }
}

fn parse(
    raw: &RawValue,
    around: Surroundings<'_>,
    reporter: &Reporter,
    reader: &mut Reader,
) -> Result<EventDraft, Rejection> {
    let item = Item::read(raw.get(), reader)?;
    let digest = digest(&item.kind, item.body.as_deref().map_or("", RawValue::get));
    let event = item.parse(around, digest, reader)?;
    if matches!(event.body, EventBody::WorkEntry { .. }) {
        reporter.caller.require(Scope::WorkWrite)?;
    }
    if let Some(keys) = &reporter.keys
        && !keys.contains(&event.project.folded())
    {
        return Err(Rejection::NotFound);
    }
    Ok(event)
}

/// What makes two sendings of one event equal: kind and body as they were written.
pub(super) fn digest(kind: &str, body: &str) -> [u8; 16] {
    let mut hasher = Sha256::new();
    hasher.update(kind.as_bytes());
    hasher.update([0]);
    hasher.update(body.as_bytes());
    let whole: [u8; 32] = hasher.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    half
}

fn refuse(event_id: Option<String>, index: usize, problem: Problem) -> ItemAnswer {
    let field = problem.errors.first();
    ItemAnswer {
        event_id,
        status: ItemStatus::Refused,
        id: None,
        event_id_reused: false,
        code: Some(problem.code),
        pointer: field.map(|field| format!("/items/{index}{}", field.pointer)),
        detail: field.map(|field| field.detail.clone()).or(problem.detail),
        retry: Some(matches!(
            problem.code,
            Code::QuotaExceeded | Code::RateLimited
        )),
    }
}

/// The event id of an item that may be anything, so that its sender recognises it.
fn event_id_as_sent(raw: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        event_id: String,
    }
    let named: Named = serde_json::from_str(raw.get()).ok()?;
    Some(cairn_domain::bounds::head_bytes(&named.event_id, limits::WORD_BYTES).to_owned())
}

/// Why an entry is refused whose task or list state holds too much already.
fn overfull() -> Rejection {
    Rejection::invalid_field("/body/fields", too_much())
}

/// What the writer of an entry is told that is too much for its item.
pub(super) fn too_much() -> String {
    format!(
        "the task would hold more than {} bytes; use another",
        limits::WORK_ITEM_BYTES
    )
}

fn answer(event_id: Uuid, outcome: EventOutcome) -> ItemAnswer {
    let event_id = event_id.to_string();
    let (status, id, event_id_reused) = match outcome {
        EventOutcome::Stored { id } => (ItemStatus::Stored, id, false),
        EventOutcome::Duplicate { id, differs } => (ItemStatus::Duplicate, id, differs),
        EventOutcome::Deleted => (ItemStatus::Deleted, None, false),
        EventOutcome::ReusedByAnother => {
            return ItemAnswer {
                event_id: Some(event_id),
                status: ItemStatus::Refused,
                id: None,
                event_id_reused: false,
                code: Some(Code::EventIdReused),
                pointer: None,
                detail: Some(Rejection::EventIdReused.to_string()),
                retry: Some(false),
            };
        }
    };
    ItemAnswer {
        event_id: Some(event_id),
        status,
        id,
        event_id_reused,
        code: None,
        pointer: None,
        detail: None,
        retry: None,
    }
}
