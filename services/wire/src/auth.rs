//! Auth: what a caller is told about itself.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The caller as the service sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The tenant's name.
    pub tenant: String,
    /// The member's handle, or `key:<key id>`.
    pub handle: String,
    /// The member's role; absent for a service key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What the credential allows.
    pub scopes: Vec<String>,
    /// The key of the only project it may see, if it is limited to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When the credential ends.
    #[serde(serialize_with = "crate::time::millis")]
    pub expires_at: DateTime<Utc>,
}
