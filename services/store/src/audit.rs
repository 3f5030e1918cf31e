//! The audit log of one tenant: a line for each act of management and each read of evidence, in the
//! transaction of what it records, and reading it back. Lines are never changed.

use cairn_domain::ids::PrincipalId;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;

use crate::{StoreError, TenantTx};

/// Which lines are wanted.
#[derive(Clone, Debug, Default)]
pub struct AuditPick<'a> {
    /// Not before this moment.
    pub from: Option<DateTime<Utc>>,
    /// Before this moment.
    pub until: Option<DateTime<Utc>>,
    /// Of what this member or key did: a handle, or `key:<key id>`.
    pub actor: Option<&'a str>,
    /// Of this action.
    pub action: Option<&'a str>,
    /// Behind this line.
    pub after: Option<AuditPlace>,
    /// At most so many.
    pub limit: u32,
}

/// The place of a line in the log, which no two share: its microsecond and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditPlace(i64, i64);

/// A line of the log.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct AuditLine {
    audit_id: i64,
    /// When.
    pub at: DateTime<Utc>,
    /// Who: a handle, `key:<key id>`, or none for the operator.
    pub actor: Option<String>,
    /// What was done, `<noun>.<verb>`.
    pub action: String,
    /// To what.
    pub target: String,
    /// How.
    pub detail: Value,
}

impl AuditLine {
    /// Its place.
    #[must_use]
    pub const fn place(&self) -> AuditPlace {
        AuditPlace(self.at.timestamp_micros(), self.audit_id)
    }
}

/// Lines behind a place, the newest first. One statement for each set of conditions: each has an
/// index that gives the order.
macro_rules! lines {
    ($($condition:literal),*) => {
        concat!(
            "select a.audit_id, a.at, p.name as actor, a.action, a.target, a.detail
             from audit a
             left join principals p on p.tenant_id = $1 and p.principal_id = a.actor_id
             where a.tenant_id = $1 and a.at >= $2 and a.at < $3
               and (a.at, a.audit_id) < ($4, $5) and $6::text is not distinct from $6
               and $7::text is not distinct from $7 ",
            $($condition,)*
            " order by a.at desc, a.audit_id desc limit $8"
        )
    };
}

const ALL: &str = lines!();
const BY_ACTOR: &str = lines!(
    "and a.actor_id = (select q.principal_id from principals q \
       where q.tenant_id = $1 and q.name = $6)"
);
const OF_ACTION: &str = lines!("and a.action = $7");
const OF_ACTION_BY_ACTOR: &str = lines!(
    "and a.actor_id = (select q.principal_id from principals q \
       where q.tenant_id = $1 and q.name = $6) ",
    "and a.action = $7"
);

impl TenantTx {
    /// The lines that are wanted, the newest first.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn list_audit(&mut self, pick: &AuditPick<'_>) -> Result<Vec<AuditLine>, StoreError> {
        let statement = match (pick.actor, pick.action) {
            (None, None) => ALL,
            (Some(_), None) => BY_ACTOR,
            (None, Some(_)) => OF_ACTION,
            (Some(_), Some(_)) => OF_ACTION_BY_ACTOR,
        };
        let last = DateTime::from_timestamp(253_402_300_799, 0).unwrap_or_default();
        let AuditPlace(micros, number) = pick.after.unwrap_or(AuditPlace(i64::MAX, i64::MAX));
        let before = DateTime::from_timestamp_micros(micros).unwrap_or(last);
        Ok(sqlx::query_as(statement)
            .bind(self.tenant.key())
            .bind(pick.from.unwrap_or(DateTime::UNIX_EPOCH))
            .bind(pick.until.unwrap_or(last))
            .bind(before)
            .bind(number)
            .bind(pick.actor)
            .bind(pick.action)
            .bind(i64::from(pick.limit))
            .fetch_all(&mut *self.tx)
            .await?)
    }

    /// Writes a line of the audit log; `actor` is none for the operator.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn append_audit(
        &mut self,
        actor: Option<PrincipalId>,
        action: &'static str,
        target: &str,
        detail: Value,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "insert into audit (at, actor_id, action, target, detail) values ($1, $2, $3, $4, $5)",
        )
        .bind(now)
        .bind(actor.map(|principal| principal.key))
        .bind(action)
        .bind(target)
        .bind(detail)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
