//! `GET /v1/context`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use cairn_domain::bounds::{est_tokens, units};
use cairn_wire::Problem;
use cairn_wire::context::{ContextAnswer, ContextQuery};

use super::extract::ApiQuery;
use crate::actions::{Failure, context};
use crate::app::App;
use crate::auth::Caller;

/// The text a session starts with: what exists and what it costs.
#[utoipa::path(get, path = "/v1/context", tag = "context", params(ContextQuery), responses(
    (status = 200, content((String = "text/plain"), (ContextAnswer = "application/json"))),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ApiQuery(query): ApiQuery<ContextQuery>,
) -> Result<Response, Failure> {
    let text = context::render(&app, &caller, &query).await?;
    let no_store = (CACHE_CONTROL, "private, no-store");
    if wants_json(&headers) {
        let answer = ContextAnswer {
            units: units(&text),
            est_tokens: est_tokens(&text),
            text,
        };
        return Ok(([no_store], Json(answer)).into_response());
    }
    let plain = (CONTENT_TYPE, "text/plain; charset=utf-8");
    Ok(([plain, no_store], text).into_response())
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("application/json"))
}
