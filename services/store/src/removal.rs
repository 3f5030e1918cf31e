//! Removing many at once, for good: their rows and what was derived from them go; tombstones and
//! the ledger's lines stay. Expiry and purge are made of this; a single deletion stands in
//! `records/delete.rs`.
//!
//! Removals of one tenant take turns. Locks come in the order of all writers: rows, then whoever
//! counts words, then the tenant's counter.

use std::collections::{BTreeMap, BTreeSet};

use cairn_domain::ids::RecordKind;
use cairn_domain::kind::{Counts, Kind};
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use crate::events::DroppedEntry;
use crate::{StoreError, TenantTx};

/// Removes the rows and bodies of one kind, by numbers. Selects [`GoneRow`].
macro_rules! removal {
    ($bodies:literal) => {
        concat!(
            "with bodies as (
               delete from ",
            $bodies,
            " where tenant_id = $1 and number = any ($3) returning number, event_id),
             faces as (
               delete from records where tenant_id = $1 and kind = $2 and number = any ($3)
               returning number, project_id, author_id, private)
             select f.number, b.event_id, f.project_id, f.author_id, f.private
             from faces f join bodies b on b.number = f.number order by f.number"
        )
    };
}

/// What is to be removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doomed {
    /// Kinds and numbers.
    pub records: Vec<(RecordKind, i64)>,
    /// Numbers.
    pub tool_uses: Vec<i64>,
    /// Positions.
    pub work_entries: Vec<i64>,
}

impl Doomed {
    /// Whether it is nothing.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty() && self.tool_uses.is_empty() && self.work_entries.is_empty()
    }
}

/// What was removed, for its tombstone.
struct Gone {
    event_id: Uuid,
    kind: Kind,
    number: i64,
    project: i32,
    author: i32,
    private: bool,
}

#[derive(FromRow)]
struct GoneRow {
    number: i64,
    event_id: Uuid,
    project_id: i32,
    author_id: i32,
    private: bool,
}

impl TenantTx {
    /// Removes what is doomed, as far as it is still there; how much that was.
    pub(crate) async fn remove(
        &mut self,
        doomed: &Doomed,
        now: DateTime<Utc>,
    ) -> Result<Counts, StoreError> {
        let mut counts = Counts::default();
        if doomed.is_empty() {
            return Ok(counts);
        }
        sqlx::query("select pg_advisory_xact_lock($1, 0)")
            .bind(self.tenant.key())
            .execute(&mut *self.tx)
            .await?;
        counts[Kind::ToolUse] = self.remove_tool_uses(&doomed.tool_uses).await?;
        let entries = self.lock_entries(&doomed.work_entries).await?;
        let counted = self.lock_records(&doomed.records).await?;
        self.stop_word_counts(&counted).await?;
        if doomed.records.is_empty() && entries.is_empty() {
            return Ok(counts);
        }
        let most = doomed.records.len() + entries.len();
        let mut position = self.hold_counter().await?;
        let mut gone = Vec::with_capacity(most);
        for kind in [Kind::Observation, Kind::Summary, Kind::Prompt] {
            gone.extend(self.remove_records(kind, &doomed.records).await?);
        }
        gone.extend(entries.iter().map(|entry| Gone {
            event_id: entry.event_id,
            kind: Kind::WorkEntry,
            number: entry.position,
            project: entry.project,
            author: entry.author,
            private: false,
        }));
        for one in &gone {
            counts[one.kind] += 1;
        }
        self.append_tombstones(&gone, &mut position, now).await?;
        if !entries.is_empty() {
            self.drop_entries(&entries).await?;
        }
        self.mend_projects(&gone).await?;
        self.forget_word_counts(&counted).await?;
        Ok(counts)
    }

