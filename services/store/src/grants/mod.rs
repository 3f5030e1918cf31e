//! Grants of one tenant: what members have let programs do, listed and ended. How one begins
//! stands in `authorizations.rs`, how it goes on in `refresh.rs`; looking one up by its id is a
//! call across tenants and stands in `system_tx/sign_in.rs`.

mod authorizations;
mod refresh;

use cairn_domain::ids::PrincipalId;
use cairn_domain::scope::{Scope, Scopes};
use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{StoreError, TenantTx};

pub use authorizations::{Approval, Authorization, FirstToken};
pub use refresh::{Presented, Rotation};

/// A grant as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its place in the order of the list.
    pub number: i32,
    /// The grant's id.
    pub id: Uuid,
    /// The member's handle.
    pub member: String,
    /// The program's id.
    pub client_id: String,
    /// What the program calls itself.
    pub client_name: String,
    /// The machine that it was let in from, if it said so.
    pub device: Option<String>,
    /// What it may do; the member's role may allow less.
    pub scopes: Scopes,
    /// The address that its tokens are good for.
    pub resource: String,
    /// When it was let in.
    pub created_at: DateTime<Utc>,
    /// When it was used last, to the life of an access token.
    pub last_used_at: DateTime<Utc>,
    /// When it ends, however it is used.
    pub expires_at: DateTime<Utc>,
}

/// Which grants a list holds.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// Whose; everybody's if not set.
    pub member: Option<PrincipalId>,
    /// Those made before the one of this number.
    pub before: Option<i32>,
    /// How many.
    pub limit: i64,
    /// The present moment: what is over is on no list.
    pub now: DateTime<Utc>,
}

impl TenantTx {
    /// Grants that are good for something, newest first.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a scope of no meaning.
    pub async fn list_grants(&mut self, pick: &Pick) -> Result<Vec<Listed>, StoreError> {
        let idle = cairn_domain::limits::GRANT_IDLE;
        let rows: Vec<ListedRow> = sqlx::query_as(
            "select g.grant_id, g.uid, p.name, g.client_id, g.client_name, g.device, g.scopes,
               g.resource, g.created_at, g.last_used_at, g.expires_at
             from grants g
             join principals p on p.tenant_id = g.tenant_id and p.principal_id = g.principal_id
             join members m on m.tenant_id = g.tenant_id and m.principal_id = g.principal_id
             where g.tenant_id = $1 and ($2::int is null or g.principal_id = $2)
               and ($3::int is null or g.grant_id < $3)
               and g.revoked_at is null and g.expires_at > $4 and g.last_used_at > $5
               and m.removed_at is null
             order by g.grant_id desc limit $6",
        )
        .bind(self.tenant.key())
        .bind(pick.member.map(|member| member.key))
        .bind(pick.before)
        .bind(pick.now)
        .bind(pick.now - idle)
        .bind(pick.limit)
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(ListedRow::read).collect()
    }

    /// Ends a grant at once and for good, with the keys that were made with it, and writes it down
    /// in the audit log; `owner` limits it to grants of one member, `actor` is none for the service
    /// itself. `false` if there is none of this id; ending it again changes nothing.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn revoke_grant(
        &mut self,
        grant: Uuid,
        owner: Option<PrincipalId>,
        actor: Option<PrincipalId>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let known: Option<bool> = sqlx::query_scalar(
            "update grants g set revoked_at = coalesce(g.revoked_at, $4)
             from grants old
             where g.tenant_id = $1 and g.uid = $2 and ($3::int is null or g.principal_id = $3)
               and old.tenant_id = g.tenant_id and old.grant_id = g.grant_id
             returning old.revoked_at is null",
        )
        .bind(self.tenant.key())
        .bind(grant)
        .bind(owner.map(|owner| owner.key))
        .bind(now)
        .fetch_optional(&mut *self.tx)
        .await?;
        if known == Some(true) {
            let target = grant.to_string();
            self.append_audit(actor, "grant.revoke", &target, json!({}), now)
                .await?;
            self.revoke_descendants(vec![grant], actor, now).await?;
        }
        Ok(known.is_some())
    }
}

/// The scopes that a row names.
pub(crate) fn read_scopes(
    table: &'static str,
    names: &[String],
    id: impl ToString,
) -> Result<Scopes, StoreError> {
    let scopes = names.iter().map(|name| name.parse::<Scope>());
    scopes
        .collect::<Result<Scopes, _>>()
        .map_err(|_| StoreError::inconsistent(table, "scopes", id))
}

#[derive(FromRow)]
struct ListedRow {
    grant_id: i32,
    uid: Uuid,
    name: String,
    client_id: String,
    client_name: String,
    device: Option<String>,
    scopes: Vec<String>,
    resource: String,
    created_at: DateTime<Utc>,
    last_used_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

impl ListedRow {
    fn read(self) -> Result<Listed, StoreError> {
        Ok(Listed {
            number: self.grant_id,
            id: self.uid,
            member: self.name,
            client_id: self.client_id,
            client_name: self.client_name,
            device: self.device,
            scopes: read_scopes("grants", &self.scopes, self.uid)?,
            resource: self.resource,
            created_at: self.created_at,
            last_used_at: self.last_used_at,
            expires_at: self.expires_at,
        })
    }
}
