//! The audit log as it is read (contract 16, 20.1).

use cairn_domain::Rejection;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::pages::PageAsk;
use crate::query::{Pairs, Period};

/// The question of `GET /v1/audit`, as it is documented. It is read by [`AuditAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct AuditQuery {
    /// From this moment on: a date, which means the day in `tz`, or RFC 3339.
    from: Option<String>,
    /// Up to this moment: the whole day of a date.
    to: Option<String>,
    /// The zone of dates, an IANA name; `UTC` if absent.
    tz: Option<String>,
    /// What this handle, or `key:<key id>`, did.
    actor: Option<String>,
    /// This action alone, such as `member.remove`.
    action: Option<String>,
    /// Items of a page: 1 to 200, 50 by default.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// A question for the log, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditAsk {
    /// When.
    pub period: Period,
    /// Who.
    pub actor: Option<String>,
    /// What.
    pub action: Option<String>,
    /// Which page.
    pub page: PageAsk,
}

impl AuditAsk {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        Ok(Self {
            period: pairs.period()?,
            actor: pairs.text("actor").map(str::to_owned),
            action: pairs.text("action").map(str::to_owned),
            page: PageAsk::read(pairs)?,
        })
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditItem {
    /// When.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// Who: a handle, or `key:<key id>`; null for the operator of the service.
    #[serde(default)]
    pub actor: Option<String>,
    /// What was done.
    pub action: String,
    /// To what.
    pub target: String,
    /// How.
    #[schema(value_type = Object)]
    pub detail: Value,
}

/// A page of the log, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The lines.
    pub items: Vec<AuditItem>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
