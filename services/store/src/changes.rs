//! Changes: what stands at the positions of a tenant, in their order (contract 13).
//!
//! Positions are taken under the tenant's counter, which is held to the commit: so whoever reads
//! the counter first, and then what stands up to it, misses nothing. A record that changes, or is
//! deleted, in between moves to a position beyond, and is met there.

mod contents;

use cairn_domain::change::{Audience, ChangeKind};
use cairn_domain::hex::hex;
use cairn_domain::ids::RecordKind;
use cairn_domain::kind::Kind;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::record::Record;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use uuid::Uuid;

use crate::work_state::HistoryEntry;
use crate::{StoreError, TenantTx};

/// Positions that a look for few changes looks at.
const LEAST_LOOKED_AT: usize = 200;
/// Changes whose texts are read at once: their size is known only then.
const TOGETHER: usize = 50;

/// How far a tenant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Its last position; 0 before the first.
    pub latest: i64,
    /// Which life of its database positions are of.
    pub epoch: String,
}

/// How far a look at changes goes, found before its eyes are.
#[derive(Clone, Debug)]
pub struct Reach {
    horizon: Horizon,
    prompts_shared: bool,
}

impl Horizon {
    pub(crate) fn of(latest: i64, epoch: Uuid, life: &str) -> Self {
        let digest = Sha256::new_with_prefix(epoch.as_bytes()).chain_update(life);
        let epoch = hex(&digest.finalize()[..12]);
        Self { latest, epoch }
    }
}

/// How much one look may show.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Changes, at most.
    pub changes: usize,
    /// Bytes of texts after which it ends.
    pub bytes: usize,
}

/// Whom a look is for.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// One reader: nothing else is read.
    Reader(&'a Reader),
    /// Several, who are told apart by [`Change::told`].
    Anybody,
}

/// What one look found.
#[derive(Debug)]
pub struct Changes {
    /// How far the tenant was when it began.
    pub horizon: Horizon,
    /// The last position that was looked at. Nothing up to it that may be told is missing.
    pub next: i64,
    /// Whether the tenant's prompts are for the team.
    pub prompts_shared: bool,
    /// What was found, in ascending position.
    pub items: Vec<Change>,
}

/// What stands at a position. What it says comes out for a reader who may be told alone.
#[derive(Debug)]
pub struct Change {
    /// The position.
    pub position: i64,
    audience: Audience,
    told: Told,
    bytes: usize,
}

/// What is told of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// What changed.
    pub kind: ChangeKind,
    /// Its id, as printed: `41`, `S7`, `P3`; the event id of a work entry; a project's UUID.
    pub id: String,
    /// The client's id of the event that made it; a project has none.
    pub event_id: Option<Uuid>,
    /// The key of its project.
    pub project: String,
    /// Its author's handle, or `key:<key id>`; a project has none.
    pub author: Option<String>,
    /// When it happened; of a deletion, when that was.
    pub at: DateTime<Utc>,
    /// What it is now; none if it was deleted.
    pub now: Option<Stands>,
}

/// What a thing is at the position of its last change.
#[derive(Clone, Debug, PartialEq)]
pub enum Stands {
    /// An observation, a summary or a prompt.
    Record(Box<Record>),
    /// An entry of a work list.
    WorkEntry(HistoryEntry),
    /// A project.
    Project(StandingProject),
}

/// A project as it stands.
#[derive(Clone, Debug, FromRow, PartialEq, Eq)]
pub struct StandingProject {
    position: i64,
    /// Its id.
    pub id: Uuid,
    /// Its key, as first written.
    pub key: String,
    /// Its display name.
    pub name: String,
    /// The key of the project that it was merged into.
    pub merged_into: Option<String>,
    created_at: DateTime<Utc>,
}

impl Changes {
    /// What a reader may be told of them, with their positions.
    pub fn told<'a>(&'a self, reader: &'a Reader) -> impl Iterator<Item = (i64, &'a Told)> {
        let told = |change: &'a Change| {
            let told = change.told(reader, self.prompts_shared)?;
            Some((change.position, told))
        };
        self.items.iter().filter_map(told)
    }
}

impl Change {
    /// What changed, whoever may be told: to see which changes are of the same thing.
    #[must_use]
    pub fn subject(&self) -> (ChangeKind, &str) {
        (self.told.kind, &self.told.id)
    }

    /// About how many bytes its texts have.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a reader may be told of it; `prompts_shared` is the tenant's setting at this moment.
    #[must_use]
    pub fn told(&self, reader: &Reader, prompts_shared: bool) -> Option<&Told> {
        let may = self.audience.includes(reader, prompts_shared);
        may.then_some(&self.told)
    }
}

