//! Purge: what an admin has removed for good (contract 20.3). It goes span by span through what
//! stood when it began; whoever begins again finds what is left.

use cairn_domain::ids::{PrincipalId, RecordKind};
use cairn_domain::kind::{Counts, Kind};
use cairn_domain::limits;
use cairn_domain::project::ProjectSet;
use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::{FromRow, Postgres};

use crate::records::row::project_keys;
use crate::removal::Doomed;
use crate::{StoreError, TenantTx};

/// What is to be purged: what meets all of it, private or not.
#[derive(Clone, Debug)]
pub struct PurgeFilter {
    /// Of these projects.
    pub projects: ProjectSet,
    /// Of this author.
    pub author: Option<PrincipalId>,
    /// What happened before this.
    pub before: Option<DateTime<Utc>>,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
}

/// A part of what a tenant has: positions, and numbers of tool uses, beyond the first of each pair
/// up to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Positions.
    pub positions: (i64, i64),
    /// Numbers of tool uses.
    pub tool_uses: (i64, i64),
}

impl Span {
    /// Cuts it into parts that one statement can look through.
    #[must_use]
    pub fn parts(self) -> Vec<Self> {
        let length = |(from, to): (i64, i64)| to - from;
        let longest = length(self.positions).max(length(self.tool_uses));
        let count = longest.div_euclid(limits::PURGE_SPAN) + 1;
        let part = |(from, to): (i64, i64), nth: i64| {
            let at = |nth: i64| (from + nth * limits::PURGE_SPAN).min(to);
            (at(nth), at(nth + 1))
        };
        let parts = (0..count).map(|nth| Self {
            positions: part(self.positions, nth),
            tool_uses: part(self.tool_uses, nth),
        });
        parts.collect()
    }
}

/// Who purges, for the audit log.
#[derive(Clone, Copy, Debug)]
pub struct Purger<'a> {
    /// Who; none for the operator.
    pub actor: Option<PrincipalId>,
    /// What they asked for, in words.
    pub asked: &'a str,
    /// When.
    pub at: DateTime<Utc>,
}

/// What meets a filter within a span: binds tenant, projects, author, before, then the span.
macro_rules! doomed {
    ($columns:literal, $table:literal, $place:literal, $rest:literal) => {
        concat!(
            "select ",
            $columns,
            " from ",
            $table,
            " d where d.tenant_id = $1 and ($2::int[] is null or d.project_id = any ($2))
               and ($3::int is null or d.author_id = $3)
               and ($4::timestamptz is null or d.at < $4)
               and d.",
            $place,
            " > $5 and d.",
            $place,
            " <= $6 ",
            $rest
        )
    };
}

