//! Expiry: what is over its time is removed in small transactions (contract 20.3). Which days
//! count is `cairn_domain::retention`.

use cairn_domain::ids::RecordKind;
use cairn_domain::kind::Kind;
use chrono::{DateTime, Utc};

use crate::removal::Doomed;
use crate::said::Said;
use crate::{StoreError, TenantTx};

impl TenantTx {
    /// Removes up to `most` of a kind that arrived before a moment; how many that were. There may
    /// be more exactly if it was as many.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn expire(
        &mut self,
        kind: Kind,
        before: DateTime<Utc>,
        most: u32,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        self.plan_by_values().await?;
        let statement = match kind {
            Kind::Observation => {
                "select number from observations where tenant_id = $1 and arrived_at < $2 limit $3"
            }
            Kind::Summary => {
                "select number from summaries where tenant_id = $1 and arrived_at < $2 limit $3"
            }
            Kind::Prompt => {
                "select number from prompts where tenant_id = $1 and arrived_at < $2 limit $3"
            }
            Kind::ToolUse => {
                "select number from tool_uses where tenant_id = $1 and arrived_at < $2 limit $3"
            }
            Kind::WorkEntry => {
                "select position from work_entries where tenant_id = $1 and arrived_at < $2
                 limit $3"
            }
        };
        let numbers: Vec<i64> = sqlx::query_scalar(statement)
            .bind(self.tenant.key())
            .bind(before)
            .bind(i64::from(most))
            .fetch_all(&mut *self.tx)
            .await?;
        let mut doomed = Doomed::default();
        match kind.record() {
            Some(record) => doomed.records = numbers.into_iter().map(|n| (record, n)).collect(),
            None if kind == Kind::ToolUse => doomed.tool_uses = numbers,
            None => doomed.work_entries = numbers,
        }
        Ok(self.remove(&doomed, now).await?.total())
    }

    /// Removes up to `most` of what was private to members who were removed before a moment; how
    /// much that was. Prompts and tool uses count as private where the tenant keeps them to their
    /// authors; what was said last in their sessions always does. Once nothing is left of a member,
    /// they are not looked at again.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn expire_removed_members(
        &mut self,
        before: DateTime<Utc>,
        most: u32,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let members: Vec<i32> = sqlx::query_scalar(
            "select principal_id from members
             where tenant_id = $1 and removed_at < $2
               and (private_gone_at is null or private_gone_at < removed_at)
             order by principal_id",
        )
        .bind(self.tenant.key())
        .bind(before)
        .fetch_all(&mut *self.tx)
        .await?;
        if members.is_empty() {
            return Ok(0);
        }
        let doomed = self.private_of(&members, most).await?;
        if !doomed.is_empty() {
            return Ok(self.remove(&doomed, now).await?.total());
        }
        let said = Said {
            authors: Some(members.clone()),
            ..Said::default()
        };
        let forgotten = self.forget_said(&said, most).await?;
        if forgotten > 0 {
            return Ok(forgotten);
        }
        sqlx::query(
            "update members set private_gone_at = $3
             where tenant_id = $1 and principal_id = any ($2)",
        )
        .bind(self.tenant.key())
        .bind(&members)
        .bind(now)
        .execute(&mut *self.tx)
        .await?;
        Ok(0)
    }

    async fn private_of(&mut self, members: &[i32], most: u32) -> Result<Doomed, StoreError> {
        self.plan_by_values().await?;
        let records: Vec<(i16, i64)> = sqlx::query_as(
            "select kind, number from records
             where tenant_id = $1 and author_id = any ($2)
               and (private or kind = 2 and (select t.settings ->> 'prompt_visibility'
                 is distinct from 'team' from tenants t where t.tenant_id = $1))
             limit $3",
        )
        .bind(self.tenant.key())
        .bind(members)
        .bind(i64::from(most))
        .fetch_all(&mut *self.tx)
        .await?;
        let tool_uses: Vec<i64> = sqlx::query_scalar(
            "select number from tool_uses
             where tenant_id = $1 and author_id = any ($2)
               and (private or (select coalesce(t.settings ->> 'evidence_visibility', 'team')
                 <> 'team' from tenants t where t.tenant_id = $1))
             limit $3",
        )
        .bind(self.tenant.key())
        .bind(members)
        .bind(i64::from(most))
        .fetch_all(&mut *self.tx)
        .await?;
        let records = records.into_iter().map(|(kind, number)| {
            let known = RecordKind::from_code(kind);
            let known = known.ok_or_else(|| StoreError::inconsistent("records", "kind", number));
            Ok((known?, number))
        });
        Ok(Doomed {
            records: records.collect::<Result<_, StoreError>>()?,
            tool_uses,
            work_entries: Vec::new(),
        })
    }

    /// Removes lines of the audit log that are over their time, among the oldest `most`; how many
    /// that were. How long they are kept is decided in the database, which lets the service take
    /// away no others.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn expire_audit(&mut self, most: u32) -> Result<u64, StoreError> {
        let gone: i64 = sqlx::query_scalar("select system_expire_audit($1)")
            .bind(i32::try_from(most).unwrap_or(i32::MAX))
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(u64::try_from(gone).unwrap_or_default())
    }

    /// From here on statements are planned for the values they are given: which index finds the
    /// oldest rows depends on how many there are.
    pub(crate) async fn plan_by_values(&mut self) -> Result<(), StoreError> {
        sqlx::query("set local plan_cache_mode = force_custom_plan")
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }
}
