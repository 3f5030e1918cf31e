//! Sessions as they are read: what there is of each (contract 3.2, 16).

use cairn_domain::Rejection;
use cairn_domain::filter::ByAuthor;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::pages::PageAsk;
use crate::query::{Pairs, Period};

/// The question of `GET /v1/sessions`, as it is documented. It is read by [`SessionAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct SessionQuery {
    /// Id, key or name of a project, `*` for all; the current project if absent.
    project: Option<String>,
    /// By this handle, or `key:<key id>`; `me` for the caller's own.
    author: Option<String>,
    /// Begun from this moment on: a date, which means the day in `tz`, or RFC 3339.
    from: Option<String>,
    /// Begun up to this moment: the whole day of a date.
    to: Option<String>,
    /// The zone of dates, an IANA name; `UTC` if absent.
    tz: Option<String>,
    /// Items of a page: 1 to 200, 50 by default.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// A question for sessions, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionAsk {
    /// The project that is named.
    pub project: Option<String>,
    /// Whose.
    pub author: Option<ByAuthor>,
    /// When they began.
    pub period: Period,
    /// Which page.
    pub page: PageAsk,
}

impl SessionAsk {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        Ok(Self {
            project: pairs.text("project").map(str::to_owned),
            author: pairs.text("author").map(ByAuthor::read),
            period: pairs.period()?,
            page: PageAsk::read(pairs)?,
        })
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionItem {
    /// Its id.
    pub id: Uuid,
    /// The host and its id of the session, `<host>/<id>`.
    pub key: String,
    /// The host.
    pub host: String,
    /// The host's id of it, as records name it.
    pub session: String,
    /// The project's key.
    pub project: String,
    /// Whose it is: a handle, or `key:<key id>`.
    pub author: String,
    /// When it began.
    #[serde(serialize_with = "crate::time::millis")]
    pub started_at: DateTime<Utc>,
    /// When it ended; null if it has not.
    #[serde(default, serialize_with = "crate::time::optional_millis")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended, as the host says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// How it began, as the host says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much of it the caller may read.
    pub counts: SessionCounts,
}

/// How much of a session the caller may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionCounts {
    /// Observations.
    pub observations: u64,
    /// Summaries.
    pub summaries: u64,
    /// Prompts.
    pub prompts: u64,
    /// Tool uses; absent for a credential without `evidence:read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_uses: Option<u64>,
}

/// A page of sessions, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// The sessions.
    pub items: Vec<SessionItem>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
