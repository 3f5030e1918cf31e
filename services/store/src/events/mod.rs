//! Events: storing a batch of what clients report, once each, in one transaction.
//!
//! Locks are taken in one order by every batch: new projects by folded key, sessions, the tool
//! use counter, the tenant's counter, the author's usage, then ledger rows by event id. So two batches may wait for
//! each other's end but never for each other.

pub(crate) mod face;
mod kept;
mod ledger;
mod plan;
mod projects;
mod rows;
mod sessions;
pub(crate) mod tool_uses;
mod usage;
mod work_entries;
pub(crate) mod work_items;
mod work_refold;

use std::collections::HashMap;

use cairn_domain::event::{EventDraft, Origin};
use cairn_domain::hlc::Hlc;
use cairn_domain::ids::PrincipalId;
use cairn_domain::project::{ProjectSet, Reader};
use cairn_domain::work_state::Holder;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{StoreError, TenantTx};
use face::Face;
pub use kept::Kept;
use ledger::Known;
use plan::Plan;
use tool_uses::Packed;
pub(crate) use work_refold::DroppedEntry;

/// Events of one request, by one author.
#[derive(Clone, Copy, Debug)]
pub struct EventBatch<'a> {
    /// Who reports them.
    pub author: PrincipalId,
    /// Where the author may look: of events beyond, they learn nothing.
    pub projects: &'a ProjectSet,
    /// When they arrived, by the service's clock.
    pub arrived_at: DateTime<Utc>,
    /// What produces the records they make.
    pub origin: Origin,
    /// The events; numbers follow their order.
    pub events: &'a [&'a PreparedEvent],
    /// Who writes, if the batch is one work entry that is written now; a spooled one makes and
    /// moves no claim.
    pub live: Option<LiveWriter<'a>>,
}

/// Who writes a work entry now.
#[derive(Clone, Copy, Debug)]
pub struct LiveWriter<'a> {
    /// As whom they would hold its task.
    pub holder: &'a Holder,
    /// Whether they may take a task from others.
    pub is_admin: bool,
    /// Whether the entry was made just now: then it comes after all that its list holds.
    pub is_now: bool,
}

/// An event with all that takes time to make of it: so much that it is made before a transaction
/// begins, and not in a thread that others wait for.
#[derive(Debug)]
pub struct PreparedEvent {
    draft: EventDraft,
    face: Option<Face>,
    packed: Option<Packed>,
    /// Bytes of what it leaves.
    bytes: i32,
    kept: Option<Kept>,
}

impl PreparedEvent {
    /// Analyses the words of an event and packs its evidence.
    ///
    /// # Errors
    /// `Bug` if it cannot be packed.
    pub fn of(draft: EventDraft) -> Result<Self, StoreError> {
        Self::made(draft, None)
    }

    /// The same for an event that comes from elsewhere, with what it keeps of that.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn imported(draft: EventDraft, kept: Kept) -> Result<Self, StoreError> {
        Self::made(draft, Some(kept))
    }

    fn made(draft: EventDraft, kept: Option<Kept>) -> Result<Self, StoreError> {
        let imported_id = kept.as_ref().and_then(|kept| kept.id.as_deref());
        let packed = Packed::of(&draft)?;
        Ok(Self {
            face: Face::of(&draft, imported_id),
            bytes: usage::bytes(&draft, packed.as_ref()),
            packed,
            draft,
            kept,
        })
    }

    /// The event's id.
    #[must_use]
    pub const fn event_id(&self) -> Uuid {
        self.draft.event_id
    }
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// One for each event, in the order of the batch.
    pub outcomes: Vec<EventOutcome>,
    /// The last position taken, if any was.
    pub position: Option<i64>,
    /// The highest moment of the work entries that were stored now.
    pub hlc: Option<Hlc>,
}

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// Stored now.
    Stored {
        /// The id of the record it made, as printed (`41`, `S7`, `P3`, `T118`), if it made one.
        id: Option<String>,
    },
    /// Stored before, by the same author.
    Duplicate {
        /// The id of the record it made then.
        id: Option<String>,
        /// Whether the content differs from that time; it changes nothing.
        differs: bool,
    },
    /// Stored before, and deleted since.
    Deleted,
    /// The event id is another author's, or of a project that the author may not see.
    ReusedByAnother,
}

