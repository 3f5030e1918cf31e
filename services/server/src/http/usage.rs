//! `GET /v1/usage`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::usage::{UsageAnswer, UsageAsk, UsageQuery};

use super::extract::ApiPairs;
use crate::actions::{Failure, usage};
use crate::app::App;
use crate::auth::Caller;

/// What the tenant's members used, by day: requests, events, bytes and tokens.
#[utoipa::path(get, path = "/v1/usage", tag = "usage", params(UsageQuery), responses(
    (status = 200, body = UsageAnswer),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<UsageAnswer>, Failure> {
    let ask = UsageAsk::read(&pairs, app.clock.now())?;
    usage::list(&app, &caller, &ask).await.map(Json)
}
