//! Problem → `application/problem+json`, in one place, where faults are logged once.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use cairn_wire::{Code, Problem};
use tower_http::request_id::RequestId;

use crate::actions::Failure;
use crate::oauth::address::Refused;

/// Why a fault happened: for the log, never for the caller.
#[derive(Clone)]
struct Cause(String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let cause = self.cause().map(Cause);
        let mut response = respond(self.into_problem());
        if let Some(cause) = cause {
            response.extensions_mut().insert(cause);
        }
        response
    }
}

/// The response of a problem; [`finish`] writes its body.
pub fn respond(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = status.into_response();
    response.extensions_mut().insert(problem);
    response
}

/// Gives a problem its request id and its body; any other response passes. `challenge` says where
/// a caller gets what it lacks.
pub fn finish(
    id: Option<RequestId>,
    mut response: Response,
    challenge: impl Fn(Refused<'_>) -> String,
) -> Response {
    let Some(mut problem) = problem_of(&mut response) else {
        return response;
    };
    let cause = response.extensions_mut().remove::<Cause>();
    problem.instance = id.and_then(|id| id.header_value().to_str().ok().map(str::to_owned));
    log(&problem, cause);
    let retry_after = problem.retry_after;
    let challenged = match problem.code {
        Code::Unauthenticated => Some(challenge(Refused::Unauthenticated)),
        Code::CredentialRevoked | Code::CredentialExpired => Some(challenge(Refused::Invalid)),
        Code::InsufficientScope => Some(challenge(Refused::Insufficient(&problem.scopes))),
        _ => None,
    };
    let headers = response.headers().clone();
    let status = StatusCode::from_u16(problem.status).unwrap_or(response.status());
    let mut whole = (status, headers, Json(problem)).into_response();
    let headers = whole.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(Ok(challenge)) = challenged.map(HeaderValue::try_from) {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    whole
}

/// The problem that a handler left, or the one that a layer's bare answer stands for.
fn problem_of(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    let is_encoding = response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE;
    is_encoding.then(|| {
        let detail = "Content-Type: application/json; Content-Encoding: gzip, zstd or none";
        Problem::new(Code::MalformedBody, detail)
    })
}

fn log(problem: &Problem, cause: Option<Cause>) {
    let request_id = problem.instance.as_deref().unwrap_or("-");
    let cause = cause.as_ref().map_or("-", |cause| cause.0.as_str());
    match problem.code {
        Code::Internal => tracing::error!(code = %problem.code, request_id, cause, "fault"),
        code if code.status() >= 500 => {
            tracing::warn!(code = %problem.code, request_id, cause, "unavailable");
        }
        _ => tracing::debug!(code = %problem.code, request_id, "refused"),
    }
}
