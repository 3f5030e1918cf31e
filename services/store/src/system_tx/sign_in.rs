//! What sign-in asks before it knows a tenant: whose a token, a code or an e-mail address is; and
//! programs and devices that belong to no tenant yet.

use std::time::Duration;

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use cairn_domain::scope::Scopes;
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::{Credential, CredentialRow, SystemTx, verified};
use crate::StoreError;
use crate::grants::read_scopes;

/// A grant as it stands, with whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundGrant {
    /// What it allows to whom. No key has its hash.
    pub credential: Credential,
    /// The program that it was made for.
    pub client_id: String,
    /// The address that its tokens are good for.
    pub resource: String,
}

/// A member with an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByEmail {
    /// The tenant.
    pub tenant: TenantId,
    /// The tenant's name.
    pub tenant_name: String,
    /// The member.
    pub member: PrincipalId,
    /// The member's handle.
    pub handle: String,
    /// Whether they were removed.
    pub removed: bool,
}

/// A program that registered itself, or a copy of what one says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownClient {
    /// What it calls itself.
    pub name: String,
    /// Where codes may be sent.
    pub redirect_uris: Vec<String>,
}

/// A device that asks to be let in, about to be stored.
#[derive(Clone, Debug)]
pub struct DeviceRequest<'a> {
    /// SHA-256 of its device code.
    pub device_hash: [u8; 32],
    /// SHA-256 of the code that a person types.
    pub user_hash: [u8; 32],
    /// The program.
    pub client_id: &'a str,
    /// What it calls itself.
    pub client_name: &'a str,
    /// The machine that it runs on, as it said.
    pub device: Option<&'a str>,
    /// What it asks for.
    pub scopes: Scopes,
    /// The address that its tokens are to be good for.
    pub resource: &'a str,
    /// The network that it came from.
    pub source: &'a str,
    /// The present moment.
    pub now: DateTime<Utc>,
}

/// What became of a device that asks to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It waits.
    Waits,
    /// One of its codes is taken.
    Taken,
    /// Too many of its network wait.
    Crowded,
}

/// A device that waits to be let in, as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingDevice {
    /// The program's id.
    pub client_id: String,
    /// What the program calls itself.
    pub client_name: String,
    /// The machine that it runs on, as it said.
    pub device: Option<String>,
    /// What it asks for.
    pub scopes: Scopes,
}

/// What a device is told that asks whether it was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The program that asked at first.
    pub client_id: String,
    /// Where it stands.
    pub state: PollState,
    /// From when on it need not ask any more.
    pub expires_at: DateTime<Utc>,
    /// Whether it asked sooner than it was told to.
    pub too_soon: bool,
}

/// Where the request of a device stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollState {
    /// Nobody has decided yet.
    Pending,
    /// It was let in.
    Approved,
    /// It was not.
    Denied,
}

impl SystemTx {
    /// The grant of this id, whatever its state.
    ///
    /// # Errors
    /// `Inconsistent` if its row holds a scope or a role of no meaning.
    pub async fn find_grant(&mut self, grant: Uuid) -> Result<Option<FoundGrant>, StoreError> {
        let row: Option<GrantRow> = sqlx::query_as("select * from system_find_grant($1)")
            .bind(grant)
            .fetch_optional(&mut *self.tx)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let mut credential = row.credential.read(&grant.to_string())?;
        // A grant that is not used ends before its time.
        let idle = credential
            .last_used_at
            .map(|last| last + limits::GRANT_IDLE);
        credential.expires_at = credential
            .expires_at
            .min(idle.unwrap_or(credential.expires_at));
        Ok(Some(FoundGrant {
            credential,
            client_id: row.client_id,
            resource: row.resource,
        }))
    }