    async fn remove_tool_uses(&mut self, numbers: &[i64]) -> Result<u64, StoreError> {
        if numbers.is_empty() {
            return Ok(0);
        }
        let gone: i64 = sqlx::query_scalar(
            "with gone as (
               delete from tool_uses where tenant_id = $1 and number = any ($2)
               returning event_id, private),
             ledger as (
               update events e set deleted = true, deleted_private = g.private from gone g
               where e.tenant_id = $1 and e.event_id = g.event_id),
             origins as (
               delete from imported i using gone g
               where i.tenant_id = $1 and i.event_id = g.event_id)
             select count(*) from gone",
        )
        .bind(self.tenant.key())
        .bind(numbers)
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(u64::try_from(gone).unwrap_or_default())
    }

    async fn lock_entries(&mut self, positions: &[i64]) -> Result<Vec<DroppedEntry>, StoreError> {
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        let entries = sqlx::query_as(
            "select position, event_id, project_id, author_id, list, task from work_entries
             where tenant_id = $1 and position = any ($2) order by position",
        )
        .bind(self.tenant.key())
        .bind(positions)
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(entries)
    }

    /// Locks records in the order of their ids; whoever changes one of them waits, or was waited
    /// for. Gives the projects whose words were counted over some of them.
    async fn lock_records(
        &mut self,
        records: &[(RecordKind, i64)],
    ) -> Result<BTreeSet<i32>, StoreError> {
        let mut counted = BTreeSet::new();
        for kind in [Kind::Observation, Kind::Summary, Kind::Prompt] {
            let numbers = numbers_of(kind, records);
            if numbers.is_empty() {
                continue;
            }
            let rows: Vec<(i32, bool)> = sqlx::query_as(
                "select project_id, private from records
                 where tenant_id = $1 and kind = $2 and number = any ($3)
                 order by number for update",
            )
            .bind(self.tenant.key())
            .bind(kind.code())
            .bind(numbers)
            .fetch_all(&mut *self.tx)
            .await?;
            // What is private, and prompts, were never counted.
            let team = rows.into_iter().filter(|(_, private)| !private);
            let team = team.filter(|_| kind != Kind::Prompt);
            counted.extend(team.map(|(project, _)| project));
        }
        Ok(counted)
    }

    /// Waits for counts of words that are under way, and lets none begin: one would bring back what
    /// it had read.
    async fn stop_word_counts(&mut self, projects: &BTreeSet<i32>) -> Result<(), StoreError> {
        for project in projects {
            sqlx::query("select pg_advisory_xact_lock($1, $2)")
                .bind(self.tenant.key())
                .bind(project)
                .execute(&mut *self.tx)
                .await?;
        }
        Ok(())
    }

    /// Takes the tenant's counter, to the end of the transaction; the position before the next.
    async fn hold_counter(&mut self) -> Result<i64, StoreError> {
        let position = sqlx::query_scalar(
            "select position from tenant_counters where tenant_id = $1 for no key update",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(position)
    }

    async fn remove_records(
        &mut self,
        kind: Kind,
        records: &[(RecordKind, i64)],
    ) -> Result<Vec<Gone>, StoreError> {
        let numbers = numbers_of(kind, records);
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let statement = match kind {
            Kind::Observation => removal!("observations"),
            Kind::Summary => removal!("summaries"),
            _ => removal!("prompts"),
        };
        let rows: Vec<GoneRow> = sqlx::query_as(statement)
            .bind(self.tenant.key())
            .bind(kind.code())
            .bind(&numbers)
            .fetch_all(&mut *self.tx)
            .await?;
        if kind == Kind::Observation {
            sqlx::query(
                "update tool_uses set observation = null
                 where tenant_id = $1 and observation = any ($2)",
            )
            .bind(self.tenant.key())
            .bind(&numbers)
            .execute(&mut *self.tx)
            .await?;
        }
        let gone = rows.into_iter().map(|row| Gone {
            event_id: row.event_id,
            kind,
            number: row.number,
            project: row.project_id,
            author: row.author_id,
            private: row.private,
        });
        Ok(gone.collect())
    }

    async fn append_tombstones(
        &mut self,
        gone: &[Gone],
        position: &mut i64,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let first = *position + 1;
        *position += i64::try_from(gone.len()).unwrap_or(i64::MAX);
        let events: Vec<Uuid> = gone.iter().map(|one| one.event_id).collect();
        sqlx::query(
            "with counter as (
               update tenant_counters set position = $10 where tenant_id = $1),
             ledger as (
               update events set deleted = true where tenant_id = $1 and event_id = any ($3)),
             origins as (
               delete from imported where tenant_id = $1 and event_id = any ($3))
             insert into tombstones (tenant_id, position, event_id, kind, number, project_id,
               author_id, private, at)
             select $1, $2 + u.nth - 1, u.event_id, u.kind, u.number, u.project_id, u.author_id,
               u.private, $9
             from unnest($3::uuid[], $4::smallint[], $5::bigint[], $6::int[], $7::int[],
               $8::bool[])
               with ordinality u (event_id, kind, number, project_id, author_id, private, nth)",
        )
        .bind(self.tenant.key())
        .bind(first)
        .bind(events)
        .bind(gone.iter().map(|one| one.kind.code()).collect::<Vec<_>>())
        .bind(gone.iter().map(|one| one.number).collect::<Vec<_>>())
        .bind(gone.iter().map(|one| one.project).collect::<Vec<_>>())
        .bind(gone.iter().map(|one| one.author).collect::<Vec<_>>())
        .bind(gone.iter().map(|one| one.private).collect::<Vec<_>>())
        .bind(now)
        .bind(*position)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Takes entries out of the log, now that they have their tombstones.
    async fn drop_entries(&mut self, entries: &[DroppedEntry]) -> Result<(), StoreError> {
        let positions: Vec<i64> = entries.iter().map(|entry| entry.position).collect();
        sqlx::query("select system_drop_work_entries($1)")
            .bind(positions)
            .execute(&mut *self.tx)
            .await?;
        self.refold_work_items(entries).await
    }

    /// Counts records out of their projects, and makes contexts that showed them stale.
    async fn mend_projects(&mut self, gone: &[Gone]) -> Result<(), StoreError> {
        let mut lost: BTreeMap<i32, i64> = BTreeMap::new();
        let mut shown = BTreeSet::new();
        for one in gone {
            if one.kind.record().is_some() {
                *lost.entry(one.project).or_default() += 1;
            }
            if one.kind != Kind::Prompt {
                shown.insert(one.project);
            }
        }
        let (losers, losses): (Vec<i32>, Vec<i64>) = lost.into_iter().unzip();
        sqlx::query(
            "with shown as (
               select project_id from projects
               where tenant_id = $1 and project_id = any ($4)
               union
               select merged_into from projects
               where tenant_id = $1 and project_id = any ($4) and merged_into is not null)
             update projects p set records = greatest(p.records - coalesce(l.lost, 0), 0),
               context_revision = p.context_revision + (s.project_id is not null)::int
             from (select project_id from shown union select id from unnest($2::int[]) id) t
             left join unnest($2::int[], $3::bigint[]) l (id, lost) on l.id = t.project_id
             left join shown s on s.project_id = t.project_id
             where p.tenant_id = $1 and p.project_id = t.project_id",
        )
        .bind(self.tenant.key())
        .bind(losers)
        .bind(losses)
        .bind(shown.into_iter().collect::<Vec<i32>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Forgets the words of projects: those that only removed records held must show no more. They
    /// are counted again as those of a new project are.
    async fn forget_word_counts(&mut self, projects: &BTreeSet<i32>) -> Result<(), StoreError> {
        for project in projects {
            sqlx::query(
                "with words as (delete from term_counts where tenant_id = $1 and project_id = $2)
                 update projects set counted_records = 0, team_records = 0, field_lengths = null
                 where tenant_id = $1 and project_id = $2",
            )
            .bind(self.tenant.key())
            .bind(project)
            .execute(&mut *self.tx)
            .await?;
        }
        Ok(())
    }
}

fn numbers_of(kind: Kind, records: &[(RecordKind, i64)]) -> Vec<i64> {
    let own = records
        .iter()
        .filter(|(own, _)| kind.record() == Some(*own));
    own.map(|(_, number)| *number).collect()
}
