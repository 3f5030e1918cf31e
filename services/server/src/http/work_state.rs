//! Work state: entries, what lists say, and their history.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use cairn_wire::Problem;
use cairn_wire::work_state::{
    HistoryAnswer, HistoryQuery, WorkAnswer, WorkQuery, WorkWrite, WorkWritten,
};

use super::extract::{ApiJson, ApiQuery, idempotency_key};
use crate::actions::{Failure, work_state};
use crate::app::App;
use crate::auth::Caller;

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
