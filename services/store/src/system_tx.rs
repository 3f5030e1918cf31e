//! `SystemTx`: the closed list of calls across tenants, each an SQL function of a role
//! other than the server's.
//!
//! | call | who calls it |
//! |---|---|
//! | `find_credential` | the server's authentication, for each key it has not cached |
//! | `create_tenant` | `admin tenant create`, and the first start of the embedded form |
//! | `find_tenant` | the `admin` commands, which name a tenant |
//! | `has_credential` | the start of the embedded form, to see whether it is the first |
//! | `clean_search_index` | the server's maintenance, every few seconds |
//! | `find_stale`, `find_uncounted` | the server's maintenance, likewise |
//! | `renew_epochs` | `admin position restart`, after a backup was restored |
//! | `positions` | [`Store::horizons`], for streams that wait |
//! | `claim_expiry` | the server's maintenance, now and then |
//! | `delete_tenant` | an owner, for the tenant of their own credential, and `admin tenant delete` |
//! | `sweep_deleted` | the server's maintenance, and `admin tenant delete` |
//! | `find_tenants` | the operator's `admin redact` |
//! | `context_revisions` | [`Store::context_revisions`], for contexts that are kept |
//! | `find_grant`, `find_code` and the rest of [`sign_in`] | authentication and sign-in |
//!
//! Each row carries its tenant; from there on it is `TenantTx`.

pub mod sign_in;

use cairn_domain::ids::{PrincipalId, ProjectId, TenantId};
use cairn_domain::project::Project;
use cairn_domain::scope::{Role, Scope, Scopes};
use chrono::{DateTime, Utc};
use sqlx::{FromRow, Postgres, Transaction};
use uuid::Uuid;

#[cfg(doc)]
use crate::Store;
use crate::StoreError;

/// A transaction that sees no tenant's rows, only what the listed calls answer.
pub struct SystemTx {
    pub(crate) tx: Transaction<'static, Postgres>,
}

/// An API key as it stands, with whose it is. What it means that it is expired or revoked is the
/// caller's to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The tenant it opens.
    pub tenant: TenantId,
    /// The credential's own id.
    pub credential: Uuid,
    /// Who acts with it.
    pub principal: PrincipalId,
    /// A handle, or `key:<key id>`.
    pub principal_name: String,
    /// Whether it belongs to the tenant rather than to a member.
    pub is_service: bool,
    /// The member's role; none for a service key.
    pub role: Option<Role>,
    /// SHA-256 of key id, NUL, secret.
    pub secret_hash: [u8; 32],
    /// What it carries; a member's role may allow less.
    pub scopes: Scopes,
    /// The only project it may see, if limited.
    pub project: Option<Project>,
    /// From when on it is worth nothing.
    pub expires_at: DateTime<Utc>,
    /// When it was used last, to the hour; none if never.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Whether its member was removed.
    pub member_removed: bool,
}

/// The key that a tenant's first owner enters with. Its secret is already gone; only the hash is
/// here.
#[derive(Clone, Copy, Debug)]
pub struct FirstKey<'a> {
    /// 12 characters of `[a-z2-7]`, unique in the service.
    pub key_id: &'a str,
    /// SHA-256 of key id, NUL, secret.
    pub secret_hash: [u8; 32],
    /// What it carries.
    pub scopes: Scopes,
    /// From when on it is worth nothing.
    pub expires_at: DateTime<Utc>,
}

impl SystemTx {
    /// The credential of a key id, whatever its state.
    ///
    /// # Errors
    /// `Inconsistent` if its row holds a scope or a role of no meaning.
    pub async fn find_credential(
        &mut self,
        key_id: &str,
    ) -> Result<Option<Credential>, StoreError> {
        let row: Option<CredentialRow> = sqlx::query_as("select * from system_find_credential($1)")
            .bind(key_id)
            .fetch_optional(&mut *self.tx)
            .await?;
        row.map(|row| row.read(key_id)).transpose()
    }

    /// Makes a tenant with its first owner and the owner's first key, and writes both down in the
    /// audit log.
    ///
    /// # Errors
    /// `Conflict` if a tenant of this name exists, or the key id.
    pub async fn create_tenant(
        &mut self,
        name: &str,
        owner_handle: &str,
        first: FirstKey<'_>,
        now: DateTime<Utc>,
    ) -> Result<(TenantId, PrincipalId), StoreError> {
        let (tenant, uuid, key, principal): (i32, Uuid, i32, Uuid) =
            sqlx::query_as("select * from system_create_tenant($1, $2, $3, $4, $5, $6, $7)")
                .bind(name)
                .bind(owner_handle)
                .bind(first.key_id)
                .bind(first.secret_hash.as_slice())
                .bind(first.scopes.names())
                .bind(first.expires_at)
                .bind(now)
                .fetch_one(&mut *self.tx)
                .await?;
        let owner = PrincipalId {
            key,
            uuid: principal,
        };
        Ok((verified(tenant, uuid), owner))
    }

