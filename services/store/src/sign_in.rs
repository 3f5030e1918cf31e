//! Sign-in of members on pages: codes that an admin makes, and browsers that are signed in. Which
//! tenant one belongs to is found across tenants, in `system_tx/sign_in.rs`.

use cairn_domain::ids::PrincipalId;
use cairn_domain::scope::Role;
use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

/// A member who is signed in on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The member.
    pub member: PrincipalId,
    /// The member's handle.
    pub handle: String,
    /// The member's role.
    pub role: Role,
    /// The tenant's name.
    pub tenant_name: String,
}

impl TenantTx {
    /// Stores a one-time code with which a member signs in, and writes it down in the audit log.
    /// Codes that were made for the member before are worth nothing any more.
    ///
    /// # Errors
    /// `Conflict` if the code exists.
    pub async fn insert_sign_in_code(
        &mut self,
        (member, handle): (PrincipalId, &str),
        actor: Option<PrincipalId>,
        code_hash: [u8; 32],
        (now, expires_at): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<(), StoreError> {
        sqlx::query("delete from sign_in_codes where tenant_id = $1 and principal_id = $2")
            .bind(self.tenant.key())
            .bind(member.key)
            .execute(&mut *self.tx)
            .await?;
        sqlx::query(
            "insert into sign_in_codes (code_hash, principal_id, created_at, expires_at)
             values ($1, $2, $3, $4)",
        )
        .bind(code_hash.as_slice())
        .bind(member.key)
        .bind(now)
        .bind(expires_at)
        .execute(&mut *self.tx)
        .await?;
        self.append_audit(actor, "member.code", handle, json!({}), now)
            .await
    }

    /// Uses a sign-in code up; whose it was, if it was good.
    ///
    /// # Errors
    /// `Inconsistent` if the member's row holds a role of no meaning.
    pub async fn redeem_sign_in_code(
        &mut self,
        code_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<Option<SignedIn>, StoreError> {
        let row: Option<(i32, DateTime<Utc>)> = sqlx::query_as(
            "delete from sign_in_codes where tenant_id = $1 and code_hash = $2
             returning principal_id, expires_at",
        )
        .bind(self.tenant.key())
        .bind(code_hash.as_slice())
        .fetch_optional(&mut *self.tx)
        .await?;
        match row {
            Some((member, expires_at)) if expires_at > now => self.signed_in(member).await,
            _ => Ok(None),
        }
    }

    /// Signs a browser in, and writes it down in the audit log.
    ///
    /// # Errors
    /// `Conflict` if the session exists.
    pub async fn insert_browser_session(
        &mut self,
        member: PrincipalId,
        session_hash: [u8; 32],
        (now, expires_at): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<(), StoreError> {
        sqlx::query(
            "insert into browser_sessions (session_hash, principal_id, created_at, expires_at)
             values ($1, $2, $3, $4)",
        )
        .bind(session_hash.as_slice())
        .bind(member.key)
        .bind(now)
        .bind(expires_at)
        .execute(&mut *self.tx)
        .await?;
        let target = member.uuid.to_string();
        self.append_audit(Some(member), "member.sign_in", &target, json!({}), now)
            .await
    }

    /// Who is signed in with a browser; none if it is over or its member was removed.
    ///
    /// # Errors
    /// `Inconsistent` if the member's row holds a role of no meaning.
    pub async fn find_browser_session(
        &mut self,
        session_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<Option<SignedIn>, StoreError> {
        let member: Option<i32> = sqlx::query_scalar(
            "select principal_id from browser_sessions
             where tenant_id = $1 and session_hash = $2 and expires_at > $3",
        )
        .bind(self.tenant.key())
        .bind(session_hash.as_slice())
        .bind(now)
        .fetch_optional(&mut *self.tx)
        .await?;
        match member {
            Some(member) => self.signed_in(member).await,
            None => Ok(None),
        }
    }

    /// Signs a browser out.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn delete_browser_session(
        &mut self,
        session_hash: [u8; 32],
    ) -> Result<(), StoreError> {
        sqlx::query("delete from browser_sessions where tenant_id = $1 and session_hash = $2")
            .bind(self.tenant.key())
            .bind(session_hash.as_slice())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    /// A member as one who is signed in; none if they were removed.
    ///
    /// # Errors
    /// `Inconsistent` if the row holds a role of no meaning.
    pub async fn member_to_sign_in(
        &mut self,
        handle: &str,
    ) -> Result<Option<SignedIn>, StoreError> {
        match self.find_member(handle).await? {
            Some(member) => self.signed_in(member.key).await,
            None => Ok(None),
        }
    }

    async fn signed_in(&mut self, member: i32) -> Result<Option<SignedIn>, StoreError> {
        let row: Option<SignedInRow> = sqlx::query_as(
            "select p.principal_id, p.uid, p.name, m.role, t.name as tenant_name
             from principals p
             join members m on m.tenant_id = p.tenant_id and m.principal_id = p.principal_id
             join tenants t on t.tenant_id = p.tenant_id
             where p.tenant_id = $1 and p.principal_id = $2 and m.removed_at is null",
        )
        .bind(self.tenant.key())
        .bind(member)
        .fetch_optional(&mut *self.tx)
        .await?;
        row.map(SignedInRow::read).transpose()
    }
}

#[derive(FromRow)]
struct SignedInRow {
    principal_id: i32,
    uid: Uuid,
    name: String,
    role: String,
    tenant_name: String,
}

impl SignedInRow {
    fn read(self) -> Result<SignedIn, StoreError> {
        let odd = || StoreError::inconsistent("members", "role", self.uid);
        Ok(SignedIn {
            member: PrincipalId {
                key: self.principal_id,
                uuid: self.uid,
            },
            role: Role::from_name(&self.role).ok_or_else(odd)?,
            handle: self.name,
            tenant_name: self.tenant_name,
        })
    }
}
