//! `GET /v1/timeline`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::timeline::{TimelineAnswer, TimelineAsk, TimelineQuery};

use super::extract::ApiPairs;
use crate::actions::{Failure, timeline};
use crate::app::App;
use crate::auth::Caller;

/// What happened around a record.
#[utoipa::path(get, path = "/v1/timeline", tag = "search", params(TimelineQuery), responses(
    (status = 200, body = TimelineAnswer),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<TimelineAnswer>, Failure> {
    let ask = TimelineAsk::read(&pairs)?;
    timeline::show(&app, &caller, &ask).await.map(Json)
}
