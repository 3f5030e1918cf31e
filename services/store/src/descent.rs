//! Descent: a key that was made with a grant, with a service key, or with a key that has a parent
//! itself, ends with it, and so does all that was made with that key. A member's own key has no
//! parent: what is made with it is the member's.

use cairn_domain::ids::PrincipalId;
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// What becomes of keys that are made with a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descent {
    /// They stand for themselves.
    Free,
    /// They end with it.
    Bound,
}

impl TenantTx {
    /// What becomes of a key that is made with a key or a grant; none if that is over. Until the
    /// transaction ends nobody revokes it: whoever does then finds the key.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn descent(
        &mut self,
        credential: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Option<Descent>, StoreError> {
        let grant: Option<i32> = sqlx::query_scalar(
            "select grant_id from grants
             where tenant_id = $1 and uid = $2 and revoked_at is null and expires_at > $3
             for share",
        )
        .bind(self.tenant.key())
        .bind(credential)
        .bind(now)
        .fetch_optional(&mut *self.tx)
        .await?;
        if grant.is_some() {
            return Ok(Some(Descent::Bound));
        }
        let is_bound: Option<bool> = sqlx::query_scalar(
            "select c.parent is not null or p.kind = 'key'
             from credentials c
             join principals p on p.tenant_id = $1 and p.principal_id = c.principal_id
             where c.tenant_id = $1 and c.uid = $2 and c.revoked_at is null and c.expires_at > $3
             for share of c",
        )
        .bind(self.tenant.key())
        .bind(credential)
        .bind(now)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(is_bound.map(|is_bound| match is_bound {
            true => Descent::Bound,
            false => Descent::Free,
        }))
    }

    /// Revokes what was made with credentials that were just revoked, and what was made with
    /// that, and writes each down in the audit log.
    pub(crate) async fn revoke_descendants(
        &mut self,
        mut parents: Vec<Uuid>,
        actor: Option<PrincipalId>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        // Each generation is looked for once the one before is revoked: a key that was being made
        // with one of them meanwhile is there by then.
        while !parents.is_empty() {
            let revoked: Vec<(Uuid, String, Uuid)> = sqlx::query_as(
                "update credentials set revoked_at = $3
                 where tenant_id = $1 and parent = any ($2) and revoked_at is null
                 returning uid, key_id, parent",
            )
            .bind(self.tenant.key())
            .bind(&parents)
            .bind(now)
            .fetch_all(&mut *self.tx)
            .await?;
            for (_, key_id, parent) in &revoked {
                let why = json!({ "made_with": parent });
                self.append_audit(actor, "key.revoke", key_id, why, now)
                    .await?;
            }
            parents = revoked.into_iter().map(|(uid, ..)| uid).collect();
        }
        Ok(())
    }
}
