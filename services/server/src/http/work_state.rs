//! Work state: entries, what lists say, and their history.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use cairn_domain::Rejection;
use cairn_wire::Problem;
use cairn_wire::work_state::{
    HistoryAnswer, HistoryQuery, WorkAnswer, WorkQuery, WorkWrite, WorkWritten,
};
use uuid::Uuid;

use super::extract::{ApiJson, ApiQuery};
use crate::actions::{Failure, work_state};
use crate::app::App;
use crate::auth::Caller;

/// The header that makes a write repeatable.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Appends an entry; with an action it claims or releases the task.
#[utoipa::path(post, path = "/v1/work-state/entries", tag = "work-state",
    request_body = WorkWrite, responses((status = 201, body = WorkWritten),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn write(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ApiJson(write): ApiJson<WorkWrite>,
) -> Result<(StatusCode, Json<WorkWritten>), Failure> {
    let event_id = idempotency_key(&headers)?;
    let written = work_state::write(&app, &caller, write, event_id).await?;
    Ok((StatusCode::CREATED, Json(written)))
}

/// What is open in a project; closed lists and tasks too, if asked for.
#[utoipa::path(get, path = "/v1/work-state", tag = "work-state", params(WorkQuery),
    responses((status = 200, body = WorkAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiQuery(query): ApiQuery<WorkQuery>,
) -> Result<Json<WorkAnswer>, Failure> {
    work_state::read(&app, &caller, &query).await.map(Json)
}

/// The entries of a project, in the order in which they count.
#[utoipa::path(get, path = "/v1/work-state/history", tag = "work-state", params(HistoryQuery),
    responses((status = 200, body = HistoryAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiQuery(query): ApiQuery<HistoryQuery>,
) -> Result<Json<HistoryAnswer>, Failure> {
    work_state::history(&app, &caller, &query).await.map(Json)
}

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
