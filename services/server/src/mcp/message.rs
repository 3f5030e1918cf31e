//! Which JSON-RPC messages are handed on to the protocol library: it answers those that it cannot
//! read with plain text, or as methods that are not there.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, InitializeRequestParams, PaginatedRequestParams,
    ProtocolVersion,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The header that names a revision of the protocol.
pub const VERSION: &str = "mcp-protocol-version";
/// Where a message names it.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// A JSON-RPC error that answers a message.
#[derive(Debug)]
pub struct Fault {
    status: StatusCode,
    id: Value,
    error: ErrorData,
}

impl Fault {
    /// The text is not JSON.
    pub fn not_json() -> Self {
        Self::refused(Value::Null, ErrorCode::PARSE_ERROR, "not JSON")
    }

    /// The text is JSON but no request.
    pub fn no_request(id: Value, why: &'static str) -> Self {
        Self::refused(id, ErrorCode::INVALID_REQUEST, why)
    }

    fn refused(id: Value, code: ErrorCode, why: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            id,
            error: ErrorData::new(code, why, None),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let body = json!({"jsonrpc": "2.0", "id": self.id, "error": self.error});
        (self.status, Json(body)).into_response()
    }
}

/// Checks one message.
///
/// # Errors
/// The fault to answer with.
pub fn check(message: &RawValue, headers: &HeaderMap) -> Result<(), Fault> {
    // JSON it is, so only its depth or a number without end can be in the way.
    let message: Value = serde_json::from_str(message.get())
        .map_err(|_| Fault::no_request(id_of(message), "nested too deep, or too large a number"))?;
    let id = message.get("id");
    if id.is_some_and(|id| !id.is_string() && id.as_i64().is_none()) {
        let why = "an id is a string or a whole number";
        return Err(Fault::no_request(Value::Null, why));
    }
    let answered = id.cloned().unwrap_or_default();
    if message["jsonrpc"] != "2.0" {
        return Err(Fault::no_request(answered, "jsonrpc is \"2.0\""));
    }
    let Value::String(method) = &message["method"] else {
        return Err(Fault::no_request(answered, "a request names its method"));
    };
    if is_unknown_version(method, &message, headers) {
        let error = ErrorData::unsupported_protocol_version(
            requested(headers),
            ProtocolVersion::KNOWN_VERSIONS,
        );
        return Err(Fault {
            status: StatusCode::BAD_REQUEST,
            id: answered,
            error,
        });
    }
    let unfit = match method.as_str() {
        // Of no revision that has left sessions behind: it is a method that is not there.
        "initialize" if is_modern(&message, headers) => None,
        method => unfit(method, &message["params"]),
    };
    match (id, unfit) {
        (Some(_), Some(why)) => Err(Fault {
            status: StatusCode::OK,
            id: answered,
            error: ErrorData::invalid_params(why, None),
        }),
        // Nobody waits for the answer to a notification.
        _ => Ok(()),
    }
}

/// The id of a message of which not more can be read; null if there is none.
pub fn id_of(message: &RawValue) -> Value {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let named: Option<Named<'_>> = serde_json::from_str(message.get()).ok();
    let id = named.and_then(|named| serde_json::from_str::<Value>(named.id?.get()).ok());
    id.filter(|id| id.is_string() || id.as_i64().is_some())
        .unwrap_or_default()
}

/// Whether the header names a version that is not served. What `initialize` or `_meta` ask for is
/// negotiated.
fn is_unknown_version(method: &str, message: &Value, headers: &HeaderMap) -> bool {
    let is_negotiated =
        method == "initialize" || message["params"]["_meta"][VERSION_KEY].is_string();
    !is_negotiated
        && headers.contains_key(VERSION)
        && !ProtocolVersion::KNOWN_VERSIONS.contains(&requested(headers))
}

/// Whether a message says itself that it is of a revision without a handshake.
fn is_modern(message: &Value, headers: &HeaderMap) -> bool {
    let named = message["params"]["_meta"][VERSION_KEY].as_str();
    let named = named.or_else(|| headers.get(VERSION)?.to_str().ok());
    // Dates in this form compare as texts.
    named.is_some_and(|named| named >= ProtocolVersion::V_2026_07_28.as_str())
}

fn requested(headers: &HeaderMap) -> ProtocolVersion {
    let named = headers.get(VERSION).map(|value| value.as_bytes());
    let named = String::from_utf8_lossy(named.unwrap_or_default());
    serde_json::from_value(Value::from(named)).unwrap_or_default()
}

/// What is wrong with the parameters of a method that is served.
fn unfit(method: &str, params: &Value) -> Option<String> {
    match method {
        "tools/call" => misread::<CallToolRequestParams>(params),
        "initialize" => misread::<InitializeRequestParams>(params),
        "tools/list" => misread::<Option<PaginatedRequestParams>>(params),
        _ => {
            let fits = params.is_null() || params.is_object();
            (!fits).then(|| "params is an object".to_owned())
        }
    }
}

fn misread<T: DeserializeOwned>(params: &Value) -> Option<String> {
    let read = T::deserialize(params);
    read.err().map(|error| error.to_string())
}
