//! Authorizations: what a member has said yes to, until the program fetches it with a code. A code
//! is used once; its row stays a day, so that a second use is known for one.

use cairn_domain::grant::Life;
use cairn_domain::ids::PrincipalId;
use cairn_domain::scope::Scopes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::FromRow;
use uuid::Uuid;

use super::read_scopes;
use crate::{StoreError, TenantTx};

/// A member's yes, about to be stored. The code is already gone; only its hash is here.
#[derive(Clone, Debug)]
pub struct Approval<'a> {
    /// SHA-256 of the code.
    pub code_hash: [u8; 32],
    /// Who said yes.
    pub member: PrincipalId,
    /// The program.
    pub client_id: &'a str,
    /// What it calls itself.
    pub client_name: &'a str,
    /// Where the code is sent.
    pub redirect_uri: &'a str,
    /// The PKCE challenge.
    pub challenge: &'a str,
    /// What the program may do.
    pub scopes: Scopes,
    /// The address that its tokens are good for.
    pub resource: &'a str,
    /// The present moment.
    pub now: DateTime<Utc>,
    /// From when on the code is worth nothing.
    pub expires_at: DateTime<Utc>,
}

/// A member's yes as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    number: i32,
    /// Who said yes.
    pub member: PrincipalId,
    /// The program.
    pub client_id: String,
    client_name: String,
    device: Option<String>,
    /// Where the code was sent; none for a device, which asked for it.
    pub redirect_uri: Option<String>,
    /// The PKCE challenge; none for a device.
    pub challenge: Option<String>,
    /// What the program may do.
    pub scopes: Scopes,
    /// The address that its tokens are good for.
    pub resource: String,
    /// From when on the code is worth nothing.
    pub expires_at: DateTime<Utc>,
    /// What was fetched with it before.
    pub grant: Option<Uuid>,
}

/// What a grant begins with.
#[derive(Clone, Copy, Debug)]
pub struct FirstToken<'a> {
    /// The grant's id.
    pub grant: Uuid,
    /// SHA-256 of its first refresh token.
    pub hash: [u8; 32],
    /// The address that its tokens are good for.
    pub resource: &'a str,
    /// The present moment.
    pub now: DateTime<Utc>,
}

impl TenantTx {
    /// Stores a member's yes.
    ///
    /// # Errors
    /// `Conflict` if the code exists.
    pub async fn insert_authorization(&mut self, yes: &Approval<'_>) -> Result<(), StoreError> {
        // Those of yesterday are no longer needed to tell a second use.
        sqlx::query("delete from authorizations where tenant_id = $1 and expires_at < $2")
            .bind(self.tenant.key())
            .bind(yes.now - TimeDelta::days(1))
            .execute(&mut *self.tx)
            .await?;
        sqlx::query(
            "insert into authorizations (code_hash, principal_id, client_id, client_name,
               redirect_uri, challenge, scopes, resource, approved_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(yes.code_hash.as_slice())
        .bind(yes.member.key)
        .bind(yes.client_id)
        .bind(yes.client_name)
        .bind(yes.redirect_uri)
        .bind(yes.challenge)
        .bind(yes.scopes.names())
        .bind(yes.resource)
        .bind(yes.now)
        .bind(yes.expires_at)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Lets a device in that waits under the hash of this user code, with the scopes that the
    /// member's role allows. `false` if none waits.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn approve_device(
        &mut self,
        user_hash: [u8; 32],
        member: PrincipalId,
        most: Scopes,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "insert into authorizations (code_hash, principal_id, client_id, client_name, device,
               scopes, resource, approved_at, expires_at)
             select d.device_hash, $1, d.client_id, d.client_name, d.device,
               array(select s from unnest(d.scopes) s where s = any ($2)), d.resource, $4,
               d.expires_at
             from system_decide_device_request($3, 'approved', $4) d",
        )
        .bind(member.key)
        .bind(most.names())
        .bind(user_hash.as_slice())
        .bind(now)
        .execute(&mut *self.tx)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// What a code stands for, held until the transaction ends, so that it is fetched once. None
    /// if there is no such code, or its member was removed.
    ///
    /// # Errors
    /// `Inconsistent` if its row holds a scope of no meaning.
    pub async fn lock_authorization(
        &mut self,
        code_hash: [u8; 32],
    ) -> Result<Option<Authorization>, StoreError> {
        let row: Option<AuthorizationRow> = sqlx::query_as(
            "select a.authorization_id, p.principal_id, p.uid as principal_uid, a.client_id,
               a.client_name, a.device, a.redirect_uri, a.challenge, a.scopes, a.resource,
               a.expires_at, g.uid as grant_uid
             from authorizations a
             join principals p on p.tenant_id = a.tenant_id and p.principal_id = a.principal_id
             join members m on m.tenant_id = a.tenant_id and m.principal_id = a.principal_id
             left join grants g on g.tenant_id = a.tenant_id and g.grant_id = a.grant_id
             where a.tenant_id = $1 and a.code_hash = $2 and m.removed_at is null
             for update of a",
        )
        .bind(self.tenant.key())
        .bind(code_hash.as_slice())
        .fetch_optional(&mut *self.tx)
        .await?;
        row.map(AuthorizationRow::read).transpose()
    }

