//! Sessions, listed and by id.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::sessions::{SessionAsk, SessionItem, SessionList, SessionQuery};

use super::extract::{ApiPairs, ApiPath};
use crate::actions::{Failure, sessions};
use crate::app::App;
use crate::auth::Caller;

/// The sessions of a project of which the caller may read something, the newest first.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(SessionQuery),
    responses((status = 200, body = SessionList),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<SessionList>, Failure> {
    let ask = SessionAsk::read(&pairs)?;
    sessions::list(&app, &caller, &ask).await.map(Json)
}

/// The session of this id, or the newest that its host gave it.
#[utoipa::path(get, path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or the host's id of it")),
    responses((status = 200, body = SessionItem),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<SessionItem>, Failure> {
    sessions::get(&app, &caller, &id).await.map(Json)
}
