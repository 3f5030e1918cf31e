//! `GET /v1/me`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::auth::Me;

use crate::actions::Failure;
use crate::app::App;
use crate::auth::Caller;

/// Who the caller is and what its credential allows.
#[utoipa::path(get, path = "/v1/me", tag = "auth", responses(
    (status = 200, body = Me),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn me(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Me>, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "auth.me").await?;
    let tenant = tx.get_tenant_name().await?;
    tx.commit().await?;
    Ok(Json(Me {
        tenant,
        handle: caller.name,
        role: caller.role.map(|role| role.name().to_owned()),
        scopes: caller
            .scopes
            .names()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        project: caller.project_limit.map(|project| project.key),
        expires_at: caller.expires_at,
    }))
}
