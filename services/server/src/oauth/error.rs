//! What a program is told that asks for tokens in a wrong way: RFC 6749's JSON, with faults of the
//! service as everywhere else.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use cairn_store::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::actions::Failure;
use crate::rates::seconds;

/// A refusal as RFC 6749 and its companions write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OAuthError {
    /// A code of those texts.
    pub error: String,
    /// What is wrong this time, for people.
    pub error_description: String,
    /// Seconds to wait, for whoever came too fast.
    #[serde(skip)]
    pub retry_after: Option<u32>,
    #[serde(skip)]
    status: u16,
}

impl OAuthError {
    /// A refusal of this code.
    #[must_use]
    pub fn new(error: &str, description: impl Into<String>) -> Self {
        Self {
            error: error.to_owned(),
            error_description: description.into(),
            retry_after: None,
            status: if error == "invalid_client" { 401 } else { 400 },
        }
    }

    /// The answer to whoever comes too fast, by the one code of those texts that says "later".
    #[must_use]
    pub fn too_fast(description: impl Into<String>, wait: Duration) -> Self {
        Self {
            retry_after: Some(seconds(wait).max(1)),
            status: 429,
            ..Self::new("temporarily_unavailable", description)
        }
    }

    /// A request that lacks something or has it twice.
    #[must_use]
    pub fn invalid_request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }

    /// A code or a token that is worth nothing.
    #[must_use]
    pub fn invalid_grant(description: impl Into<String>) -> Self {
        Self::new("invalid_grant", description)
    }
}

/// Why a step of sign-in was not taken.
#[derive(Debug)]
pub enum Refusal {
    /// The program is at fault.
    OAuth(OAuthError),
    /// Anything else.
    Failure(Failure),
}

impl From<OAuthError> for Refusal {
    fn from(error: OAuthError) -> Self {
        Self::OAuth(error)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Failure(error.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::OAuth(error) => error.into_response(),
            Self::Failure(failure) => failure.into_response(),
        }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let retry_after = self.retry_after;
        later(unkept((status, Json(self))), retry_after)
    }
}

/// An answer that says after how many seconds to come again, if it is any.
pub fn later(answer: impl IntoResponse, retry_after: Option<u32>) -> Response {
    let mut response = answer.into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// An answer that nobody on the way may keep.
pub fn unkept(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, never);
    response
}
