//! Members of one tenant: finding, listing, adding, changing and removing them (contract 2.2).

use cairn_domain::ids::PrincipalId;
use cairn_domain::quota::Quota;
use cairn_domain::scope::Role;
use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::FromRow;
use uuid::Uuid;

use crate::quotas::require;
use crate::{StoreError, TenantTx};

/// A member who was not removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub id: PrincipalId,
    /// The handle.
    pub handle: String,
    /// The address that sign-in finds them by.
    pub email: Option<String>,
    /// What they are in the tenant.
    pub role: Role,
    /// Since when.
    pub joined_at: DateTime<Utc>,
}

/// What a change of a member sets; none stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberChange<'a> {
    /// What they are from now on.
    pub role: Option<Role>,
    /// The address, or that they have none.
    pub email: Option<Option<&'a str>>,
}

/// Who manages members.
#[derive(Clone, Copy, Debug)]
pub struct Manager {
    /// Who; none is the operator.
    pub actor: Option<PrincipalId>,
    /// Whether they may make, change and remove owners.
    pub is_owner: bool,
    /// When.
    pub now: DateTime<Utc>,
}

/// What became of a change or a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChanged {
    /// Done; the member as they stand, or stood when they were removed.
    Done(Member),
    /// There is no such member.
    NotFound,
    /// It would make, change or remove an owner, which the manager may not.
    Forbidden,
    /// Nobody would be left who owns the tenant.
    LastOwner,
}

#[derive(FromRow)]
struct MemberColumns {
    principal_id: i32,
    uid: Uuid,
    name: String,
    email: Option<String>,
    role: String,
    joined_at: DateTime<Utc>,
}

impl MemberColumns {
    fn read(self) -> Result<Member, StoreError> {
        let odd = || StoreError::inconsistent("members", "role", &self.name);
        Ok(Member {
            role: Role::from_name(&self.role).ok_or_else(odd)?,
            id: PrincipalId {
                key: self.principal_id,
                uuid: self.uid,
            },
            handle: self.name,
            email: self.email,
            joined_at: self.joined_at,
        })
    }
}

macro_rules! members {
    ($condition:literal) => {
        concat!(
            "select m.principal_id, p.uid, p.name, m.email, m.role, m.joined_at
             from members m
             join principals p on p.tenant_id = $1 and p.principal_id = m.principal_id
             where m.tenant_id = $1 and m.removed_at is null and ",
            $condition
        )
    };
}