    /// Makes the grant of an authorization, with its first refresh token, and writes it down in
    /// the audit log.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn begin_grant(
        &mut self,
        from: &Authorization,
        first: &FirstToken<'_>,
    ) -> Result<(), StoreError> {
        let life = Life::begin(first.now);
        sqlx::query(
            "with made as (
               insert into grants (uid, principal_id, client_id, client_name, device, scopes,
                 resource, created_at, last_used_at, expires_at)
               values ($3, $4, $5, $6, $7, $8, $9, $10, $10, $11)
               returning tenant_id, grant_id),
             token as (
               insert into refresh_tokens (grant_id, token_hash, issued_at)
               select grant_id, $12, $10 from made)
             update authorizations a set grant_id = made.grant_id
             from made
             where a.tenant_id = $1 and a.tenant_id = made.tenant_id and a.authorization_id = $2",
        )
        .bind(self.tenant.key())
        .bind(from.number)
        .bind(first.grant)
        .bind(from.member.key)
        .bind(&from.client_id)
        .bind(&from.client_name)
        .bind(&from.device)
        .bind(from.scopes.names())
        .bind(first.resource)
        .bind(first.now)
        .bind(life.expires_at)
        .bind(first.hash.as_slice())
        .execute(&mut *self.tx)
        .await?;
        let detail = json!({ "client": from.client_name, "device": from.device,
            "scopes": from.scopes.names() });
        let (actor, target) = (Some(from.member), first.grant.to_string());
        self.append_audit(actor, "grant.create", &target, detail, first.now)
            .await
    }
}

#[derive(FromRow)]
struct AuthorizationRow {
    authorization_id: i32,
    principal_id: i32,
    principal_uid: Uuid,
    client_id: String,
    client_name: String,
    device: Option<String>,
    redirect_uri: Option<String>,
    challenge: Option<String>,
    scopes: Vec<String>,
    resource: String,
    expires_at: DateTime<Utc>,
    grant_uid: Option<Uuid>,
}

impl AuthorizationRow {
    fn read(self) -> Result<Authorization, StoreError> {
        Ok(Authorization {
            number: self.authorization_id,
            member: PrincipalId {
                key: self.principal_id,
                uuid: self.principal_uid,
            },
            client_id: self.client_id,
            client_name: self.client_name,
            device: self.device,
            redirect_uri: self.redirect_uri,
            challenge: self.challenge,
            scopes: read_scopes("authorizations", &self.scopes, self.authorization_id)?,
            resource: self.resource,
            expires_at: self.expires_at,
            grant: self.grant_uid,
        })
    }
}
