//! The feed of a tenant: its newest changes, read once for all streams of this process, kept as
//! long as they fit. What a stream shows is taken from here only after a look at the database
//! that began after the stream could take it: so nothing that was deleted before is shown.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cairn_domain::change::ChangeKind;
use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_store::changes::{Change, Horizon, Room, Whose};
use cairn_store::{Store, StoreError};
use hyper::body::Bytes;
use tokio::sync::watch;

use super::follower;
use crate::actions::Failure;
use crate::lock::lock;

/// What one look brings.
pub(super) const LOOK: Room = Room {
    changes: 200,
    bytes: 128 * 1024,
};

/// The newest changes of a tenant.
pub(super) struct Feed {
    store: Store,
    tenant: TenantId,
    epoch: String,
    head: watch::Sender<Head>,
    rights: watch::Sender<u64>,
    ring: Mutex<Ring>,
    /// Looks that were asked for.
    asked: AtomicU64,
    /// The last of them that is answered. Held by whoever looks.
    answered: tokio::sync::Mutex<Answered>,
}

/// Where the tenant is, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its last position.
    pub latest: i64,
    /// Whether its positions are of another life now.
    pub is_over: bool,
}

#[derive(Default)]
struct Answered {
    upto: u64,
    /// Whether the look that answered failed.
    has_failed: bool,
}

struct Ring {
    /// What stands at positions up to here is not kept.
    start: i64,
    /// What stands at positions up to here was looked at.
    end: i64,
    kept: VecDeque<Arc<Kept>>,
    bytes: usize,
    prompts_shared: bool,
    /// How often a project changed: then those who read one look for it anew.
    projects: u64,
}

/// A change that is kept, with what is sent of it.
pub(super) struct Kept {
    pub change: Change,
    bytes: usize,
    /// Without and with the tool uses that it names.
    events: [OnceLock<Bytes>; 2],
}

/// What a feed has for a stream.
pub(super) struct Page {
    pub kept: Vec<Arc<Kept>>,
    /// The last position that it covers.
    pub end: i64,
    pub prompts_shared: bool,
    pub projects: u64,
}

impl Feed {
    pub fn new(store: Store, tenant: TenantId, horizon: &Horizon) -> Self {
        let latest = horizon.latest;
        let head = Head {
            latest,
            is_over: false,
        };
        Self {
            store,
            tenant,
            epoch: horizon.epoch.clone(),
            head: watch::Sender::new(head),
            rights: watch::Sender::new(0),
            ring: Mutex::new(Ring {
                start: latest,
                end: latest,
                kept: VecDeque::new(),
                bytes: 0,
                prompts_shared: false,
                projects: 0,
            }),
            asked: AtomicU64::new(0),
            answered: tokio::sync::Mutex::default(),
        }
    }

    pub const fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Whether it goes on in this life of the database.
    pub fn is_alive_in(&self, epoch: &str) -> bool {
        self.epoch == epoch && !self.head.borrow().is_over
    }

