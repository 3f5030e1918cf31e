//! What stands before the protocol library: methods it has no use for, `Accept` in all its forms,
//! texts that a strict parser would refuse, and several messages at once.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cairn_wire::{Code, Problem};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::Refusal;
use super::message::{Fault, VERSION, check};
use crate::http::extract::IDEMPOTENCY_KEY;
use crate::http::extract::{read_text, wrong_type};
use crate::http::problem::respond;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// The only revision with several messages in one request, meant where none is named.
const BATCH_REVISION: &str = "2025-03-26";
/// Messages in one request.
const BATCH_MESSAGES: usize = 50;

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
    if let Some(problem) = wrong_type(request.headers()) {
        return respond(problem);
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
    parts
        .headers
        .insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    parts.headers.remove(CONTENT_LENGTH);
    let refusal = Refusal::default();
    parts.extensions.insert(refusal.clone());
    let response = answer(&parts, &text, next).await;
    if let Some(problem) = refusal.find() {
        return respond(problem);
    }
    if only_events && response.status() == StatusCode::OK && is_json(&response) {
        as_event(response).await
    } else {
        response
    }
}

/// Answers a text: one message, or several in the revision that knows them.
async fn answer(parts: &Parts, text: &str, next: Next) -> Response {
    let Ok(message) = serde_json::from_str::<&RawValue>(text) else {
        return Fault::not_json().into_response();
    };
    if !message.get().starts_with('[') {
        return answer_one(parts, message, next).await;
    }
    let version = parts.headers.get(VERSION);
    if version.is_some_and(|version| version != BATCH_REVISION) {
        let why = "several messages in one request are of revision 2025-03-26 alone";
        return Fault::no_request(Value::Null, why).into_response();
    }
    let messages: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    if messages.is_empty() || messages.len() > BATCH_MESSAGES {
        return Fault::no_request(Value::Null, "1 to 50 messages in one request").into_response();
    }
    // A header names one event, and each message may write one.
    let mut parts = parts.clone();
    parts.headers.remove(IDEMPOTENCY_KEY);
    let mut answers = Vec::new();
    for message in messages {
        let response = answer_one(&parts, message, next.clone()).await;
        if response.status() == StatusCode::ACCEPTED {
            continue;
        }
        if !is_json(&response) {
            // A fault of the library: it speaks for all.
            return response;
        }
        match read_answer(response.into_body()).await {
            Ok(json) => answers.push(json),
            Err(failure) => return failure.into_response(),
        }
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let whole = format!("[{}]", answers.join(","));
    ([(CONTENT_TYPE, JSON)], whole).into_response()
}

async fn answer_one(parts: &Parts, message: &RawValue, next: Next) -> Response {
    if let Err(fault) = check(message, &parts.headers) {
        return fault.into_response();
    }
    let body = Body::from(message.get().to_owned());
    next.run(Request::from_parts(parts.clone(), body)).await
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
    kind.is_some_and(|kind| kind.starts_with(JSON))
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