impl TenantTx {
    /// All that the tenant has now.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn whole_span(&mut self) -> Result<Span, StoreError> {
        let (position, tool_use): (i64, i64) = sqlx::query_as(
            "select c.position, t.tool_use from tenant_counters c
             join tool_use_counters t on t.tenant_id = c.tenant_id where c.tenant_id = $1",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(Span {
            positions: (0, position),
            tool_uses: (0, tool_use),
        })
    }

    /// The principal of this name, removed or not: a handle or `key:<key id>`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_author(&mut self, name: &str) -> Result<Option<PrincipalId>, StoreError> {
        let row: Option<(i32, uuid::Uuid)> = sqlx::query_as(
            "select principal_id, uid from principals where tenant_id = $1 and name = $2",
        )
        .bind(self.tenant.key())
        .bind(name)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(row.map(|(key, uuid)| PrincipalId { key, uuid }))
    }

    /// How much of a span meets a filter.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn count_purge(
        &mut self,
        filter: &PurgeFilter,
        span: Span,
    ) -> Result<Counts, StoreError> {
        let mut counts = Counts::default();
        let kinds = record_codes(&filter.kinds);
        if !kinds.is_empty() {
            let statement = doomed!(
                "d.kind, count(*)",
                "records",
                "position",
                "and d.kind = any ($7) group by d.kind"
            );
            let rows: Vec<(i16, i64)> = self
                .asked(statement, filter, span.positions)
                .bind(kinds)
                .fetch_all(&mut *self.tx)
                .await?;
            for (kind, count) in rows {
                if let Some(kind) = Kind::from_code(kind) {
                    counts[kind] = u64::try_from(count).unwrap_or_default();
                }
            }
        }
        let others = [
            (
                Kind::ToolUse,
                doomed!("count(*)", "tool_uses", "number", ""),
                span.tool_uses,
            ),
            (
                Kind::WorkEntry,
                doomed!("count(*)", "work_entries", "position", ""),
                span.positions,
            ),
        ];
        for (kind, statement, part) in others {
            if filter.kinds.contains(&kind) {
                let (count,): (i64,) = self
                    .asked(statement, filter, part)
                    .fetch_one(&mut *self.tx)
                    .await?;
                counts[kind] = u64::try_from(count).unwrap_or_default();
            }
        }
        Ok(counts)
    }

    /// Removes some of a span that meets a filter, and writes down in the audit log how much that
    /// was. Nothing is left in the span once it removes nothing.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn purge_some(
        &mut self,
        filter: &PurgeFilter,
        span: Span,
        purger: Purger<'_>,
    ) -> Result<Counts, StoreError> {
        let doomed = self.find_doomed(filter, span).await?;
        let counts = self.remove(&doomed, purger.at).await?;
        if counts.total() > 0 {
            let removed = Kind::ALL.into_iter().filter(|kind| counts[*kind] > 0);
            let removed: serde_json::Map<_, _> = removed
                .map(|kind| (kind.name().to_owned(), json!(counts[kind])))
                .collect();
            self.append_audit(
                purger.actor,
                "purge",
                purger.asked,
                json!({ "removed": removed }),
                purger.at,
            )
            .await?;
        }
        Ok(counts)
    }

    async fn find_doomed(
        &mut self,
        filter: &PurgeFilter,
        span: Span,
    ) -> Result<Doomed, StoreError> {
        let mut doomed = Doomed::default();
        let kinds = record_codes(&filter.kinds);
        if !kinds.is_empty() {
            let statement = doomed!(
                "d.kind, d.number",
                "records",
                "position",
                "and d.kind = any ($7) order by d.position limit $8"
            );
            let rows: Vec<(i16, i64)> = self
                .asked(statement, filter, span.positions)
                .bind(kinds)
                .bind(i64::from(limits::REMOVED_AT_ONCE))
                .fetch_all(&mut *self.tx)
                .await?;
            let known = |(kind, number)| Some((RecordKind::from_code(kind)?, number));
            doomed.records = rows.into_iter().filter_map(known).collect();
        }
        if filter.kinds.contains(&Kind::ToolUse) {
            let statement = doomed!(
                "d.number",
                "tool_uses",
                "number",
                "order by d.number limit $7"
            );
            doomed.tool_uses = self
                .doomed_numbers(statement, filter, span.tool_uses)
                .await?;
        }
        if filter.kinds.contains(&Kind::WorkEntry) {
            let statement = doomed!(
                "d.position",
                "work_entries",
                "position",
                "order by d.position limit $7"
            );
            doomed.work_entries = self
                .doomed_numbers(statement, filter, span.positions)
                .await?;
        }
        Ok(doomed)
    }

    async fn doomed_numbers(
        &mut self,
        statement: &'static str,
        filter: &PurgeFilter,
        part: (i64, i64),
    ) -> Result<Vec<i64>, StoreError> {
        let numbers: Vec<(i64,)> = self
            .asked(statement, filter, part)
            .bind(i64::from(limits::REMOVED_AT_ONCE))
            .fetch_all(&mut *self.tx)
            .await?;
        Ok(numbers.into_iter().map(|(number,)| number).collect())
    }

    /// A statement of `doomed!` with its first six parameters bound; its own follow.
    fn asked<'q, O>(
        &self,
        statement: &'static str,
        filter: &PurgeFilter,
        (from, to): (i64, i64),
    ) -> QueryAs<'q, Postgres, O, PgArguments>
    where
        O: for<'r> FromRow<'r, PgRow>,
    {
        sqlx::query_as(statement)
            .bind(self.tenant.key())
            .bind(project_keys(&filter.projects))
            .bind(filter.author.map(|author| author.key))
            .bind(filter.before)
            .bind(from)
            .bind(to)
    }
}

fn record_codes(kinds: &[Kind]) -> Vec<i16> {
    let records = kinds.iter().filter(|kind| kind.record().is_some());
    records.map(|kind| kind.code()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_span_cover_it_once() {
        let whole = Span {
            positions: (0, 2 * limits::PURGE_SPAN + 1),
            tool_uses: (0, 5),
        };
        let parts = whole.parts();
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0].tool_uses, (0, 5));
        assert_eq!(parts[1].tool_uses, (5, 5));
        for pair in parts.windows(2) {
            assert_eq!(pair[0].positions.1, pair[1].positions.0);
        }
        assert_eq!(parts[2].positions.1, whole.positions.1);
    }
}