    /// Told whenever something is new.
    pub fn heads(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Told whenever rights have changed.
    pub fn rights(&self) -> watch::Receiver<u64> {
        self.rights.subscribe()
    }

    pub fn rights_changed(&self) {
        self.rights.send_modify(|count| *count += 1);
    }

    /// The last position that is known.
    pub fn latest(&self) -> i64 {
        self.head.borrow().latest
    }

    /// Notes where the tenant is; nowhere if it is gone. `known` is the last position that was
    /// known before it was asked: one that is behind that is of another life.
    pub fn is_at(&self, known: i64, horizon: Option<&Horizon>) {
        let is_same = horizon.is_some_and(|horizon| horizon.epoch == self.epoch);
        let latest = horizon.map_or(0, |horizon| horizon.latest);
        self.head.send_if_modified(|head| {
            let before = *head;
            head.is_over |= !is_same || latest < known;
            head.latest = head.latest.max(latest);
            *head != before
        });
    }

    /// Looks for what is new. Those who ask while somebody looks are answered by the next look,
    /// all together.
    ///
    /// # Errors
    /// The store's.
    pub async fn look(&self) -> Result<(), StoreError> {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut answered = self.answered.lock().await;
        if answered.upto < mine {
            let upto = self.asked.load(Ordering::SeqCst);
            // Whoever gives up in the middle has answered nobody.
            let looked = self.read().await;
            *answered = Answered {
                upto,
                has_failed: looked.is_err(),
            };
            return looked;
        }
        match answered.has_failed {
            true => Err(StoreError::Unavailable),
            false => Ok(()),
        }
    }

    async fn read(&self) -> Result<(), StoreError> {
        let (known, end) = (self.latest(), lock(&self.ring).end);
        let mut tx = self.store.tenant(self.tenant, "streams.look").await?;
        let reach = tx.reach_of_changes().await?;
        let found = tx.changes(reach, end, LOOK, Whose::Anybody).await?;
        tx.commit().await?;
        self.is_at(known, Some(&found.horizon));
        let mut ring = lock(&self.ring);
        ring.prompts_shared = found.prompts_shared;
        if found.horizon.epoch == self.epoch {
            for change in found.items {
                ring.push(change);
            }
            ring.end = ring.end.max(found.next);
        }
        Ok(())
    }

    /// Whether what stands after a position is kept.
    pub fn reaches(&self, position: i64) -> bool {
        position >= lock(&self.ring).start
    }

    /// What is kept after a position; none if it goes further back than that.
    pub fn after(&self, position: i64) -> Option<Page> {
        let ring = lock(&self.ring);
        if position < ring.start {
            return None;
        }
        let newer = |kept: &&Arc<Kept>| kept.change.position > position;
        let newer = ring.kept.iter().rev().take_while(newer);
        let mut kept: Vec<Arc<Kept>> = newer.cloned().collect();
        kept.reverse();
        Some(Page {
            kept,
            end: ring.end.max(position),
            prompts_shared: ring.prompts_shared,
            projects: ring.projects,
        })
    }
}

impl Ring {
    /// What changed again is here no more: deleted, it may not be shown; else it follows.
    fn push(&mut self, change: Change) {
        let subject = change.subject();
        let before = self.kept.iter();
        let before = before.filter(|kept| kept.change.subject() == subject);
        let superseded: usize = before.map(|kept| kept.bytes).sum();
        self.kept.retain(|kept| kept.change.subject() != subject);
        self.bytes -= superseded;
        self.projects += u64::from(subject.0 == ChangeKind::Project);
        let kept = Kept::new(change);
        self.bytes += kept.bytes;
        self.end = self.end.max(kept.change.position);
        self.kept.push_back(Arc::new(kept));
        while self.bytes > limits::STREAM_UNSENT_BYTES {
            let Some(first) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= first.bytes;
            self.start = first.change.position;
        }
    }
}

impl Kept {
    fn new(change: Change) -> Self {
        Self {
            bytes: change.bytes() + follower::EVENT_BYTES,
            change,
            events: [OnceLock::new(), OnceLock::new()],
        }
    }

    /// About how many bytes a stream sends of it.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is sent of it to a reader who may be told; made once for all.
    ///
    /// # Errors
    /// A fault of ours, if what is stored cannot be read.
    pub fn event(
        &self,
        reader: &Reader,
        prompts_shared: bool,
        evidence: bool,
    ) -> Result<Option<Bytes>, Failure> {
        let Some(told) = self.change.told(reader, prompts_shared) else {
            return Ok(None);
        };
        let event = &self.events[usize::from(evidence)];
        if let Some(made) = event.get() {
            return Ok(Some(made.clone()));
        }
        let made = follower::event(self.change.position, told, evidence)?;
        Ok(Some(event.get_or_init(|| made).clone()))
    }
}
