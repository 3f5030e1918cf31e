//! Usage: what each member asked for and stored, day by day.
//!
//! Events and bytes are counted by the transaction that stores them (`events/usage.rs`), so they
//! are exact. Requests are counted by each replica and handed in some seconds later.

use cairn_domain::ids::PrincipalId;
use cairn_domain::quota::Quota;
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{StoreError, TenantTx};

/// What one member used on one day.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct DayUsage {
    /// The day, of UTC.
    pub day: NaiveDate,
    /// A handle, or `key:<key id>`.
    pub member: String,
    /// Requests that were let in.
    pub requests: i64,
    /// Events that were stored.
    pub events: i64,
    /// Bytes that those events left.
    pub bytes: i64,
    /// Tokens that observers spent on their work.
    pub tokens: i64,
}

/// Where a page of usage ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePlace {
    /// The day of its last row.
    pub day: NaiveDate,
    /// The member of its last row.
    pub member: String,
}

/// Which days, and how many rows of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsagePick {
    /// The first day.
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    /// Where the page before ended.
    pub after: Option<UsagePlace>,
    /// Rows at most.
    pub limit: u32,
}

impl TenantTx {
    /// Adds requests that members made.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn count_requests(
        &mut self,
        counts: &[(PrincipalId, NaiveDate, u32)],
    ) -> Result<(), StoreError> {
        // In one order, so that two replicas cannot lock each other out.
        sqlx::query(
            "insert into usage_days as d (tenant_id, day, principal_id, requests)
             select $1, u.day, u.principal_id, u.requests
             from unnest($2::date[], $3::int[], $4::bigint[]) u (day, principal_id, requests)
             join principals p on p.tenant_id = $1 and p.principal_id = u.principal_id
             order by u.day, u.principal_id
             on conflict (tenant_id, day, principal_id)
               do update set requests = d.requests + excluded.requests",
        )
        .bind(self.tenant.key())
        .bind(counts.iter().map(|(_, day, _)| *day).collect::<Vec<_>>())
        .bind(counts.iter().map(|(who, ..)| who.key).collect::<Vec<_>>())
        .bind(
            counts
                .iter()
                .map(|(.., count)| i64::from(*count))
                .collect::<Vec<_>>(),
        )
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Adds tokens that an observer spent on what a member did.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn count_tokens(
        &mut self,
        principal: PrincipalId,
        tokens: u32,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "insert into usage_days as d (tenant_id, day, principal_id, tokens)
             values ($1, $2, $3, $4)
             on conflict (tenant_id, day, principal_id)
               do update set tokens = d.tokens + excluded.tokens",
        )
        .bind(self.tenant.key())
        .bind(now.date_naive())
        .bind(principal.key)
        .bind(i64::from(tokens))
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Refuses once the tokens of a month are spent: what an observer asks before it works.
    ///
    /// # Errors
    /// `OverQuota`; as any call of the store.
    pub async fn require_tokens(&mut self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let today = now.date_naive();
        let first = today.with_day(1).unwrap_or(today);
        let spent: i64 = sqlx::query_scalar(
            "select coalesce(sum(tokens), 0)::bigint from usage_days
             where tenant_id = $1 and day >= $2",
        )
        .bind(self.tenant.key())
        .bind(first)
        .fetch_one(&mut *self.tx)
        .await?;
        self.require_quota(Quota::ObserverTokensAMonth, spent.saturating_add(1))
            .await
    }

    /// Removes up to `most` rows of usage of days before one; how many that were.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn expire_usage(&mut self, before: NaiveDate, most: u32) -> Result<u64, StoreError> {
        let gone = sqlx::query(
            "delete from usage_days
             where tenant_id = $1 and (day, principal_id) in (
               select day, principal_id from usage_days
               where tenant_id = $1 and day < $2
               order by day limit $3)",
        )
        .bind(self.tenant.key())
        .bind(before)
        .bind(i64::from(most))
        .execute(&mut *self.tx)
        .await?;
        Ok(gone.rows_affected())
    }

    /// What members used, the newest day first, and in a day by their names.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn usage(&mut self, pick: &UsagePick) -> Result<Vec<DayUsage>, StoreError> {
        let after = pick.after.as_ref();
        let rows = sqlx::query_as(
            "select d.day, p.name as member, d.requests, d.events, d.bytes, d.tokens
             from usage_days d
             join principals p on p.tenant_id = d.tenant_id and p.principal_id = d.principal_id
             where d.tenant_id = $1 and d.day between $2 and $3
               and ($4::date is null or d.day < $4 or (d.day = $4 and p.name > $5))
             order by d.day desc, p.name
             limit $6",
        )
        .bind(self.tenant.key())
        .bind(pick.from)
        .bind(pick.to)
        .bind(after.map(|place| place.day))
        .bind(after.map(|place| place.member.as_str()))
        .bind(i64::from(pick.limit))
        .fetch_all(&mut *self.tx)
        .await?;
        Ok(rows)
    }
}
