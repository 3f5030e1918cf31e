//! Keys: listing, making and revoking them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use cairn_wire::Problem;
use cairn_wire::keys::{KeyList, KeyMade, KeyWrite};
use cairn_wire::pages::{PageAsk, PageQuery};

use super::extract::{ApiJson, ApiPairs, ApiPath};
use crate::actions::{Failure, keys};
use crate::app::App;
use crate::auth::Caller;

/// The caller's own keys; to an admin, all of the tenant's.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", params(PageQuery),
    responses((status = 200, body = KeyList),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<KeyList>, Failure> {
    let ask = PageAsk::read(&pairs)?;
    keys::list(&app, &caller, &ask).await.map(Json)
}

/// Makes a key. The answer shows it, and nothing does again.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = KeyWrite,
    responses((status = 201, body = KeyMade),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(write): ApiJson<KeyWrite>,
) -> Result<Response, Failure> {
    let made = keys::create(&app, &caller, write).await?;
    let kept_nowhere = [(CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, kept_nowhere, Json(made)).into_response())
}

/// Revokes a key; again is no error.
#[utoipa::path(delete, path = "/v1/keys/{id}", tag = "keys",
    params(("id" = String, Path, description = "The part of the key between the underscores")),
    responses((status = 204),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, Failure> {
    keys::revoke(&app, &caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