    /// The tenant of this name.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_tenant(&mut self, name: &str) -> Result<Option<TenantId>, StoreError> {
        let row: Option<(i32, Uuid)> = sqlx::query_as("select * from system_find_tenant($1)")
            .bind(name)
            .fetch_optional(&mut *self.tx)
            .await?;
        Ok(row.map(|(key, uuid)| verified(key, uuid)))
    }

    /// All tenants with their names, by name: for work that the operator has done in each.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_tenants(&mut self) -> Result<Vec<(TenantId, String)>, StoreError> {
        let rows: Vec<(i32, Uuid, String)> = sqlx::query_as("select * from system_find_tenants()")
            .fetch_all(&mut *self.tx)
            .await?;
        let read = |(key, uuid, name)| (verified(key, uuid), name);
        Ok(rows.into_iter().map(read).collect())
    }

    /// Whether any key was ever made, by any tenant.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn has_credential(&mut self) -> Result<bool, StoreError> {
        let has = sqlx::query_scalar("select system_has_credential()")
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(has)
    }

    /// Puts new records into their places in the words index; until then each waits in a list
    /// that every search reads, and that a writer empties when it gets too long. Gives the pages
    /// that were emptied. May run in several replicas at once.
    ///
    /// # Errors
    /// `Timeout` if there was too much; what was done stays done. As any call of the store.
    pub async fn clean_search_index(&mut self) -> Result<i64, StoreError> {
        let pages = sqlx::query_scalar("select system_clean_search_index()")
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(pages)
    }

    /// Tenants with records whose vectors an older analyser built, at most `most`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_stale(&mut self, most: i32) -> Result<Vec<TenantId>, StoreError> {
        let rows: Vec<(i32, Uuid)> = sqlx::query_as("select * from system_find_outdated($1)")
            .bind(most)
            .fetch_all(&mut *self.tx)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(key, uuid)| verified(key, uuid))
            .collect())
    }

    /// Projects whose words are due to be counted, at most `most`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_uncounted(
        &mut self,
        most: i32,
    ) -> Result<Vec<(TenantId, ProjectId)>, StoreError> {
        let rows: Vec<(i32, Uuid, i32, Uuid)> =
            sqlx::query_as("select * from system_find_uncounted($1)")
                .bind(most)
                .fetch_all(&mut *self.tx)
                .await?;
        let read = |(tenant, tenant_uid, key, uuid)| {
            (verified(tenant, tenant_uid), ProjectId { key, uuid })
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Makes every position of before unknown, in all tenants, and writes it down in their audit
    /// logs. Gives how many they are.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn renew_epochs(&mut self, now: DateTime<Utc>) -> Result<i64, StoreError> {
        let renewed = sqlx::query_scalar("select system_renew_epochs($1)")
            .bind(now)
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(renewed)
    }

    /// Tenants in which nobody looked for what has expired since a moment, at most `most`; from now
    /// on somebody has.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn claim_expiry(
        &mut self,
        due_before: DateTime<Utc>,
        now: DateTime<Utc>,
        most: i32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let rows: Vec<(i32, Uuid)> =
            sqlx::query_as("select * from system_claim_expiry($1, $2, $3)")
                .bind(due_before)
                .bind(now)
                .bind(most)
                .fetch_all(&mut *self.tx)
                .await?;
        Ok(rows
            .into_iter()
            .map(|(key, uuid)| verified(key, uuid))
            .collect())
    }

    /// Closes a tenant for good, if this is its name: its keys are gone with the commit, its name
    /// is free, its rows go by [`Self::sweep_deleted`].
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn delete_tenant(
        &mut self,
        tenant: TenantId,
        name: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let deleted = sqlx::query_scalar("select system_delete_tenant($1, $2, $3)")
            .bind(tenant.key())
            .bind(name)
            .bind(now)
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(deleted)
    }

    /// Removes up to `most` rows of deleted tenants; how many that were. None are left once it is
    /// none, but for the tenant's own row, which stays while requests of before may be under way.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn sweep_deleted(&mut self, most: i32) -> Result<i64, StoreError> {
        let gone = sqlx::query_scalar("select system_sweep_deleted($1)")
            .bind(most)
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(gone)
    }

    /// Makes what was written last.
    ///
    /// # Errors
    /// `Unavailable` if Postgres went away: then nothing is known of the outcome.
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(self.tx.commit().await?)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the rows of this file prove their tenant"
)]
fn verified(key: i32, uuid: Uuid) -> TenantId {
    TenantId::verified(key, uuid)
}

#[derive(FromRow)]
struct CredentialRow {
    tenant_id: i32,
    tenant_uid: Uuid,
    credential_uid: Uuid,
    principal_id: i32,
    principal_uid: Uuid,
    principal_name: String,
    is_service: bool,
    role: Option<String>,
    secret_hash: Vec<u8>,
    scopes: Vec<String>,
    project_id: Option<i32>,
    project_uid: Option<Uuid>,
    project_key: Option<String>,
    project_name: Option<String>,
    expires_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    revoked: bool,
    member_removed: bool,
}

impl CredentialRow {
    fn read(self, key_id: &str) -> Result<Credential, StoreError> {
        let odd = |column| StoreError::inconsistent("credentials", column, key_id);
        let role = match &self.role {
            Some(name) => Some(Role::from_name(name).ok_or_else(|| odd("role"))?),
            None => None,
        };
        let scopes = self.scopes.iter().map(|name| name.parse::<Scope>());
        let scopes = scopes.collect::<Result<Scopes, _>>();
        let project = match (
            self.project_id,
            self.project_uid,
            self.project_key,
            self.project_name,
        ) {
            (Some(id), Some(uuid), Some(key), Some(name)) => Some(Project {
                id: ProjectId { key: id, uuid },
                key,
                name,
            }),
            _ => None,
        };
        Ok(Credential {
            tenant: verified(self.tenant_id, self.tenant_uid),
            credential: self.credential_uid,
            principal: PrincipalId {
                key: self.principal_id,
                uuid: self.principal_uid,
            },
            principal_name: self.principal_name,
            is_service: self.is_service,
            role,
            secret_hash: self
                .secret_hash
                .try_into()
                .map_err(|_| odd("secret_hash"))?,
            scopes: scopes.map_err(|_| odd("scopes"))?,
            project,
            expires_at: self.expires_at,
            last_used_at: self.last_used_at,
            revoked: self.revoked,
            member_removed: self.member_removed,
        })
    }
}
