//! `DELETE /v1/tenant`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use cairn_wire::Problem;
use cairn_wire::tenant_deletion::TenantDeletion;

use super::extract::ApiJson;
use crate::actions::{Failure, tenant_deletion};
use crate::app::App;
use crate::auth::Caller;

/// Deletes the tenant with all its keys and all that is in it. Nobody enters it from the answer on;
/// its rows are gone soon after.
#[utoipa::path(delete, path = "/v1/tenant", tag = "rights", request_body = TenantDeletion,
    responses((status = 202),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(asked): ApiJson<TenantDeletion>,
) -> Result<StatusCode, Failure> {
    tenant_deletion::delete(&app, &caller, &asked).await?;
    Ok(StatusCode::ACCEPTED)
}
