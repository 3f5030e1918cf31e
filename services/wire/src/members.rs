//! Members: who there is in a tenant, and what they are (contract 2.2).

use cairn_domain::bounds::clean;
use cairn_domain::ids::is_handle;
use cairn_domain::scope::Role;
use cairn_domain::{Rejection, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// A member to add.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MemberWrite {
    /// 1 to 39 of `a-z 0-9 . _ -`, the first a letter or digit.
    pub handle: String,
    /// The address by which sign-in finds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// `owner`, `admin`, `member` or `reader`; `member` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A member to add, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// The handle.
    pub handle: String,
    /// The address.
    pub email: Option<String>,
    /// What they are to be.
    pub role: Role,
}

impl MemberWrite {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid_field` naming the field and what is allowed.
    pub fn parse(self) -> Result<NewMember, Rejection> {
        if !is_handle(&self.handle) {
            let allowed = "1 to 39 of a-z 0-9 . _ -, the first a letter or digit";
            return Err(Rejection::invalid_field("/handle", allowed));
        }
        Ok(NewMember {
            handle: self.handle,
            email: self.email.map(read_email).transpose()?,
            role: self
                .role
                .as_deref()
                .map_or(Ok(Role::Member), |role| read_role("/role", role))?,
        })
    }
}

/// What a member is to be from now on; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MemberPatch {
    /// `owner`, `admin`, `member` or `reader`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The address by which sign-in finds them; null for none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    #[schema(value_type = Option<String>)]
    pub email: Option<Option<String>>,
}

/// A change of a member, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberChange {
    /// What they are to be.
    pub role: Option<Role>,
    /// The address, or that there is none.
    pub email: Option<Option<String>>,
}

impl MemberPatch {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid_field` naming the field and what is allowed.
    pub fn parse(self) -> Result<MemberChange, Rejection> {
        if self.role.is_none() && self.email.is_none() {
            return Err(Rejection::invalid_field("", "give role or email"));
        }
        let role = self.role.as_deref();
        let email = self.email.map(|email| email.map(read_email).transpose());
        Ok(MemberChange {
            role: role.map(|role| read_role("/role", role)).transpose()?,
            email: email.transpose()?,
        })
    }
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberItem {
    /// The handle.
    pub handle: String,
    /// The address by which sign-in finds them; null if none is known.
    #[serde(default)]
    pub email: Option<String>,
    /// `owner`, `admin`, `member` or `reader`.
    pub role: String,
    /// Since when they are a member.
    #[serde(serialize_with = "crate::time::millis")]
    pub joined_at: DateTime<Utc>,
}

/// A page of the members, by handle.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MemberList {
    /// The members.
    pub items: Vec<MemberItem>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Reads the name of a role.
///
/// # Errors
/// `invalid_field`.
pub fn read_role(pointer: &str, text: &str) -> Result<Role, Rejection> {
    let refuse = || Rejection::invalid_field(pointer, "one of owner, admin, member, reader");
    Role::from_name(text).ok_or_else(refuse)
}

/// An address that could be one: whether it is, only a provider of sign-ins can tell.
fn read_email(text: String) -> Result<String, Rejection> {
    let email = clean(text).trim().to_owned();
    let parts = email.split_once('@');
    let is_whole = parts
        .is_some_and(|(local, host)| !local.is_empty() && !host.is_empty() && !host.contains('@'));
    let is_plain = !email.chars().any(|c| c.is_control() || c.is_whitespace());
    if is_whole && is_plain && email.len() <= limits::EMAIL_BYTES {
        return Ok(email);
    }
    let allowed = format!("an address of at most {} bytes", limits::EMAIL_BYTES);
    Err(Rejection::invalid_field("/email", allowed))
}

/// Tells null from what is left out.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(value).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::whole;

    fn pointer(refused: Result<impl std::fmt::Debug, Rejection>) -> String {
        match refused {
            Err(Rejection::InvalidField { pointer, .. }) => pointer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_member_is_one_unless_a_role_is_named() {
        let write: MemberWrite = whole(r#"{"handle":"lin"}"#).expect("reads");
        let new = write.parse().expect("a member");
        assert_eq!((new.role, new.email), (Role::Member, None));
        for (json, at) in [
            (r#"{"handle":"Lin"}"#, "/handle"),
            (r#"{"handle":"lin","role":"king"}"#, "/role"),
            (r#"{"handle":"lin","email":"lin"}"#, "/email"),
            (r#"{"handle":"lin","email":"a b@c"}"#, "/email"),
            (r#"{"handle":"lin","email":"a@b@c"}"#, "/email"),
        ] {
            let write: MemberWrite = whole(json).expect("reads");
            assert_eq!(pointer(write.parse()), at, "{json}");
        }
    }

    #[test]
    fn a_patch_tells_null_from_nothing() {
        let read = |json| whole::<MemberPatch>(json).expect("reads").parse();
        let change = read(r#"{"email":null}"#).expect("a change");
        assert_eq!((change.role, change.email), (None, Some(None)));
        let change = read(r#"{"role":"owner"}"#).expect("a change");
        assert_eq!((change.role, change.email), (Some(Role::Owner), None));
        assert_eq!(pointer(read("{}")), "");
    }
}
