//! Credentials of one tenant: making, listing, revoking and marking as used. Looking one up by its key id
//! is a call across tenants and stands in `system_tx.rs`.

use cairn_domain::ids::{PrincipalId, ProjectId};
use cairn_domain::scope::{Role, Scope, Scopes};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde_json::json;
use sqlx::FromRow;
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
    /// The key or the grant that it is made with and ends with, if it does.
    pub parent: Option<Uuid>,
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

/// Which keys a call is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyScope<'a> {
    /// Those of one principal; else of all.
    pub owner: Option<PrincipalId>,
    /// Those that are limited to one of these projects; else all.
    pub projects: Option<&'a [ProjectId]>,
}

impl KeyScope<'_> {
    fn projects(&self) -> Option<Vec<i32>> {
        let projects = self.projects?;
        Some(projects.iter().map(|project| project.key).collect())
    }
}

/// A key as lists show it: all but what would let somebody in.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCredential {
    /// Its place in the list.
    pub place: i32,
    /// The part of the key between the underscores.
    pub key_id: String,
    /// What people call it.
    pub name: String,
    /// The member's handle, or `key:<key id>`.
    pub owner: String,
    /// Whether it is the tenant's.
    pub service: bool,
    /// What it carries.
    pub scopes: Scopes,
    /// The key of the only project it may see, if limited.
    pub project: Option<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it ends.
    pub expires_at: DateTime<Utc>,
    /// When it was used last, to the hour.
    pub last_used_at: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct ListedColumns {
    credential_id: i32,
    key_id: String,
    name: String,
    owner: String,
    service: bool,
    scopes: Vec<String>,
    project: Option<String>,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
}

impl ListedColumns {
    fn read(self) -> Result<ListedCredential, StoreError> {
        let scopes = self.scopes.iter().map(|name| name.parse::<Scope>());
        let scopes = scopes.collect::<Result<Scopes, _>>();
        let odd = |_| StoreError::inconsistent("credentials", "scopes", &self.key_id);
        Ok(ListedCredential {
            scopes: scopes.map_err(odd)?,
            place: self.credential_id,
            key_id: self.key_id,
            name: self.name,
            owner: self.owner,
            service: self.service,
            project: self.project,
            created_at: self.created_at,
            expires_at: self.expires_at,
            last_used_at: self.last_used_at,
        })
    }
}

impl TenantTx {
    /// The scopes that a key or a grant carries at this moment; none once it is revoked or over, or
    /// its member was removed. For what goes on for longer than a request.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a scope or a role of no meaning; as any call of the store.
    pub async fn scopes_in_force(
        &mut self,
        credential: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Option<Scopes>, StoreError> {
        let row: Option<(Vec<String>, Option<String>)> = sqlx::query_as(
            "select c.scopes, m.role
             from (
               select principal_id, scopes from credentials
               where tenant_id = $1 and uid = $2 and revoked_at is null and expires_at > $3
               union all
               select principal_id, scopes from grants
               where tenant_id = $1 and uid = $2 and revoked_at is null and expires_at > $3) c
             left join members m on m.tenant_id = $1 and m.principal_id = c.principal_id
             where m.removed_at is null",
        )
        .bind(self.tenant.key())
        .bind(credential)
        .bind(now)
        .fetch_optional(&mut *self.tx)
        .await?;
        let Some((scopes, role)) = row else {
            return Ok(None);
        };
        let odd = |column| StoreError::inconsistent("credentials", column, credential);
        let scopes = scopes.iter().map(|name| name.parse::<Scope>());
        let scopes = scopes.collect::<Result<Scopes, _>>();
        let scopes = scopes.map_err(|_| odd("scopes"))?;
        let role = role.map(|name| Role::from_name(&name).ok_or_else(|| odd("role")));
        Ok(Some(scopes.and(Scopes::at_most(role.transpose()?))))
    }
}

impl TenantTx {
    /// Stores a key and writes it down in the audit log, as made by its owner; a service key, by
    /// the operator.
    ///
    /// # Errors
    /// As [`Self::insert_credential_by`].
    pub async fn insert_credential(&mut self, new: &NewCredential<'_>) -> Result<(), StoreError> {
        let actor = match new.owner {
            KeyOwner::Member(member) => Some(member),
            KeyOwner::Service => None,
        };
        self.insert_credential_by(actor, new).await
    }

