//! Credentials of one tenant: making, revoking and marking as used. Looking one up by its key id
//! is a call across tenants and stands in `system_tx.rs`.

use cairn_domain::ids::{PrincipalId, ProjectId};
use cairn_domain::scope::Scopes;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// A key about to be stored. Its secret is already gone; only the hash is here.
#[derive(Clone, Debug)]
pub struct NewCredential<'a> {
    /// 12 characters of `[a-z2-7]`, unique in the service.
    pub key_id: &'a str,
    /// SHA-256 of key id, NUL, secret.
    pub secret_hash: [u8; 32],
    /// What people call it.
    pub name: &'a str,
    /// Whose it is.
    pub owner: KeyOwner,
    /// What it carries.
    pub scopes: Scopes,
    /// The only project it may see, if limited.
    pub project: Option<ProjectId>,
    /// From when on it is worth nothing.
    pub expires_at: DateTime<Utc>,
    /// The present moment.
    pub now: DateTime<Utc>,
}

/// Whose a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOwner {
    /// A member's.
    Member(PrincipalId),
    /// The tenant's; a principal `key:<key id>` is made for it.
    Service,
}

/// A line of the audit log about what was asked for and changed nothing.
#[derive(Clone, Debug)]
pub struct Noted<'a> {
    /// Who asked; none for the operator.
    pub actor: Option<PrincipalId>,
    /// What for.
    pub action: &'static str,
    /// Of what.
    pub target: &'a str,
    /// How much of it.
    pub detail: serde_json::Value,
    /// When.
    pub at: DateTime<Utc>,
}

impl TenantTx {
    /// Stores a key and writes it down in the audit log.
    ///
    /// # Errors
    /// `Conflict` if the key id exists.
    pub async fn insert_credential(&mut self, new: &NewCredential<'_>) -> Result<(), StoreError> {
        let (principal, actor) = match new.owner {
            KeyOwner::Member(member) => (member.key, Some(member)),
            KeyOwner::Service => (self.insert_key_principal(new.key_id, new.now).await?, None),
        };
        sqlx::query(
            "insert into credentials (key_id, secret_hash, name, principal_id, scopes, project_id,
               created_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(new.key_id)
        .bind(new.secret_hash.as_slice())
        .bind(new.name)
        .bind(principal)
        .bind(new.scopes.names())
        .bind(new.project.map(|project| project.key))
        .bind(new.now)
        .bind(new.expires_at)
        .execute(&mut *self.tx)
        .await?;
        let detail = json!({ "name": new.name, "scopes": new.scopes.names() });
        self.append_audit(actor, "key.create", new.key_id, detail, new.now)
            .await
    }

    /// Revokes a key at once and for good. `false` if there is none of this id; revoking again
    /// changes nothing.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn revoke_credential(
        &mut self,
        key_id: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let known: Option<bool> = sqlx::query_scalar(
            "update credentials c set revoked_at = coalesce(c.revoked_at, $3)
             from credentials old
             where c.tenant_id = $1 and c.key_id = $2
               and old.tenant_id = c.tenant_id and old.credential_id = c.credential_id
             returning old.revoked_at is null",
        )
        .bind(self.tenant.key())
        .bind(key_id)
        .bind(now)
        .fetch_optional(&mut *self.tx)
        .await?;
        if known == Some(true) {
            self.append_audit(None, "key.revoke", key_id, json!({}), now)
                .await?;
        }
        Ok(known.is_some())
    }

    /// Notes that a key was used, to the hour: at most one write an hour.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn touch_credential(
        &mut self,
        credential: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
        sqlx::query(
            "update credentials set last_used_at = $3
             where tenant_id = $1 and uid = $2
               and (last_used_at is null or last_used_at < $3)",
        )
        .bind(self.tenant.key())
        .bind(credential)
        .bind(hour)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn insert_key_principal(
        &mut self,
        key_id: &str,
        now: DateTime<Utc>,
    ) -> Result<i32, StoreError> {
        let id = sqlx::query_scalar(
            "insert into principals (kind, name, created_at) values ('key', 'key:' || $1, $2)
             returning principal_id",
        )
        .bind(key_id)
        .bind(now)
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(id)
    }

    /// Writes a line of the audit log; `actor` is none for the operator.
    pub(crate) async fn append_audit(
        &mut self,
        actor: Option<PrincipalId>,
        action: &'static str,
        target: &str,
        detail: serde_json::Value,
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
