//! Projects: listing, finding, renaming and merging them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::pages::{PageAsk, PageQuery};
use cairn_wire::projects::{ProjectItem, ProjectList, ProjectPatch, ProjectResolve};

use super::extract::{ApiJson, ApiPairs, ApiPath};
use crate::actions::{Failure, projects};
use crate::app::App;
use crate::auth::Caller;

/// The projects that the caller sees, by name.
#[utoipa::path(get, path = "/v1/projects", tag = "projects", params(PageQuery),
    responses((status = 200, body = ProjectList),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<ProjectList>, Failure> {
    let ask = PageAsk::read(&pairs)?;
    projects::list(&app, &caller, &ask).await.map(Json)
}

/// The project that a key or a name means. It is found, never made: its first event makes it.
#[utoipa::path(post, path = "/v1/projects/resolve", tag = "projects",
    request_body = ProjectResolve, responses((status = 200, body = ProjectItem),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn resolve(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(asked): ApiJson<ProjectResolve>,
) -> Result<Json<ProjectItem>, Failure> {
    projects::resolve(&app, &caller, asked).await.map(Json)
}

/// Renames a project, or merges it into another, of which its key is an alias then.
#[utoipa::path(patch, path = "/v1/projects/{id}", tag = "projects",
    params(("id" = String, Path, description = "The project's id")),
    request_body = ProjectPatch, responses((status = 200, body = ProjectItem),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(id): ApiPath<String>,
    ApiJson(patch): ApiJson<ProjectPatch>,
) -> Result<Json<ProjectItem>, Failure> {
    projects::change(&app, &caller, &id, patch).await.map(Json)
}