impl TenantTx {
    /// The member of this handle, if they were not removed.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_member(&mut self, handle: &str) -> Result<Option<PrincipalId>, StoreError> {
        Ok(self.get_member(handle).await?.map(|member| member.id))
    }

    /// The same with what is known of them.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn get_member(&mut self, handle: &str) -> Result<Option<Member>, StoreError> {
        let row: Option<MemberColumns> = sqlx::query_as(members!("p.name = $2"))
            .bind(self.tenant.key())
            .bind(handle)
            .fetch_optional(&mut *self.tx)
            .await?;
        row.map(MemberColumns::read).transpose()
    }

    /// Members by handle, those behind `after`, at most `limit`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn list_members(
        &mut self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Member>, StoreError> {
        let rows: Vec<MemberColumns> = sqlx::query_as(members!(
            "($2::text is null or p.name collate \"C\" > $2)
             order by p.name collate \"C\" limit $3"
        ))
        .bind(self.tenant.key())
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(MemberColumns::read).collect()
    }

    /// How many members there are.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn count_members(&mut self) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar(
            "select count(*) from members where tenant_id = $1 and removed_at is null",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Adds a member as the operator, and writes it down in the audit log.
    ///
    /// # Errors
    /// As [`Self::insert_member_by`].
    pub async fn insert_member(
        &mut self,
        handle: &str,
        email: Option<&str>,
        role: Role,
        now: DateTime<Utc>,
    ) -> Result<PrincipalId, StoreError> {
        self.insert_member_by(None, handle, email, role, now).await
    }

    /// Adds a member and writes down in the audit log who did; none is the operator.
    ///
    /// The handle of a removed member names somebody else from then on: nothing of theirs comes
    /// back, neither keys nor what only they could read, and what they shared is by
    /// `<handle>~<n>`.
    ///
    /// # Errors
    /// `Conflict` if a member has the handle or the address, `OverQuota` if there are as many as
    /// there may be.
    pub async fn insert_member_by(
        &mut self,
        actor: Option<PrincipalId>,
        handle: &str,
        email: Option<&str>,
        role: Role,
        now: DateTime<Utc>,
    ) -> Result<PrincipalId, StoreError> {
        let quotas = self.lock_quotas().await?;
        let members: i64 = sqlx::query_scalar(
            "select count(*) from members where tenant_id = $1 and removed_at is null",
        )
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        require(Quota::Members, quotas.as_ref(), members + 1)?;
        let stepped_aside = sqlx::query(
            "update principals p set name = p.name || '~' || (
               select count(*) + 1 from principals o
               where o.tenant_id = $1 and starts_with(o.name, $2 || '~'))
             from members m
             where p.tenant_id = $1 and p.name = $2 and m.tenant_id = $1
               and m.principal_id = p.principal_id and m.removed_at is not null",
        )
        .bind(self.tenant.key())
        .bind(handle)
        .execute(&mut *self.tx)
        .await?;
        if stepped_aside.rows_affected() > 0 {
            // Contexts may name authors.
            self.clear_contexts().await?;
        }
        let (key, uuid): (i32, Uuid) = sqlx::query_as(
            "insert into principals (kind, name, created_at) values ('member', $1, $2)
             returning principal_id, uid",
        )
        .bind(handle)
        .bind(now)
        .fetch_one(&mut *self.tx)
        .await?;
        sqlx::query(
            "insert into members (principal_id, email, role, joined_at) values ($1, $2, $3, $4)",
        )
        .bind(key)
        .bind(email)
        .bind(role.name())
        .bind(now)
        .execute(&mut *self.tx)
        .await?;
        let detail = json!({ "role": role.name() });
        self.append_audit(actor, "member.add", handle, detail, now)
            .await?;
        Ok(PrincipalId { key, uuid })
    }

    /// Changes a member.
    ///
    /// # Errors
    /// `Conflict` if another member has the address; as any call of the store.
    pub async fn change_member(
        &mut self,
        handle: &str,
        change: &MemberChange<'_>,
        manager: &Manager,
    ) -> Result<MemberChanged, StoreError> {
        let fate = change.role.map_or(Fate::Unchanged, Fate::Role);
        let member = match self.lock_member(handle, fate, manager).await? {
            Ok(member) => member,
            Err(refused) => return Ok(refused),
        };
        let role = change.role.unwrap_or(member.role);
        let email = match change.email {
            Some(email) => email.map(str::to_owned),
            None => member.email.clone(),
        };
        let mut detail = json!({});
        if role != member.role {
            detail["role"] = json!(role.name());
            detail["was"] = json!(member.role.name());
        }
        if email != member.email {
            detail["email"] = json!("changed");
        }
        if detail != json!({}) {
            sqlx::query(
                "update members set role = $3, email = $4
                 where tenant_id = $1 and principal_id = $2",
            )
            .bind(self.tenant.key())
            .bind(member.id.key)
            .bind(role.name())
            .bind(&email)
            .execute(&mut *self.tx)
            .await?;
            self.append_audit(manager.actor, "member.change", handle, detail, manager.now)
                .await?;
        }
        Ok(MemberChanged::Done(Member {
            role,
            email,
            ..member
        }))
    }

    /// Removes a member and revokes all their keys, with all that end with those or with what they
    /// let in. What they shared stays; what only they could
    /// read, nobody can from now on.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn remove_member(
        &mut self,
        handle: &str,
        manager: &Manager,
    ) -> Result<MemberChanged, StoreError> {
        let member = match self.lock_member(handle, Fate::Removed, manager).await? {
            Ok(member) => member,
            Err(refused) => return Ok(refused),
        };
        sqlx::query(
            "update members set removed_at = $3 where tenant_id = $1 and principal_id = $2",
        )
        .bind(self.tenant.key())
        .bind(member.id.key)
        .bind(manager.now)
        .execute(&mut *self.tx)
        .await?;
        let keys: Vec<(Uuid, String)> = sqlx::query_as(
            "update credentials set revoked_at = $3
             where tenant_id = $1 and principal_id = $2 and revoked_at is null
             returning uid, key_id",
        )
        .bind(self.tenant.key())
        .bind(member.id.key)
        .bind(manager.now)
        .fetch_all(&mut *self.tx)
        .await?;
        let (mut ended, keys): (Vec<Uuid>, Vec<String>) = keys.into_iter().unzip();
        let detail = json!({ "role": member.role.name(), "keys_revoked": keys });
        self.append_audit(manager.actor, "member.remove", handle, detail, manager.now)
            .await?;
        // Locked, so that a key that is being made with one of them is found.
        let grants: Vec<Uuid> = sqlx::query_scalar(
            "select uid from grants
             where tenant_id = $1 and principal_id = $2 and revoked_at is null
             for no key update",
        )
        .bind(self.tenant.key())
        .bind(member.id.key)
        .fetch_all(&mut *self.tx)
        .await?;
        ended.extend(grants);
        self.revoke_descendants(ended, manager.actor, manager.now)
            .await?;
        Ok(MemberChanged::Done(member))
    }

    /// The member, locked together with all owners, if the manager may do this to them. Two who
    /// take owners away wait for each other, and the second one sees what the first has left.
    async fn lock_member(
        &mut self,
        handle: &str,
        fate: Fate,
        manager: &Manager,
    ) -> Result<Result<Member, MemberChanged>, StoreError> {
        let rows: Vec<MemberColumns> = sqlx::query_as(members!(
            "(p.name = $2 or m.role = 'owner') order by m.principal_id for update of m"
        ))
        .bind(self.tenant.key())
        .bind(handle)
        .fetch_all(&mut *self.tx)
        .await?;
        let rows = rows.into_iter().map(MemberColumns::read);
        let rows: Vec<Member> = rows.collect::<Result<_, _>>()?;
        let owners = rows.iter().filter(|row| row.role == Role::Owner).count();
        let Some(member) = rows.into_iter().find(|row| row.handle == handle) else {
            return Ok(Err(MemberChanged::NotFound));
        };
        let is_owner = member.role == Role::Owner;
        let stays_owner = match fate {
            Fate::Unchanged => is_owner,
            Fate::Role(role) => role == Role::Owner,
            Fate::Removed => false,
        };
        Ok(if (is_owner || stays_owner) && !manager.is_owner {
            Err(MemberChanged::Forbidden)
        } else if is_owner && !stays_owner && owners == 1 {
            Err(MemberChanged::LastOwner)
        } else {
            Ok(member)
        })
    }
}

/// What is to become of a member.
#[derive(Clone, Copy)]
enum Fate {
    Unchanged,
    Role(Role),
    Removed,
}
