//! `POST /v1/events` and `…/check`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cairn_wire::Problem;
use cairn_wire::events::{Batch, BatchAnswer, Check, CheckAnswer, ItemStatus};

use super::extract::JsonText;
use crate::actions::{Failure, events};
use crate::app::App;
use crate::auth::Caller;

/// Stores events: each valid item is committed, each bad one is named.
#[utoipa::path(post, path = "/v1/events", tag = "events", request_body = Batch, responses(
    (status = 200, description = "Every item is stored, a duplicate or deleted", body = BatchAnswer),
    (status = 207, description = "At least one item is refused", body = BatchAnswer),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn record(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonText(json): JsonText,
) -> Result<(StatusCode, Json<BatchAnswer>), Failure> {
    let answer = events::record(&app, &caller, json).await?;
    let is_refused = answer
        .items
        .iter()
        .any(|item| item.status == ItemStatus::Refused);
    let status = if is_refused {
        StatusCode::MULTI_STATUS
    } else {
        StatusCode::OK
    };
    Ok((status, Json(answer)))
}

/// Says what became of events, so that a client can reconcile its ledger.
#[utoipa::path(post, path = "/v1/events/check", tag = "events", request_body = Check, responses(
    (status = 200, body = CheckAnswer),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn check(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonText(json): JsonText,
) -> Result<Json<CheckAnswer>, Failure> {
    events::check(&app, &caller, &json).await.map(Json)
}