/// What is known of an event id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedEvent {
    /// The id as asked.
    pub event_id: Uuid,
    /// What became of it.
    pub status: EventStatus,
}

/// What became of an event that was asked for by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventStatus {
    /// It is stored.
    Stored {
        /// The id of the record it made, if it made one.
        id: Option<String>,
    },
    /// It was stored, and deleted since.
    Deleted,
    /// Nothing of this author, in the projects they may see, has this id.
    Unknown,
}

impl TenantTx {
    /// Stores the events of a batch that are new, and says what became of each.
    ///
    /// A repeat by the same author changes nothing, whatever it says; so does another author's
    /// use of the same id. The jobs that turns leave are queued with the events.
    ///
    /// # Errors
    /// `Raced` if another batch stored some of the same events meanwhile: numbers taken for them
    /// go back when the transaction is dropped, and a new one finds them stored. `Claimed` if a
    /// live write wants a task that somebody else holds, `Overfull` for entries that are too much
    /// for their items, `OverQuota` if the tenant may not have so much: drop the transaction as
    /// well. As any call of the store.
    pub async fn record_events(&mut self, batch: &EventBatch<'_>) -> Result<Recorded, StoreError> {
        let ids: Vec<Uuid> = batch.events.iter().map(|event| event.event_id()).collect();
        let known = self.find_ledger_rows(&ids).await?;
        let fresh = fresh(batch.events, &known);
        if fresh.is_empty() {
            let none = HashMap::new();
            return Ok(Recorded {
                outcomes: outcomes(batch, &known, &none),
                position: None,
                hlc: None,
            });
        }
        let (plan, hlc) = self.store_fresh(batch, &fresh).await?;
        Ok(Recorded {
            outcomes: outcomes(batch, &known, &plan.ids()),
            position: plan.last_position(),
            hlc,
        })
    }

