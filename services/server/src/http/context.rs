//! `GET /v1/context`, and clearing what is kept of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use cairn_domain::bounds::{est_tokens, units};
use cairn_wire::Problem;
use cairn_wire::context::{ContextAnswer, ContextPart, ContextQuery};

use super::extract::{ApiPath, ApiQuery};
use crate::actions::context::Filled;
use crate::actions::{Failure, context};
use crate::app::App;
use crate::auth::Caller;

/// The text a session starts with: what is open, what exists and what it costs.
///
/// A kept one is served as long as nothing in it has changed; `Cache-Control: no-cache` has it
/// rendered anew.
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
    let anew = says(&headers, &CACHE_CONTROL, "no-cache");
    let filled = context::render(&app, &caller, &query, anew).await?;
    let no_store = (CACHE_CONTROL, "private, no-store");
    if says(&headers, &ACCEPT, "application/json") {
        return Ok(([no_store], Json(answer(&filled))).into_response());
    }
    let plain = (CONTENT_TYPE, "text/plain; charset=utf-8");
    Ok(([plain, no_store], filled.text()).into_response())
}

/// Drops what a builder keeps for the tenant, on every replica.
#[utoipa::path(post, path = "/v1/cache/{builder}/clear", tag = "context",
    params(("builder" = String, Path, description = "`context`")), responses((status = 204),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn clear(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(builder): ApiPath<String>,
) -> Result<StatusCode, Failure> {
    context::clear(&app, &caller, builder.parse()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn answer(filled: &Filled) -> ContextAnswer {
    let text = filled.text();
    let part = |(name, text): (&str, String)| ContextPart {
        name: name.to_owned(),
        units: units(&text),
        text,
    };
    ContextAnswer {
        units: units(&text),
        est_tokens: est_tokens(&text),
        text,
        parts: filled.parts().map(part).collect(),
        hlc: filled.hlc().map(str::to_owned),
    }
}

fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.contains(word))
}
