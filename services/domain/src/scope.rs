//! Roles and scopes: what a credential allows (contract 2.2).

use std::fmt;
use std::str::FromStr;

/// One thing a credential may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Search, context, details, work state, skills, sync.
    MemoryRead,
    /// Events, observations, promotion and deletion of own records.
    MemoryWrite,
    /// Work entries, claim, release.
    WorkWrite,
    /// Tool uses.
    EvidenceRead,
    /// Publish and retire skills.
    SkillPublish,
    /// Members, keys, projects, jobs, settings, audit, export, import, purge, others' records.
    TenantAdmin,
    /// Owners, deletion of the tenant.
    TenantOwn,
}

impl Scope {
    /// All scopes, in the order of the contract's table.
    pub const ALL: [Self; 7] = [
        Self::MemoryRead,
        Self::MemoryWrite,
        Self::WorkWrite,
        Self::EvidenceRead,
        Self::SkillPublish,
        Self::TenantAdmin,
        Self::TenantOwn,
    ];

    /// The scope's name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemoryRead => "memory:read",
            Self::MemoryWrite => "memory:write",
            Self::WorkWrite => "work:write",
            Self::EvidenceRead => "evidence:read",
            Self::SkillPublish => "skill:publish",
            Self::TenantAdmin => "tenant:admin",
            Self::TenantOwn => "tenant:own",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.name() == text)
            .ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A name that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope")]
pub struct UnknownScope(String);

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether `scope` is in the set.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The most that a credential may carry: what its member's role allows, or for a service key,
    /// which has none, all but ownership.
    #[must_use]
    pub fn at_most(role: Option<Role>) -> Self {
        role.unwrap_or(Role::Admin).scopes()
    }

    /// What both sets allow.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The scopes of the set, in the order of the contract's table.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.contains(*scope))
    }

    /// The names of the set's scopes.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Scope::name).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

/// What a member is in a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// May do everything, and alone may delete the tenant.
    Owner,
    /// Runs the tenant.
    Admin,
    /// Works in it.
    Member,
    /// Reads it.
    Reader,
}

impl Role {
    /// The role's name on the wire and in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Reader => "reader",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Owner, Self::Admin, Self::Member, Self::Reader]
            .into_iter()
            .find(|r| r.name() == name)
    }

    /// All that the role allows; a credential may carry less.
    #[must_use]
    pub fn scopes(self) -> Scopes {
        let all = Scope::ALL.into_iter();
        match self {
            Self::Owner => all.collect(),
            Self::Admin => all.filter(|s| *s != Scope::TenantOwn).collect(),
            Self::Member => all
                .filter(|s| !matches!(s, Scope::TenantAdmin | Scope::TenantOwn))
                .collect(),
            Self::Reader => all.filter(|s| *s == Scope::MemoryRead).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_allows_what_the_table_says() {
        assert_eq!(Role::Reader.scopes().names(), ["memory:read"]);
        assert_eq!(Role::Member.scopes().names().len(), 5);
        assert!(!Role::Admin.scopes().contains(Scope::TenantOwn));
        assert!(Role::Owner.scopes().contains(Scope::TenantOwn));
    }

    #[test]
    fn a_subset_never_grants_more_than_the_role() {
        let wanted: Scopes = [Scope::MemoryRead, Scope::TenantOwn].into_iter().collect();
        assert_eq!(wanted.and(Role::Member.scopes()).names(), ["memory:read"]);
    }

    #[test]
    fn names_read_back() {
        for scope in Scope::ALL {
            assert_eq!(scope.name().parse::<Scope>(), Ok(scope));
        }
        assert!("memory:*".parse::<Scope>().is_err());
    }
}
