//! `POST /v1/mem-search`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::search::{MemSearch, MemSearchAnswer};

use super::extract::ApiJson;
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
