//! The tenant's settings.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::tenant::TenantSettings;
use serde_json::{Map, Value};

use super::extract::ApiJson;
use crate::actions::{Failure, tenant};
use crate::app::App;
use crate::auth::Caller;

/// What the tenant has set, with defaults for the rest.
#[utoipa::path(get, path = "/v1/tenant", tag = "tenant",
    responses((status = 200, body = TenantSettings),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<TenantSettings>, Failure> {
    tenant::show(&app, &caller).await.map(Json)
}

/// Sets what is named, of what `GET` shows; null takes a setting back to its default.
#[utoipa::path(patch, path = "/v1/tenant", tag = "tenant",
    request_body(content = Object, description = "Any of the settings"),
    responses((status = 200, body = TenantSettings),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(patch): ApiJson<Map<String, Value>>,
) -> Result<Json<TenantSettings>, Failure> {
    tenant::change(&app, &caller, &patch).await.map(Json)
}
