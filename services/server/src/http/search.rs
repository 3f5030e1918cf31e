//! `POST /v1/mem-search`, and the search with filters and pages: `/v1/search`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use cairn_wire::Problem;
use cairn_wire::search::{
    FindAsk, MemSearch, MemSearchAnswer, SearchAnswer, SearchBody, SearchQuery,
};

use super::extract::{ApiJson, ApiPairs};
use crate::actions::{Failure, search};
use crate::app::App;
use crate::auth::Caller;

/// One step of a search: titles, then what surrounds them, then full records.
#[utoipa::path(post, path = "/v1/mem-search", tag = "search", request_body = MemSearch, responses(
    (status = 200, body = MemSearchAnswer),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn mem_search(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(arguments): ApiJson<serde_json::Value>,
) -> Result<Json<MemSearchAnswer>, Failure> {
    search::mem_search(&app, &caller, arguments).await.map(Json)
}

/// What matches words and filters, page by page. `format` asks for a text instead of items.
///
/// `kind=tool_use` looks through what the newest 2,000 tool uses hold, and needs the scope
/// `evidence:read`; what is found is named, not shown, and that it was asked is in the audit log.
#[utoipa::path(get, path = "/v1/search", tag = "search", params(SearchQuery), responses(
    (status = 200, content((SearchAnswer = "application/json"), (String = "text/plain"))),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn find(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Response, Failure> {
    found(&app, &caller, &FindAsk::read(&pairs)?).await
}

/// The same for a question that an address has no room for.
#[utoipa::path(post, path = "/v1/search", tag = "search", request_body = SearchBody, responses(
    (status = 200, content((SearchAnswer = "application/json"), (String = "text/plain"))),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn find_posted(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<serde_json::Value>,
) -> Result<Response, Failure> {
    found(&app, &caller, &FindAsk::from_body(body)?).await
}

async fn found(app: &App, caller: &Caller, ask: &FindAsk) -> Result<Response, Failure> {
    if ask.tool_uses {
        let answer = search::find_tool_uses(app, caller, ask).await?;
        return Ok(Json(answer).into_response());
    }
    if ask.form.is_none() {
        let answer = search::find(app, caller, ask).await?;
        return Ok(Json(answer).into_response());
    }
    let plain = (CONTENT_TYPE, "text/plain; charset=utf-8");
    let text = search::render(app, caller, ask).await?;
    Ok(([plain], text).into_response())
}