    /// Stores a key and writes down in the audit log who made it; none is the operator.
    ///
    /// # Errors
    /// `Conflict` if the key id exists.
    pub async fn insert_credential_by(
        &mut self,
        actor: Option<PrincipalId>,
        new: &NewCredential<'_>,
    ) -> Result<(), StoreError> {
        let principal = match new.owner {
            KeyOwner::Member(member) => member.key,
            KeyOwner::Service => self.insert_key_principal(new.key_id, new.now).await?,
        };
        sqlx::query(
            "insert into credentials (key_id, secret_hash, name, principal_id, scopes, project_id,
               created_at, expires_at, parent)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(new.key_id)
        .bind(new.secret_hash.as_slice())
        .bind(new.name)
        .bind(principal)
        .bind(new.scopes.names())
        .bind(new.project.map(|project| project.key))
        .bind(new.now)
        .bind(new.expires_at)
        .bind(new.parent)
        .execute(&mut *self.tx)
        .await?;
        let detail = json!({ "name": new.name, "scopes": new.scopes.names() });
        self.append_audit(actor, "key.create", new.key_id, detail, new.now)
            .await
    }

    /// Revokes a key at once and for good, as the operator. `false` if there is none of this id;
    /// revoking again changes nothing.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn revoke_credential(
        &mut self,
        key_id: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let any = KeyScope::default();
        self.revoke_credential_by(None, key_id, &any, now).await
    }

    /// Revokes a key of these with all that end with it, and writes down in the audit log who did.
    /// `false` if there is none of this id among them.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn revoke_credential_by(
        &mut self,
        actor: Option<PrincipalId>,
        key_id: &str,
        scope: &KeyScope<'_>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let known: Option<(Uuid, bool)> = sqlx::query_as(
            "update credentials c set revoked_at = coalesce(c.revoked_at, $3)
             from credentials old
             where c.tenant_id = $1 and c.key_id = $2
               and ($4::int is null or c.principal_id = $4)
               and ($5::int[] is null or c.project_id = any ($5))
               and old.tenant_id = c.tenant_id and old.credential_id = c.credential_id
             returning c.uid, old.revoked_at is null",
        )
        .bind(self.tenant.key())
        .bind(key_id)
        .bind(now)
        .bind(scope.owner.map(|owner| owner.key))
        .bind(scope.projects())
        .fetch_optional(&mut *self.tx)
        .await?;
        if let Some((key, true)) = known {
            self.append_audit(actor, "key.revoke", key_id, json!({}), now)
                .await?;
            self.revoke_descendants(vec![key], actor, now).await?;
        }
        Ok(known.is_some())
    }

    /// The keys of these that were not revoked, the newest first, at most `limit` behind the place
    /// of the last one.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a scope of no meaning.
    pub async fn list_credentials(
        &mut self,
        scope: &KeyScope<'_>,
        after: Option<i32>,
        limit: u32,
    ) -> Result<Vec<ListedCredential>, StoreError> {
        let rows: Vec<ListedColumns> = sqlx::query_as(
            "select c.credential_id, c.key_id, c.name, p.name as owner, p.kind = 'key' as service,
               c.scopes, j.key as project, c.created_at, c.expires_at, c.last_used_at
             from credentials c
             join principals p on p.tenant_id = $1 and p.principal_id = c.principal_id
             left join projects j on j.tenant_id = $1 and j.project_id = c.project_id
             where c.tenant_id = $1 and c.revoked_at is null
               and ($2::int is null or c.principal_id = $2)
               and ($3::int[] is null or c.project_id = any ($3))
               and ($4::int is null or c.credential_id < $4)
             order by c.credential_id desc limit $5",
        )
        .bind(self.tenant.key())
        .bind(scope.owner.map(|owner| owner.key))
        .bind(scope.projects())
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(ListedColumns::read).collect()
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
}
