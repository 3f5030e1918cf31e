//! `GET /v1/audit`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cairn_wire::Problem;
use cairn_wire::audit::{AuditAsk, AuditList, AuditQuery};

use super::extract::ApiPairs;
use crate::actions::{Failure, audit};
use crate::app::App;
use crate::auth::Caller;

/// The audit log, the newest line first.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(AuditQuery),
    responses((status = 200, body = AuditList),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<AuditList>, Failure> {
    let ask = AuditAsk::read(&pairs)?;
    audit::list(&app, &caller, &ask).await.map(Json)
}
