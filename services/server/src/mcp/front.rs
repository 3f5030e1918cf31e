//! What stands before the protocol library: methods it has no use for, `Accept` in all its forms,
//! and texts that a strict parser would refuse.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cairn_wire::{Code, Problem};

use super::answer::Refusal;
use crate::http::extract::read_text;
use crate::http::problem::respond;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Hands a message on in the one form that the protocol library takes, and its answer back in
/// the form that the caller accepts.
pub async fn front(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        let detail = "there is no session and no stream to open; POST messages";
        let mut response = respond(Problem::new(Code::MethodNotAllowed, detail));
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let only_events = accepts_only_events(request.headers());
    let (mut parts, body) = request.into_parts();
    let text = match read_text(body).await {
        Ok(text) => text,
        Err(failure) => return failure.into_response(),
    };
    parts.headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    parts.headers.remove(CONTENT_LENGTH);
    let refusal = Refusal::default();
    parts.extensions.insert(refusal.clone());
    let response = next.run(Request::from_parts(parts, Body::from(text))).await;
    if let Some(problem) = refusal.find() {
        return respond(problem);
    }
    if only_events && is_json(&response) {
        as_event(response).await
    } else {
        response
    }
}

/// Whether the caller takes event streams and no plain JSON.
fn accepts_only_events(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut kinds = accept
        .split(',')
        .map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kinds.any(|kind| kind == EVENTS) && !accept.contains(JSON) && !accept.contains("*/*")
}

fn is_json(response: &Response) -> bool {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    response.status() == StatusCode::OK && kind.is_some_and(|kind| kind.starts_with(JSON))
}

/// The same answer as a stream of one message.
async fn as_event(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let json = match read_answer(body).await {
        Ok(json) => json,
        Err(failure) => return failure.into_response(),
    };
    parts
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    parts.headers.remove(CONTENT_LENGTH);
    // Compact JSON has no line end, so one data line holds it.
    Response::from_parts(
        parts,
        Body::from(format!("event: message\ndata: {json}\n\n")),
    )
}

async fn read_answer(body: Body) -> Result<String, crate::actions::Failure> {
    let bytes = axum::body::to_bytes(body, usize::MAX).await;
    let bytes = bytes.map_err(|error| crate::actions::Failure::fault(error.to_string()))?;
    String::from_utf8(bytes.into())
        .map_err(|error| crate::actions::Failure::fault(error.to_string()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("*/*", false)]
    #[case("application/json", false)]
    #[case("text/event-stream", true)]
    #[case("text/event-stream;q=0.5", true)]
    #[case("application/json;q=0.9, text/event-stream", false)]
    #[case("", false)]
    fn c046_a_stream_is_sent_only_where_json_is_not_taken(
        #[case] accept: &str,
        #[case] only: bool,
    ) {
        let value = HeaderValue::from_str(accept).expect("a header");
        assert_eq!(
            accepts_only_events(&HeaderMap::from_iter([(ACCEPT, value)])),
            only
        );
    }
}