    /// The tenant in which something is kept under the hash of a code or of a session's secret.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_code(&mut self, hash: [u8; 32]) -> Result<Option<TenantId>, StoreError> {
        let row: Option<(i32, Uuid)> = sqlx::query_as("select * from system_find_code($1)")
            .bind(hash.as_slice())
            .fetch_optional(&mut *self.tx)
            .await?;
        Ok(row.map(|(key, uuid)| verified(key, uuid)))
    }

    /// Members with this e-mail address, one a tenant, those who are still there first, and of
    /// those whoever came first; at most [`limits::TEAM_CHOICES`].
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_members_by_email(&mut self, email: &str) -> Result<Vec<ByEmail>, StoreError> {
        let rows: Vec<ByEmailRow> = sqlx::query_as("select * from system_find_memberships($1, $2)")
            .bind(email)
            .bind(limits::TEAM_CHOICES)
            .fetch_all(&mut *self.tx)
            .await?;
        Ok(rows.into_iter().map(ByEmailRow::read).collect())
    }

    /// The tenant of a service that has only one.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_only_tenant(&mut self) -> Result<Option<TenantId>, StoreError> {
        let row: Option<(i32, Uuid)> = sqlx::query_as("select * from system_find_only_tenant()")
            .fetch_optional(&mut *self.tx)
            .await?;
        Ok(row.map(|(key, uuid)| verified(key, uuid)))
    }

    /// A program that registered itself, or a copy of its document that is still good.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_client(
        &mut self,
        client_id: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<KnownClient>, StoreError> {
        let row: Option<(String, Vec<String>)> =
            sqlx::query_as("select * from system_find_client($1, $2)")
                .bind(client_id)
                .bind(now)
                .fetch_optional(&mut *self.tx)
                .await?;
        Ok(row.map(|(name, redirect_uris)| KnownClient {
            name,
            redirect_uris,
        }))
    }

    /// Keeps a program that came from a network, for ever or as a copy until a moment. Of those
    /// that nobody has let in, the oldest of the network with the most of them make room.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn put_client(
        &mut self,
        client_id: &str,
        client: &KnownClient,
        source: &str,
        (now, until): (DateTime<Utc>, Option<DateTime<Utc>>),
    ) -> Result<(), StoreError> {
        sqlx::query("select system_keep_client($1, $2, $3, $4, $5, $6, $7)")
            .bind(client_id)
            .bind(&client.name)
            .bind(&client.redirect_uris)
            .bind(now)
            .bind(until)
            .bind(source)
            .bind(limits::UNUSED_CLIENTS)
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    /// Notes that somebody has let a program in.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn use_client(
        &mut self,
        client_id: &str,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        sqlx::query("select system_use_client($1, $2)")
            .bind(client_id)
            .bind(now)
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    /// Lets a device wait, unless [`limits::WAITING_DEVICES`] of its network do. Of more than
    /// [`limits::DEVICE_REQUESTS`] those that are over make room, then the oldest of the network
    /// with the most of them.
    ///
    /// # Errors
    /// `Inconsistent` for an answer of no meaning.
    pub async fn add_device_request(
        &mut self,
        new: &DeviceRequest<'_>,
    ) -> Result<Begun, StoreError> {
        let done: String = sqlx::query_scalar(
            "select system_begin_device($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        )
        .bind(new.device_hash.as_slice())
        .bind(new.user_hash.as_slice())
        .bind(new.client_id)
        .bind(new.client_name)
        .bind(new.device)
        .bind(new.scopes.names())
        .bind(new.resource)
        .bind(new.now)
        .bind(new.now + limits::DEVICE_CODE_TIME)
        .bind(seconds(limits::DEVICE_PAUSE))
        .bind(new.source)
        .bind(limits::WAITING_DEVICES)
        .bind(limits::DEVICE_REQUESTS)
        .fetch_one(&mut *self.tx)
        .await?;
        match done.as_str() {
            "begun" => Ok(Begun::Waits),
            "taken" => Ok(Begun::Taken),
            "crowded" => Ok(Begun::Crowded),
            _ => Err(StoreError::inconsistent("device_requests", "begun", done)),
        }
    }

    /// Notes that a device asks, and answers where its request stands.
    ///
    /// # Errors
    /// `Inconsistent` if its row holds a state of no meaning.
    pub async fn poll_device_request(
        &mut self,
        device_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<Option<Poll>, StoreError> {
        let row: Option<(String, String, DateTime<Utc>, bool)> =
            sqlx::query_as("select * from system_poll_device_request($1, $2, $3)")
                .bind(device_hash.as_slice())
                .bind(now)
                .bind(seconds(limits::DEVICE_PAUSE))
                .fetch_optional(&mut *self.tx)
                .await?;
        let Some((client_id, state, expires_at, too_soon)) = row else {
            return Ok(None);
        };
        let state = match state.as_str() {
            "pending" => PollState::Pending,
            "approved" => PollState::Approved,
            "denied" => PollState::Denied,
            _ => return Err(StoreError::inconsistent("device_requests", "state", "")),
        };
        Ok(Some(Poll {
            client_id,
            state,
            expires_at,
            too_soon,
        }))
    }

    /// The device that waits under the hash of this user code.
    ///
    /// # Errors
    /// `Inconsistent` if its row holds a scope of no meaning.
    pub async fn find_device_request(
        &mut self,
        user_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<Option<WaitingDevice>, StoreError> {
        let row: Option<(String, String, Option<String>, Vec<String>)> =
            sqlx::query_as("select * from system_find_device_request($1, $2)")
                .bind(user_hash.as_slice())
                .bind(now)
                .fetch_optional(&mut *self.tx)
                .await?;
        let Some((client_id, client_name, device, scopes)) = row else {
            return Ok(None);
        };
        Ok(Some(WaitingDevice {
            scopes: read_scopes("device_requests", &scopes, &client_id)?,
            client_id,
            client_name,
            device,
        }))
    }

    /// Turns a device away. `false` if none waits under this code.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn deny_device_request(
        &mut self,
        user_hash: [u8; 32],
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let denied: i64 = sqlx::query_scalar(
            "select count(*) from system_decide_device_request($1, 'denied', $2)",
        )
        .bind(user_hash.as_slice())
        .bind(now)
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(denied > 0)
    }

    /// Counts an attempt at a code from an address; whether it is one of the first few of its
    /// minute. Attempts that come at once are all counted.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn count_attempt(
        &mut self,
        address: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let attempts: i32 = sqlx::query_scalar("select system_count_attempt($1, $2, $3)")
            .bind(address)
            .bind(now)
            .bind(seconds(limits::CODE_ATTEMPTS_TIME))
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(attempts <= limits::CODE_ATTEMPTS)
    }

    /// Takes back an attempt that was right: only wrong ones count.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn forgive_attempt(&mut self, address: &str) -> Result<(), StoreError> {
        sqlx::query("select system_forgive_attempt($1)")
            .bind(address)
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    /// Removes what is over since yesterday, and programs that nobody has let in.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn clean_sign_in(&mut self, now: DateTime<Utc>) -> Result<(), StoreError> {
        sqlx::query("select system_clean_sign_in($1, $2)")
            .bind(now - chrono::TimeDelta::days(1))
            .bind(now - limits::UNUSED_CLIENT_TIME)
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }
}

fn seconds(time: Duration) -> i32 {
    i32::try_from(time.as_secs()).unwrap_or(i32::MAX)
}

#[derive(FromRow)]
struct ByEmailRow {
    tenant_id: i32,
    tenant_uid: Uuid,
    tenant_name: String,
    principal_id: i32,
    principal_uid: Uuid,
    handle: String,
    removed: bool,
}

impl ByEmailRow {
    fn read(self) -> ByEmail {
        ByEmail {
            tenant: verified(self.tenant_id, self.tenant_uid),
            tenant_name: self.tenant_name,
            member: PrincipalId {
                key: self.principal_id,
                uuid: self.principal_uid,
            },
            handle: self.handle,
            removed: self.removed,
        }
    }
}

#[derive(FromRow)]
struct GrantRow {
    #[sqlx(flatten)]
    credential: CredentialRow,
    client_id: String,
    resource: String,
}
