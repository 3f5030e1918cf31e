//! Reading requests, with a problem for all that cannot be read.

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use cairn_domain::Rejection;
use cairn_domain::json_text::mend_escapes;
use cairn_domain::limits;
use cairn_wire::query::Pairs;
use cairn_wire::reading::whole;
use cairn_wire::{Code, Problem};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::actions::Failure;
use crate::auth::Caller;

/// The header that makes a write repeatable.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The event id that a header gives a write, so that it can be sent again.
///
/// # Errors
/// `invalid_field` for one that is no UUID: taken for none, the write would not be repeatable.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<Uuid>, Rejection> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let key = text.trim().trim_matches('"').parse().map(Some);
    key.map_err(|_| Rejection::invalid_field("", "Idempotency-Key: a UUID"))
}

/// Refuses a body that says of itself that it is too large.
///
/// # Errors
/// `body_too_large`.
pub fn refuse_large(request: Request) -> Result<Request, Failure> {
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_none_or(|length| length <= limits::BODY_BYTES as u64) {
        return Ok(request);
    }
    leave_body(request);
    Err(too_large().into())
}

/// Answers a request without its body.
pub fn leave_body(request: Request) {
    if !request.body().is_end_stream() {
        tokio::spawn(discard(request.into_body()));
    }
}

/// Takes in a body that nobody reads: a caller that is still sending would not see its answer.
async fn discard(mut body: Body) {
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whoever sends for longer than this loses the connection.
    drop(tokio::time::timeout(limits::BODY_TIME, all).await);
}

/// Waits for the whole body, so that what comes after it waits for the service alone.
///
/// # Errors
/// `body_too_large`, or `malformed_body` for one that breaks off or takes too long.
pub async fn receive(request: Request) -> Result<Request, Failure> {
    if request.body().is_end_stream() {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let whole = axum::body::to_bytes(body, limits::BODY_BYTES);
    let bytes = match tokio::time::timeout(limits::BODY_TIME, whole).await {
        Ok(bytes) => bytes.map_err(|error| unreadable(&error))?,
        Err(_) => {
            let detail = "the body did not arrive in time";
            return Err(Problem::new(Code::MalformedBody, detail).into());
        }
    };
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// The body as JSON text: within the limit, UTF-8, its escapes mended.
pub struct JsonText(pub String);

impl<S: Send + Sync> FromRequest<S> for JsonText {
    type Rejection = Response;

    async fn from_request(request: Request, _: &S) -> Result<Self, Response> {
        if let Some(problem) = wrong_type(request.headers()) {
            return Err(Failure::from(problem).into_response());
        }
        let text = read_text(request.into_body()).await;
        text.map(Self).map_err(IntoResponse::into_response)
    }
}

/// Reads a body as JSON text: within the limit, UTF-8, its escapes mended.
///
/// # Errors
/// `body_too_large`, or `malformed_body` for what is not UTF-8 or breaks off.
pub async fn read_text(body: Body) -> Result<String, Failure> {
    let bytes = axum::body::to_bytes(body, limits::BODY_BYTES).await;
    let bytes = bytes.map_err(|error| unreadable(&error))?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Problem::new(Code::MalformedBody, "the body is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(mend_escapes(text).into_owned())
}

/// The body as a value of one type.
pub struct ApiJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for ApiJson<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        whole(&text)
            .map(Self)
            .map_err(|e| Failure::from(Problem::from(e)).into_response())
    }
}

/// A part of the path; one that is no text names nothing.
pub struct ApiPath<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0))
            .map_err(|_| Failure::from(Rejection::NotFound).into_response())
    }
}

/// Query parameters; unknown ones are ignored.
pub struct ApiQuery<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let read = match without_nul(&parts.uri) {
            Some(uri) => axum::extract::Query::<T>::try_from_uri(&uri),
            None => axum::extract::Query::<T>::try_from_uri(&parts.uri),
        };
        read.map(|query| Self(query.0)).map_err(|error| {
            Failure::from(Rejection::invalid_input("query", &error.body_text())).into_response()
        })
    }
}

impl<T: DeserializeOwned> TryFrom<Pairs> for ApiQuery<T> {
    type Error = Failure;

    /// Reads pairs as the query that they came from, or were made of.
    fn try_from(Pairs(pairs): Pairs) -> Result<Self, Failure> {
        let encoded = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
        };
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let address = format!("/?{}", pairs.collect::<Vec<_>>().join("&"));
        // What came in an address fits into one.
        let uri: Uri = address.parse().map_err(|_| Rejection::NotFound)?;
        let read = axum::extract::Query::<T>::try_from_uri(&uri);
        read.map(|query| Self(query.0))
            .map_err(|error| Rejection::invalid_input("query", &error.body_text()).into())
    }
}

/// Query parameters of which some may come several times; unknown ones are ignored.
pub struct ApiPairs(pub Pairs);

impl<S: Send + Sync> FromRequestParts<S> for ApiPairs {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let ApiQuery(pairs) = ApiQuery::from_request_parts(parts, state).await?;
        Ok(Self(Pairs(pairs)))
    }
}

/// The address with U+FFFD for each NUL of its query, if it has one: Postgres keeps none.
fn without_nul(uri: &Uri) -> Option<Uri> {
    let query = uri.query().filter(|query| query.contains("%00"))?;
    format!("/?{}", query.replace("%00", "%EF%BF%BD"))
        .parse()
        .ok()
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            Failure::fault("a route without the authentication layer").into_response()
        })
    }
}

/// A body that says it is no JSON. One that says nothing is taken at its word of being some.
pub fn wrong_type(headers: &HeaderMap) -> Option<Problem> {
    let kind = headers
        .get(CONTENT_TYPE)?
        .to_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_json = kind == "application/json" || kind.ends_with("+json");
    (!is_json).then(|| Problem::new(Code::MalformedBody, "Content-Type: application/json"))
}

fn unreadable(error: &axum::Error) -> Problem {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if inner.is::<http_body_util::LengthLimitError>() {
            return too_large();
        }
        source = inner.source();
    }
    Problem::new(Code::MalformedBody, "the body could not be read whole")
}

fn too_large() -> Problem {
    let detail = format!("at most {} bytes after inflation", limits::BODY_BYTES);
    Problem::new(Code::BodyTooLarge, detail)
}