/// A position before its contents are read.
#[derive(Clone, Copy, FromRow)]
struct Head {
    position: i64,
    source: i16,
    kind: i16,
    number: i64,
    project_id: i32,
    author_id: i32,
    private: bool,
}

/// Where the contents of a position stand: `source` of [`HEADS`].
mod source {
    pub const RECORD: i16 = 0;
    pub const TOMBSTONE: i16 = 1;
    pub const WORK_ENTRY: i16 = 2;
    pub const PROJECT: i16 = 3;
}

/// The heads after $2 up to $3, at most $4: each table is walked by its positions.
const HEADS: &str = "
    select position, source, kind, number, project_id, author_id, private from (
      (select position, 0::smallint as source, kind, number, project_id, author_id, private
       from records where tenant_id = $1 and position > $2 and position <= $3
       order by position limit $4)
      union all
      (select position, 1::smallint, kind, number, project_id, author_id, private
       from tombstones where tenant_id = $1 and position > $2 and position <= $3
       order by position limit $4)
      union all
      (select position, 2::smallint, 0::smallint, 0::bigint, project_id, author_id, false
       from work_entries where tenant_id = $1 and position > $2 and position <= $3
       order by position limit $4)
      union all
      (select position, 3::smallint, 0::smallint, 0::bigint, project_id, 0, false
       from projects where tenant_id = $1 and position > $2 and position <= $3
       order by position limit $4)) h
    order by position limit $4";

impl Head {
    /// What it is; none for the tombstone of a kind that this version never showed.
    fn audience(&self) -> Option<Audience> {
        let kind = match self.source {
            source::WORK_ENTRY => ChangeKind::WorkEntry,
            source::TOMBSTONE if self.kind == Kind::WorkEntry.code() => ChangeKind::WorkEntry,
            source::RECORD | source::TOMBSTONE => {
                ChangeKind::Record(RecordKind::from_code(self.kind)?)
            }
            _ => ChangeKind::Project,
        };
        Some(Audience {
            kind,
            project: self.project_id,
            author: (kind != ChangeKind::Project).then_some(self.author_id),
            private: self.private,
        })
    }
}

impl TenantTx {
    /// How far the tenant is.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn horizon_of_changes(&mut self) -> Result<Horizon, StoreError> {
        Ok(self.reach_of_changes().await?.horizon)
    }

    /// How far a look at changes will go. Whose eyes it has is to be found after this: eyes that
    /// are older would pass by what came between, and never see it.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn reach_of_changes(&mut self) -> Result<Reach, StoreError> {
        let (latest, epoch, life, prompts_shared): (i64, Uuid, String, bool) = sqlx::query_as(
            "select c.position, c.epoch, database_life(),
               coalesce(t.settings ->> 'prompt_visibility' = 'team', false)
             from tenant_counters c join tenants t on t.tenant_id = c.tenant_id
             where c.tenant_id = $1",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(Reach {
            horizon: Horizon::of(latest, epoch, &life),
            prompts_shared,
        })
    }

    /// What has changed after a position, in order, as far as the reach and the room go. A
    /// look at positions of which nothing may be told ends, too, after a bounded number of them.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a value of no meaning; as any call of the store.
    pub async fn changes(
        &mut self,
        reach: Reach,
        after: i64,
        room: Room,
        whose: Whose<'_>,
    ) -> Result<Changes, StoreError> {
        let Reach {
            horizon,
            prompts_shared,
        } = reach;
        let looked_at = room.changes.saturating_mul(4);
        let looked_at = looked_at.clamp(LEAST_LOOKED_AT, limits::CHANGES_LOOKED_AT);
        let heads: Vec<Head> = sqlx::query_as(HEADS)
            .bind(self.tenant.key())
            .bind(after)
            .bind(horizon.latest)
            .bind(i64::try_from(looked_at).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.tx)
            .await?;
        let is_all = heads.len() < looked_at;
        let mut next = match heads.last() {
            Some(last) if !is_all => last.position,
            _ => horizon.latest.max(after),
        };
        let may_be_told = |head: &Head| {
            let audience = head.audience()?;
            let may = match whose {
                Whose::Reader(reader) => audience.includes(reader, prompts_shared),
                Whose::Anybody => true,
            };
            may.then_some((*head, audience))
        };
        let told: Vec<(Head, Audience)> = heads.iter().filter_map(may_be_told).collect();
        if let Some((head, _)) = told.get(room.changes) {
            next = head.position - 1;
        }
        let told = &told[..told.len().min(room.changes)];
        let mut items = Vec::new();
        let mut bytes = 0;
        for part in told.chunks(TOGETHER) {
            if bytes >= room.bytes {
                next = part[0].0.position - 1;
                break;
            }
            bytes += self.append_contents(part, &mut items).await?;
        }
        Ok(Changes {
            horizon,
            next,
            prompts_shared,
            items,
        })
    }
}
