//! Refresh tokens: each is used once, under a lock on its grant, so that two replicas that are
//! shown the same one at the same moment answer the same successor.

use cairn_domain::grant::{Life, Shown, Turn};
use cairn_domain::limits;
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// A refresh token that is shown, and the successor that it would get.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// The grant that it names.
    pub grant: Uuid,
    /// Who shows it: a token is good for the program that got it.
    pub client_id: &'a str,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// What makes a successor out of the token.
    pub salt: [u8; 32],
    /// SHA-256 of that successor.
    pub successor: [u8; 32],
    /// The present moment.
    pub now: DateTime<Utc>,
}

/// What became of a refresh token that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The successor is its successor.
    Done {
        /// When the grant ends.
        ends_at: DateTime<Utc>,
    },
    /// It has a successor already, which this salt makes out of it.
    Repeated {
        /// The salt.
        salt: [u8; 32],
        /// When the grant ends.
        ends_at: DateTime<Utc>,
    },
    /// It was used before: the grant has ended now.
    Reused,
    /// It is worth nothing.
    Refused,
}

type GrantRow = (
    i32,
    String,
    DateTime<Utc>,
    DateTime<Utc>,
    Option<DateTime<Utc>>,
    bool,
);

/// When a token was used, and what makes its successor.
type TokenRow = (Option<DateTime<Utc>>, Option<Vec<u8>>);

impl TenantTx {
    /// Uses a refresh token up, or does what it means that it was used before. Ending a grant is
    /// written down in the audit log.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn rotate_refresh(
        &mut self,
        presented: &Presented<'_>,
    ) -> Result<Rotation, StoreError> {
        let now = presented.now;
        let grant: Option<GrantRow> = sqlx::query_as(
            "select g.grant_id, g.client_id, g.last_used_at, g.expires_at, g.revoked_at,
               m.removed_at is not null
             from grants g
             join members m on m.tenant_id = g.tenant_id and m.principal_id = g.principal_id
             where g.tenant_id = $1 and g.uid = $2
             for update of g",
        )
        .bind(self.tenant.key())
        .bind(presented.grant)
        .fetch_optional(&mut *self.tx)
        .await?;
        let Some((grant, client_id, last_used_at, expires_at, revoked_at, is_removed)) = grant
        else {
            return Ok(Rotation::Refused);
        };
        if client_id != presented.client_id {
            return Ok(Rotation::Refused);
        }
        let life = Life {
            last_used_at,
            expires_at,
            revoked: revoked_at.is_some() || is_removed,
        };
        let token: Option<TokenRow> = sqlx::query_as(
            "select used_at, salt from refresh_tokens
             where tenant_id = $1 and grant_id = $2 and token_hash = $3",
        )
        .bind(self.tenant.key())
        .bind(grant)
        .bind(presented.hash.as_slice())
        .fetch_optional(&mut *self.tx)
        .await?;
        let shown = match &token {
            None => Shown::Unknown,
            Some((None, _)) => Shown::Fresh,
            Some((Some(at), _)) => Shown::Used(*at),
        };
        match life.turn(shown, now) {
            Turn::Refuse => Ok(Rotation::Refused),
            Turn::Rotate => self.rotate(grant, presented, life).await,
            Turn::Repeat => {
                let salt = token.and_then(|(_, salt)| salt?.try_into().ok());
                let odd = || StoreError::inconsistent("refresh_tokens", "salt", presented.grant);
                Ok(Rotation::Repeated {
                    salt: salt.ok_or_else(odd)?,
                    ends_at: life.ends_at(),
                })
            }
            Turn::Revoke => {
                sqlx::query(
                    "update grants set revoked_at = $3 where tenant_id = $1 and grant_id = $2",
                )
                .bind(self.tenant.key())
                .bind(grant)
                .bind(now)
                .execute(&mut *self.tx)
                .await?;
                let (target, why) = (presented.grant.to_string(), json!({ "why": "reuse" }));
                self.append_audit(None, "grant.revoke", &target, why, now)
                    .await?;
                self.revoke_descendants(vec![presented.grant], None, now)
                    .await?;
                Ok(Rotation::Reused)
            }
        }
    }

    /// Whether a grant has this refresh token, used or not.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn has_refresh(&mut self, grant: Uuid, hash: [u8; 32]) -> Result<bool, StoreError> {
        let has = sqlx::query_scalar(
            "select exists (
               select from refresh_tokens t
               join grants g on g.tenant_id = t.tenant_id and g.grant_id = t.grant_id
               where t.tenant_id = $1 and g.uid = $2 and t.token_hash = $3)",
        )
        .bind(self.tenant.key())
        .bind(grant)
        .bind(hash.as_slice())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(has)
    }

    async fn rotate(
        &mut self,
        grant: i32,
        presented: &Presented<'_>,
        life: Life,
    ) -> Result<Rotation, StoreError> {
        // What was used so long ago would be over by itself, had it not been used.
        sqlx::query(
            "delete from refresh_tokens
             where tenant_id = $1 and grant_id = $2 and used_at < $3",
        )
        .bind(self.tenant.key())
        .bind(grant)
        .bind(presented.now - limits::GRANT_IDLE)
        .execute(&mut *self.tx)
        .await?;
        sqlx::query(
            "with used as (
               update refresh_tokens set used_at = $4, salt = $5
               where tenant_id = $1 and grant_id = $2 and token_hash = $3),
             fresh as (
               insert into refresh_tokens (grant_id, token_hash, issued_at) values ($2, $6, $4))
             update grants set last_used_at = $4 where tenant_id = $1 and grant_id = $2",
        )
        .bind(self.tenant.key())
        .bind(grant)
        .bind(presented.hash.as_slice())
        .bind(presented.now)
        .bind(presented.salt.as_slice())
        .bind(presented.successor.as_slice())
        .execute(&mut *self.tx)
        .await?;
        let life = Life {
            last_used_at: presented.now,
            ..life
        };
        Ok(Rotation::Done {
            ends_at: life.ends_at(),
        })
    }
}
