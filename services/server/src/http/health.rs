//! `/livez` and `/readyz`: for balancers and supervisors.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;

/// The state of what the service rests on.
#[derive(Serialize, ToSchema)]
struct Readiness {
    /// Whether requests are welcome.
    ready: bool,
    /// Whether Postgres answers and has the migrations this version knows.
    postgres: bool,
    /// Whether continuations can be kept. Shown, not required: all else works without.
    continuations: bool,
    /// Whether the process is about to stop.
    draining: bool,
}

/// The process runs.
#[utoipa::path(get, path = "/livez", tag = "health", responses((status = 200, body = String)))]
pub async fn livez() -> &'static str {
    "ok\n"
}

/// Requests are welcome.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness)))]
pub async fn readyz(State(app): State<Arc<App>>) -> Response {
    let (postgres, continuations) = tokio::join!(app.store.ping(), app.continuations.ping());
    if let Err(error) = &postgres {
        tracing::warn!(%error, "not ready");
    }
    let draining = app.is_draining();
    let ready = postgres.is_ok() && !draining;
    let state = Readiness {
        ready,
        postgres: postgres.is_ok(),
        continuations: continuations.is_ok(),
        draining,
    };
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(state)).into_response()
}
