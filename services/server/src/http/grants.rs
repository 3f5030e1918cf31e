//! `/v1/grants`: the programs that members have let in.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cairn_domain::Rejection;
use cairn_wire::Problem;
use cairn_wire::grants::{GrantAsk, GrantList, GrantQuery};

use super::extract::{ApiPairs, ApiPath};
use crate::actions::{Failure, grants};
use crate::app::App;
use crate::auth::Caller;

/// Which programs are let in, newest first.
#[utoipa::path(get, path = "/v1/grants", tag = "sign-in", params(GrantQuery),
    responses((status = 200, body = GrantList),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<GrantList>, Failure> {
    let ask = GrantAsk::read(&pairs)?;
    grants::list(&app, &caller, &ask).await.map(Json)
}

/// Shuts a program out.
#[utoipa::path(delete, path = "/v1/grants/{id}", tag = "sign-in",
    params(("id" = String, Path)), responses((status = 204, description = "It is out"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, Failure> {
    let id = id.parse().map_err(|_| Rejection::NotFound)?;
    grants::revoke(&app, &caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
