//! Members: listing, adding, changing and removing them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cairn_wire::Problem;
use cairn_wire::members::{MemberItem, MemberList, MemberPatch, MemberWrite};
use cairn_wire::pages::{PageAsk, PageQuery};

use super::extract::{ApiJson, ApiPairs, ApiPath};
use crate::actions::{Failure, members};
use crate::app::App;
use crate::auth::Caller;

/// The members of the tenant, by handle.
#[utoipa::path(get, path = "/v1/members", tag = "members", params(PageQuery),
    responses((status = 200, body = MemberList),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<MemberList>, Failure> {
    let ask = PageAsk::read(&pairs)?;
    members::list(&app, &caller, &ask).await.map(Json)
}

/// Adds a member. They have no key yet.
#[utoipa::path(post, path = "/v1/members", tag = "members", request_body = MemberWrite,
    responses((status = 201, body = MemberItem),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(write): ApiJson<MemberWrite>,
) -> Result<(StatusCode, Json<MemberItem>), Failure> {
    let added = members::add(&app, &caller, write).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// Changes what a member is, or their address.
#[utoipa::path(patch, path = "/v1/members/{handle}", tag = "members",
    params(("handle" = String, Path, description = "The member's handle")),
    request_body = MemberPatch, responses((status = 200, body = MemberItem),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(handle): ApiPath<String>,
    ApiJson(patch): ApiJson<MemberPatch>,
) -> Result<Json<MemberItem>, Failure> {
    members::change(&app, &caller, &handle, patch)
        .await
        .map(Json)
}

/// Removes a member and revokes all their keys. What they shared with the team stays.
#[utoipa::path(delete, path = "/v1/members/{handle}", tag = "members",
    params(("handle" = String, Path, description = "The member's handle")),
    responses((status = 204),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(handle): ApiPath<String>,
) -> Result<StatusCode, Failure> {
    members::remove(&app, &caller, &handle).await?;
    Ok(StatusCode::NO_CONTENT)
}
