//! Grants: the programs that a member has let in.

use cairn_domain::Rejection;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::query::Pairs;

/// Which grants are asked for, as they stand in an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GrantQuery {
    /// Whose: a handle, or `*` for everybody's; one's own if not set. Others' need `tenant:admin`.
    member: Option<String>,
    /// How many, at most 200.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// Which grants are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantAsk {
    /// Whose: a handle, or `*` for everybody's; one's own if not set.
    pub member: Option<String>,
    /// How many.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl GrantAsk {
    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// `invalid_input` for a limit that is none.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        Ok(Self {
            member: pairs.text("member").map(str::to_owned),
            limit: pairs.page()?,
            cursor: pairs.text("cursor").map(str::to_owned),
        })
    }
}

/// A page of grants, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantList {
    /// The grants.
    pub items: Vec<Grant>,
    /// What to send for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A program that was let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// The grant's id.
    pub id: Uuid,
    /// The handle of the member who let it in.
    pub member: String,
    /// The program's id.
    pub client_id: String,
    /// What the program calls itself.
    pub client: String,
    /// The machine that it was let in from, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What it may do; the member's role may allow less.
    pub scopes: Vec<String>,
    /// The address that its tokens are good for.
    pub resource: String,
    /// When it was let in.
    #[serde(serialize_with = "crate::time::millis")]
    pub created_at: DateTime<Utc>,
    /// When it fetched tokens last.
    #[serde(serialize_with = "crate::time::millis")]
    pub last_used_at: DateTime<Utc>,
    /// When it ends, however it is used.
    #[serde(serialize_with = "crate::time::millis")]
    pub expires_at: DateTime<Utc>,
    /// Whether the caller acts by this grant.
    #[serde(default)]
    pub current: bool,
}
