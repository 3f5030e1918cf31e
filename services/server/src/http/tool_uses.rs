//! Tool uses by id: the original input and output, and deleting them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cairn_domain::Rejection;
use cairn_wire::Problem;
use cairn_wire::tool_uses::{ToolUseBatch, ToolUseBatchAnswer};

use super::extract::{ApiJson, ApiPath};
use crate::actions::{Failure, tool_uses};
use crate::app::App;
use crate::auth::Caller;

/// Several tool uses at once, in the order asked. Each read is in the audit log.
#[utoipa::path(post, path = "/v1/tool-uses/batch", tag = "tool-uses",
    request_body = ToolUseBatch, responses((status = 200, body = ToolUseBatchAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(batch): ApiJson<ToolUseBatch>,
) -> Result<Json<ToolUseBatchAnswer>, Failure> {
    tool_uses::list(&app, &caller, &batch).await.map(Json)
}

/// Deletes the tool use for good; again is no error.
#[utoipa::path(delete, path = "/v1/tool-uses/{id}", tag = "tool-uses",
    params(("id" = String, Path, description = "The tool use's id")),
    responses((status = 204),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, Failure> {
    let id = id.parse().map_err(|_| Rejection::NotFound)?;
    tool_uses::delete(&app, &caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
