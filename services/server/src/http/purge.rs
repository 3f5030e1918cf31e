//! `POST /v1/purge`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::purge::{PurgeAnswer, PurgeAsk};

use super::extract::ApiJson;
use crate::actions::{Failure, purge};
use crate::app::App;
use crate::auth::Caller;

/// Removes for good what meets all that is named, private or not; `dry_run` counts it. The answer
/// comes once all is gone; a call that fails is ended by another one like it.
#[utoipa::path(post, path = "/v1/purge", tag = "rights", request_body = PurgeAsk,
    responses((status = 200, body = PurgeAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(ask): ApiJson<PurgeAsk>,
) -> Result<Json<PurgeAnswer>, Failure> {
    purge::purge(&app, &caller, &ask).await.map(Json)
}
