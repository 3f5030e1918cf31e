//! Changes of a tenant: page by page, and as they happen.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use cairn_wire::Problem;
use cairn_wire::changes::{ChangesAnswer, ChangesAsk, ChangesQuery, StreamAsk, StreamQuery};

use super::extract::ApiPairs;
use super::sse::set_stream_headers;
use crate::actions::{Failure, changes};
use crate::app::App;
use crate::auth::Caller;
use crate::streams::Streams;

/// What has changed after a position, in order; a deletion is a change without a record.
#[utoipa::path(get, path = "/v1/changes", tag = "changes", params(ChangesQuery),
    responses((status = 200, body = ChangesAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<ChangesAnswer>, Failure> {
    let ask = ChangesAsk::read(&pairs)?;
    changes::list(&app, &caller, &ask).await.map(Json)
}

/// The same as it happens, as server-sent events: `change` with the position as its id and the
/// item as its data, and at last `end` with a code. Header `Last-Event-ID` resumes it.
#[utoipa::path(get, path = "/v1/stream", tag = "changes", params(StreamQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ApiPairs(pairs): ApiPairs,
) -> Result<Response, Failure> {
    let last = headers.get("last-event-id");
    let last = last.map(|value| value.to_str().unwrap_or("?"));
    let ask = StreamAsk::read(&pairs, last)?;
    let opened = Streams::open(&app, caller, headers, ask).await?;
    let mut response = Response::new(Body::new(opened.body));
    let set = response.headers_mut();
    set_stream_headers(set);
    let epoch = HeaderValue::from_str(&opened.epoch);
    let epoch = epoch.map_err(|e| Failure::fault(e.to_string()))?;
    set.insert(HeaderName::from_static("cairn-epoch"), epoch);
    Ok(response)
}
