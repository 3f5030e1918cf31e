//! Problem: every error a caller can see (RFC 9457), in one table.
//!
//! Codes are stable and the list is complete (contract 17). A caller's fault is always 4xx; a
//! body of a 5xx holds code and request id only.

use std::fmt;

use cairn_domain::Rejection;
use cairn_domain::redact::safe;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:literal, $title:literal;)*) => {
        /// A stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All codes, in the order of the contract's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it is written.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The HTTP status it travels with.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    /// Not JSON, not UTF-8, or of a wrong content type.
    MalformedBody = "malformed_body", 400, "The body cannot be read";
    /// No credential, or an unknown one.
    Unauthenticated = "unauthenticated", 401, "Sign in";
    /// The credential was revoked.
    CredentialRevoked = "credential_revoked", 401, "The credential is revoked";
    /// The credential is over its time.
    CredentialExpired = "credential_expired", 401, "The credential has expired";
    /// The credential lacks a scope.
    InsufficientScope = "insufficient_scope", 403, "The credential lacks a scope";
    /// The Host header names a host that is not served.
    HostNotAllowed = "host_not_allowed", 403, "This host name is not served";
    /// The Origin header names a site that may not call.
    OriginNotAllowed = "origin_not_allowed", 403, "This origin may not call";
    /// A quota of the tenant is used up.
    QuotaExceeded = "quota_exceeded", 403, "A quota is used up";
    /// Missing, or not the caller's to see.
    NotFound = "not_found", 404, "Not found";
    /// The path exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here";
    /// Somebody holds the task.
    Claimed = "claimed", 409, "The task is held by somebody else";
    /// The state of the object does not allow it.
    Conflict = "conflict", 409, "The state does not allow this";
    /// A tenant keeps at least one owner.
    LastOwner = "last_owner", 409, "A tenant needs an owner";
    /// The event id belongs to somebody else's event.
    EventIdReused = "event_id_reused", 409, "The event id is in use";
    /// The cursor is not one of this caller's searches.
    InvalidContinuation = "invalid_continuation", 404, "Unknown continuation";
    /// A condition of the search changed.
    ScopeChanged = "scope_changed", 409, "The search's conditions changed";
    /// The search is over its time.
    ExpiredContinuation = "expired_continuation", 410, "The continuation has expired";
    /// The body is over the limit.
    BodyTooLarge = "body_too_large", 413, "The body is too large";
    /// The address is over the limit.
    UriTooLong = "uri_too_long", 414, "The address is too long";
    /// The position is from another life of the store.
    PositionUnknown = "position_unknown", 410, "Unknown position";
    /// The range lies outside the resource.
    RangeNotSatisfiable = "range_not_satisfiable", 416, "The range is outside the resource";
    /// A field of the body breaks its rule.
    InvalidField = "invalid_field", 422, "A field breaks its rule";
    /// An argument of a search breaks its rule.
    InvalidInput = "invalid_input", 422, "An argument breaks its rule";
    /// The selection is missing or too long.
    SelectionRequired = "selection_required", 422, "Select ids of the step before";
    /// An id was not disclosed.
    InvalidSelection = "invalid_selection", 422, "The id was not shown";
    /// Not even one row fits.
    ResponseTooLarge = "response_too_large", 422, "The result does not fit";
    /// A page's cursor is forged or belongs to other filters.
    InvalidCursor = "invalid_cursor", 422, "Unknown page cursor";
    /// A search without words and without filters.
    QueryOrFilterRequired = "query_or_filter_required", 422, "Give a query or a filter";
    /// No current project and none named.
    ProjectRequired = "project_required", 422, "Name a project";
    /// A name fits several projects.
    AmbiguousProject = "ambiguous_project", 422, "The name fits several projects";
    /// A record says nothing.
    EmptyRecord = "empty_record", 422, "The record is empty";
    /// A skill's entry is too long.
    EntryTooLong = "entry_too_long", 422, "The skill's entry is too long";
    /// A skill's instructions are too long.
    InstructionsTooLong = "instructions_too_long", 422, "The instructions are too long";
    /// A blob's bytes differ from its name.
    DigestMismatch = "digest_mismatch", 422, "The bytes differ from their digest";
    /// The item needs a newer service.
    UnsupportedKind = "unsupported_kind", 422, "The kind needs a newer service";
    /// The client is below the oldest version served.
    ClientTooOld = "client_too_old", 426, "The client is too old";
    /// Too many requests.
    RateLimited = "rate_limited", 429, "Too many requests";
    /// A fault of the service.
    Internal = "internal", 500, "A fault of the service";
    /// Postgres is away, or Redis where it is needed.
    StoreUnavailable = "store_unavailable", 503, "The store is unavailable";
    /// The replica is going away.
    ShuttingDown = "shutting_down", 503, "The replica is shutting down";
    /// The replica has too much to do.
    Overloaded = "overloaded", 503, "The replica is overloaded";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal or a fault as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:cairn:problem:<code>`.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// What the code means.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time; absent in a 5xx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The request's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The stable code.
    pub code: Code,
    /// The fields at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Seconds to wait before trying again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// Keys of the projects that an ambiguous name fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The scopes that the call needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Who holds the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Until when, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The quota that is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Box<UsedUp>>,
}

/// A quota that is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsedUp {
    /// Its name in the tenant's settings.
    pub name: String,
    /// How much it allows; absent if the setting cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer to the field.
    pub pointer: String,
    /// What is allowed.
    pub detail: String,
}

impl Problem {
    /// A problem of this code, with a detail for the caller unless it is the service's fault.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("urn:cairn:problem:{code}"),
            title: code.title().to_owned(),
            status: code.status(),
            // What a caller sent may come back in it, and be kept at the other end.
            detail: (code.status() < 500).then(|| safe(&detail.into()).into_owned()),
            instance: None,
            code,
            errors: Vec::new(),
            retry_after: None,
            candidates: Vec::new(),
            scopes: Vec::new(),
            holder: None,
            until: None,
            quota: None,
        }
    }

    /// A fault of the service: nothing but the code leaves it.
    #[must_use]
    pub fn fault(code: Code) -> Self {
        Self::new(code, String::new())
    }

    /// The same problem, to be tried again after `seconds`.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The form a model reads: `<code> - <detail>`.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} - {}",
            self.code,
            self.detail.as_deref().unwrap_or(&self.title)
        )
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let detail = rejection.to_string();
        match rejection {
            Rejection::InvalidField { pointer, detail } => {
                let said = match pointer.as_str() {
                    "" => detail.clone(),
                    pointer => format!("{pointer}: {detail}"),
                };
                let pointer = safe(&pointer).into_owned();
                let detail = safe(&detail).into_owned();
                Self {
                    errors: vec![FieldError { pointer, detail }],
                    ..Self::new(Code::InvalidField, said)
                }
            }
            Rejection::InvalidInput { .. } => Self::new(Code::InvalidInput, detail),
            Rejection::EmptyRecord(_) => Self::new(Code::EmptyRecord, detail),
            Rejection::UnsupportedKind(_) => Self::new(Code::UnsupportedKind, detail),
            Rejection::EventIdReused => Self::new(Code::EventIdReused, detail),
            Rejection::SelectionRequired { .. } => Self::new(Code::SelectionRequired, detail),
            Rejection::NotDisclosed { .. } | Rejection::ContextOnly { .. } => {
                Self::new(Code::InvalidSelection, detail)
            }
            Rejection::InvalidContinuation => Self::new(Code::InvalidContinuation, detail),
            Rejection::ExpiredContinuation => Self::new(Code::ExpiredContinuation, detail),
            Rejection::ScopeChanged { .. } => Self::new(Code::ScopeChanged, detail),
            Rejection::ResponseTooLarge => Self::new(Code::ResponseTooLarge, detail),
            Rejection::ProjectRequired => Self::new(Code::ProjectRequired, detail),
            Rejection::AmbiguousProject { candidates, .. } => Self {
                candidates,
                ..Self::new(Code::AmbiguousProject, detail)
            },
            Rejection::NotFound => Self::new(Code::NotFound, detail),
            Rejection::InsufficientScope(scope) => Self {
                scopes: vec![scope.name().to_owned()],
                ..Self::new(Code::InsufficientScope, detail)
            },
            Rejection::Claimed { holder, until, .. } => Self {
                holder: Some(holder),
                until: Some(crate::time::text(until)),
                ..Self::new(Code::Claimed, detail)
            },
            Rejection::InvalidCursor => Self::new(Code::InvalidCursor, detail),
            Rejection::PositionUnknown => Self::new(Code::PositionUnknown, detail),
            Rejection::QueryOrFilterRequired => Self::new(Code::QueryOrFilterRequired, detail),
            Rejection::Conflict(_) => Self::new(Code::Conflict, detail),
            Rejection::QuotaExceeded { quota, limit } => Self {
                quota: Some(Box::new(UsedUp {
                    name: quota.name().to_owned(),
                    limit,
                })),
                ..Self::new(Code::QuotaExceeded, detail)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_written_as_it_is_named() {
        for code in Code::ALL {
            let json = serde_json::to_value(code).expect("serialises");
            assert_eq!(json, code.name());
            assert_eq!(
                serde_json::from_value::<Code>(json).expect("reads back"),
                *code
            );
            assert!((400..=503).contains(&code.status()));
        }
    }

    #[test]
    fn a_fault_of_the_service_says_nothing_about_itself() {
        let problem = Problem::new(Code::Internal, "select * from secrets");
        let body = serde_json::to_value(problem).expect("serialises");
        assert_eq!(
            body,
            serde_json::json!({"type": "urn:cairn:problem:internal",
                "title": "A fault of the service", "status": 500, "code": "internal"})
        );
    }

    #[test]
    fn rejections_keep_their_code() {
        for rejection in [
            Rejection::invalid_field("/title", "at most 400"),
            Rejection::NotFound,
            Rejection::ExpiredContinuation,
            Rejection::ContextOnly {
                id: "P3".to_owned(),
            },
        ] {
            assert_eq!(
                Problem::from(rejection.clone()).code.name(),
                rejection.code()
            );
        }
    }
}
