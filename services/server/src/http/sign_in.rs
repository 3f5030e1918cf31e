//! `POST /v1/members/{handle}/code`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cairn_wire::Problem;
use cairn_wire::sign_in::SignInCode;

use super::extract::ApiPath;
use crate::actions::{Failure, sign_in};
use crate::app::App;
use crate::auth::Caller;

/// Makes a one-time code with which a member signs in on a page.
#[utoipa::path(post, path = "/v1/members/{handle}/code", tag = "sign-in",
    params(("handle" = String, Path)), responses((status = 201, body = SignInCode),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn make_code(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPath(handle): ApiPath<String>,
) -> Result<(StatusCode, Json<SignInCode>), Failure> {
    let code = sign_in::make_code(&app, &caller, &handle).await?;
    Ok((StatusCode::CREATED, Json(code)))
}
