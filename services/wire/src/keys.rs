//! Keys: making, listing and revoking them (contract 14.1).

use cairn_domain::scope::{Scope, Scopes};
use cairn_domain::{Rejection, bounds, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A key to make.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct KeyWrite {
    /// What the key is for.
    pub name: String,
    /// What it carries; all that its owner and its maker may, but `tenant:admin` and `tenant:own`,
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The only project it sees: id, key or name. The one that its maker is limited to, or any, if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Days until it ends: 1 to 365; 90 if absent. One that is made with a sign-in or a service key
    /// ends with that at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_days: Option<u32>,
    /// Whether it is the tenant's, as for CI, and nobody's own.
    #[serde(default)]
    pub service: bool,
    /// Whose it is: a handle; the maker's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// A key to make, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// What it is for.
    pub name: String,
    /// What it is to carry, if that is said.
    pub scopes: Option<Scopes>,
    /// The project it is to be limited to, as it was named.
    pub project: Option<String>,
    /// Days until it ends.
    pub days: u32,
    /// Whose it is.
    pub owner: KeyFor,
}

/// Whose a new key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFor {
    /// Its maker's.
    Maker,
    /// This member's.
    Member(String),
    /// The tenant's.
    Service,
}

impl KeyWrite {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid_field` naming the field and what is allowed.
    pub fn parse(self) -> Result<NewKey, Rejection> {
        let days = self.expires_in_days.unwrap_or(limits::KEY_DAYS);
        if !(1..=limits::MAX_KEY_DAYS).contains(&days) {
            let allowed = format!("1 to {}", limits::MAX_KEY_DAYS);
            return Err(Rejection::invalid_field("/expires_in_days", allowed));
        }
        let owner = match (self.member, self.service) {
            (None, false) => KeyFor::Maker,
            (Some(handle), false) => KeyFor::Member(handle),
            (None, true) => KeyFor::Service,
            (Some(_), true) => {
                let allowed = "a service key is no member's";
                return Err(Rejection::invalid_field("/member", allowed));
            }
        };
        let project = self.project.filter(|text| !text.trim().is_empty());
        Ok(NewKey {
            name: bounds::word("/name", self.name, limits::WORD_BYTES)?,
            scopes: self.scopes.map(|names| read_scopes(&names)).transpose()?,
            project,
            days,
            owner,
        })
    }
}

fn read_scopes(names: &[String]) -> Result<Scopes, Rejection> {
    let allowed = || {
        let all = Scope::ALL.map(Scope::name).join(", ");
        format!("one of {all}")
    };
    if names.is_empty() {
        return Err(Rejection::invalid_field("/scopes", "at least one scope"));
    }
    let read = |(nth, name): (usize, &String)| {
        let refuse = |_| Rejection::invalid_field(format!("/scopes/{nth}"), allowed());
        name.parse::<Scope>().map_err(refuse)
    };
    names.iter().enumerate().map(read).collect()
}

/// A key as lists show it: all but the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyItem {
    /// The part between the underscores; `DELETE /v1/keys/{id}` takes it.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// Whose it is: a handle, or `key:<key id>`.
    pub owner: String,
    /// Whether it is the tenant's.
    pub service: bool,
    /// What it carries.
    pub scopes: Vec<String>,
    /// The key of the only project it sees; null if it is not limited.
    #[serde(default)]
    pub project: Option<String>,
    /// When it was made.
    #[serde(serialize_with = "crate::time::millis")]
    pub created_at: DateTime<Utc>,
    /// When it ends.
    #[serde(serialize_with = "crate::time::millis")]
    pub expires_at: DateTime<Utc>,
    /// When it was used last, to the hour; null if never.
    #[serde(default, serialize_with = "crate::time::optional_millis")]
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A key that was just made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyMade {
    /// The whole key. It is shown here, and never again.
    pub key: String,
    /// What it is.
    #[serde(flatten)]
    pub item: KeyItem,
}

/// A page of the keys that were not revoked, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// The keys.
    pub items: Vec<KeyItem>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::whole;

    #[test]
    fn what_a_key_may_not_be_is_pointed_at() {
        for (json, at) in [
            (r#"{"name":" "}"#, "/name"),
            (r#"{"name":"x","scopes":[]}"#, "/scopes"),
            (
                r#"{"name":"x","scopes":["memory:read","all"]}"#,
                "/scopes/1",
            ),
            (r#"{"name":"x","expires_in_days":0}"#, "/expires_in_days"),
            (r#"{"name":"x","expires_in_days":366}"#, "/expires_in_days"),
            (r#"{"name":"x","service":true,"member":"lin"}"#, "/member"),
        ] {
            let write: KeyWrite = whole(json).expect("reads");
            match write.parse() {
                Err(Rejection::InvalidField { pointer, .. }) => assert_eq!(pointer, at, "{json}"),
                other => panic!("{json}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_key_is_its_makers_for_ninety_days() {
        let write: KeyWrite = whole(r#"{"name":"laptop"}"#).expect("reads");
        let new = write.parse().expect("a key");
        assert_eq!((new.days, new.owner, new.scopes), (90, KeyFor::Maker, None));
    }
}