    /// What became of those events of a batch that were stored before, in the order of the batch;
    /// none for one that is new. Nothing is written.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn repeated_events(
        &mut self,
        batch: &EventBatch<'_>,
    ) -> Result<Vec<Option<EventOutcome>>, StoreError> {
        let ids: Vec<Uuid> = batch.events.iter().map(|event| event.event_id()).collect();
        let known = self.find_ledger_rows(&ids).await?;
        let outcome = |event: &&PreparedEvent| {
            let row = known.get(&event.event_id())?;
            Some(row.outcome(batch, event))
        };
        Ok(batch.events.iter().map(outcome).collect())
    }

    /// What became of the reader's events, in the order asked; those of other authors and of
    /// projects beyond the reader's read as unknown.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn check_events(
        &mut self,
        ids: &[Uuid],
        reader: &Reader,
    ) -> Result<Vec<CheckedEvent>, StoreError> {
        let known = self.find_ledger_rows(ids).await?;
        let status = |id: &Uuid| match known.get(id) {
            Some(row) => row.status(reader.principal, &reader.projects),
            None => EventStatus::Unknown,
        };
        let checked = |id: &Uuid| CheckedEvent {
            event_id: *id,
            status: status(id),
        };
        Ok(ids.iter().map(checked).collect())
    }

    /// Stores events that no ledger row was seen for.
    async fn store_fresh(
        &mut self,
        batch: &EventBatch<'_>,
        fresh: &[&PreparedEvent],
    ) -> Result<(Plan, Option<Hlc>), StoreError> {
        let faces: Vec<Option<&Face>> = fresh.iter().map(|event| event.face.as_ref()).collect();
        let packed: Vec<Option<&Packed>> =
            fresh.iter().map(|event| event.packed.as_ref()).collect();
        let bytes: Vec<i32> = fresh.iter().map(|event| event.bytes).collect();
        let drafts: &[&EventDraft] = &fresh.iter().map(|event| &event.draft).collect::<Vec<_>>();
        let projects = self.open_projects(drafts).await?;
        let sessions = self.open_sessions(batch, fresh, &projects).await?;
        let mut plan = Plan::of(batch, fresh, projects, sessions);
        plan.weigh(&bytes);
        self.take_numbers(&mut plan).await?;
        self.count_usage(batch, &plan).await?;
        if !self.append_ledger(drafts, &plan).await? {
            return Err(StoreError::Raced);
        }
        self.insert_records(batch, drafts, &faces, &plan).await?;
        self.insert_tool_uses(drafts, &packed, &plan).await?;
        let hlc = self.append_work_entries(batch, fresh, &plan).await?;
        self.insert_origins(fresh, &plan).await?;
        self.save_sessions(&plan.sessions, batch.arrived_at).await?;
        self.save_projects(&plan).await?;
        self.enqueue_all(&plan.jobs).await?;
        Ok((plan, hlc))
    }

    /// Takes numbers and positions from the counters, as late as can be: their rows stay locked
    /// to the end of the transaction.
    async fn take_numbers(&mut self, plan: &mut Plan) -> Result<(), StoreError> {
        let need = plan.need();
        if need.tool_uses > 0 {
            let last: i64 = sqlx::query_scalar(
                "update tool_use_counters set tool_use = tool_use + $2
                 where tenant_id = $1 returning tool_use",
            )
            .bind(self.tenant.key())
            .bind(need.tool_uses)
            .fetch_one(&mut *self.tx)
            .await?;
            plan.number_tool_uses(last - need.tool_uses);
        }
        if need.positions > 0 {
            self.moved = true;
            let (observation, summary, prompt, position): (i64, i64, i64, i64) = sqlx::query_as(
                "update tenant_counters set observation = observation + $2,
                   summary = summary + $3, prompt = prompt + $4, position = position + $5
                 where tenant_id = $1 returning observation, summary, prompt, position",
            )
            .bind(self.tenant.key())
            .bind(need.observations)
            .bind(need.summaries)
            .bind(need.prompts)
            .bind(need.positions)
            .fetch_one(&mut *self.tx)
            .await?;
            plan.number_records(plan::Counters {
                observation: observation - need.observations,
                summary: summary - need.summaries,
                prompt: prompt - need.prompts,
                position: position - need.positions,
            });
        }
        Ok(())
    }
}

/// The first event of each id that the ledger does not know, in the order of the batch.
fn fresh<'a>(events: &[&'a PreparedEvent], known: &HashMap<Uuid, Known>) -> Vec<&'a PreparedEvent> {
    let mut seen = std::collections::HashSet::new();
    let events = events.iter().copied();
    events
        .filter(|event| !known.contains_key(&event.event_id()) && seen.insert(event.event_id()))
        .collect()
}

/// What became of each event, in the order of the batch.
fn outcomes(
    batch: &EventBatch<'_>,
    known: &HashMap<Uuid, Known>,
    stored: &HashMap<Uuid, Option<String>>,
) -> Vec<EventOutcome> {
    let mut first: HashMap<Uuid, [u8; 16]> = HashMap::new();
    let mut outcome = |event: &PreparedEvent| {
        let draft = &event.draft;
        if let Some(row) = known.get(&draft.event_id) {
            return row.outcome(batch, event);
        }
        let id = stored.get(&draft.event_id).cloned().flatten();
        match first.get(&draft.event_id) {
            Some(digest) => EventOutcome::Duplicate {
                id,
                differs: *digest != draft.digest,
            },
            None => {
                first.insert(draft.event_id, draft.digest);
                EventOutcome::Stored { id }
            }
        }
    };
    batch.events.iter().copied().map(&mut outcome).collect()
}
