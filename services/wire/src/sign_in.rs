//! Sign-in: what a program that was let in gets, and what a member signs in with.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Tokens (RFC 6749, 5.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenAnswer {
    /// What is shown with each request, as `Authorization: Bearer`.
    pub access_token: String,
    /// `Bearer`.
    pub token_type: String,
    /// Seconds until the access token is over.
    pub expires_in: i64,
    /// What is shown once for the next tokens.
    pub refresh_token: String,
    /// What the tokens allow, names between spaces.
    #[serde(default)]
    pub scope: String,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenAnswer({})", self.scope)
    }
}

/// The codes of a device that asks to be let in (RFC 8628, 3.2).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceAnswer {
    /// What the device shows when it asks whether it was let in.
    pub device_code: String,
    /// What its user types, `XXXX-XXXX`.
    pub user_code: String,
    /// The page to type it on.
    pub verification_uri: String,
    /// The same page with the code in it.
    pub verification_uri_complete: String,
    /// Seconds until the codes are over.
    pub expires_in: u64,
    /// Seconds between two questions.
    pub interval: u64,
}

impl std::fmt::Debug for DeviceAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceAnswer({})", self.verification_uri)
    }
}

/// A one-time code with which a member signs in on a page.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInCode {
    /// The member's handle.
    pub handle: String,
    /// The code, shown this once.
    pub code: String,
    /// The page to type it on.
    pub page: String,
    /// From when on it is worth nothing.
    #[serde(serialize_with = "crate::time::millis")]
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for SignInCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SignInCode({})", self.handle)
    }
}
