//! HTTP+SSE of 2024-11-05: a stream that names where to ask, and questions whose answers go to it.
//! A question is answered as `POST /mcp` answers it, by whichever replica it comes to.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use cairn_domain::{Rejection, limits};
use cairn_store::StoreError;
use cairn_store::bus::AnswerStream;
use cairn_wire::{Code, Problem};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower::ServiceExt;
use uuid::Uuid;

use super::extract::read_text;
use crate::actions::Failure;
use crate::app::App;
use crate::auth::Caller;
use crate::mcp;
use crate::streams::Streams;
use crate::streams::answers::Answer;

/// How long a question is waited for before it is only said to be accepted: a refusal comes
/// within that, as does the end of this replica, and hosts wait at least five seconds.
const PATIENCE: Duration = Duration::from_secs(2);
const META: &str = "_meta";

/// The two routes; `tools` answers the questions.
pub fn routes(tools: MethodRouter) -> Router<Arc<App>> {
    Router::new()
        .route("/sse", get(open))
        .route("/messages", post(ask).layer(Extension(tools)))
}

/// The headers of a stream that nothing on the way may keep or change.
pub fn set_stream_headers(set: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
        // Whoever waits for the end of a stream waits for nothing else on its connection.
        (CONNECTION, "close"),
    ] {
        set.insert(name, HeaderValue::from_static(value));
    }
}

async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let endpoint = format!("{}/messages", app.sign_in.address.base_path());
    let body = Streams::open_answers(&app, caller, headers, &endpoint).await?;
    let mut response = Response::new(Body::new(body));
    set_stream_headers(response.headers_mut());
    Ok(response)
}

#[derive(Deserialize)]
struct Asked {
    sid: Option<String>,
}

async fn ask(
    State(app): State<Arc<App>>,
    Extension(tools): Extension<MethodRouter>,
    caller: Caller,
    Query(asked): Query<Asked>,
    request: Request,
) -> Result<Response, Failure> {
    let stream = asked.sid.and_then(|sid| sid.parse::<AnswerStream>().ok());
    let stream = stream.ok_or(Rejection::NotFound)?;
    let bus = app.store.bus();
    app.streams.check_answers(bus, &caller, stream).await?;
    let (mut parts, body) = request.into_parts();
    let text = read_text(body).await?;
    let question = Question::read(&text);
    question.mirror(&mut parts);
    parts.uri = Uri::from_static("/mcp");
    let request = Request::from_parts(parts, Body::from(text));
    let (done, outcome) = oneshot::channel();
    // A host that hangs up has asked all the same: it hears the answer elsewhere.
    let answering = async move {
        let answered = tokio::time::timeout(limits::ANSWER_TIME, tools.oneshot(request)).await;
        let response = match answered {
            Ok(Ok(response)) => response,
            Err(_) => Failure::Store(StoreError::Timeout).into_response(),
        };
        let said = question.said(response).await;
        let sent = match said.answer {
            Some(answer) => {
                let bus = app.store.bus();
                app.streams.send_answer(bus, &caller, stream, answer).await
            }
            None => Ok(()),
        };
        if let Err(failure) = &sent {
            tracing::info!(%failure, "an answer did not reach its stream");
        }
        // Nobody waits any more for what took long.
        drop(done.send(sent.map(|()| said.refusal)));
    };
    tokio::spawn(answering);
    match tokio::time::timeout(PATIENCE, outcome).await {
        Ok(Ok(Ok(Some(refusal)))) => Ok(refusal),
        Ok(Ok(Err(failure))) => Err(failure),
        Ok(Ok(Ok(None))) | Err(_) => Ok(StatusCode::ACCEPTED.into_response()),
        Ok(Err(_)) => Err(Failure::fault("a question was dropped")),
    }
}

/// What of a question its answer needs.
struct Question {
    /// Null for what nobody waits for, or what cannot be read.
    id: Value,
    method: String,
    name: Option<String>,
    version: Option<String>,
}

/// What became of a question.
struct Said {
    /// What the stream is told.
    answer: Option<Answer>,
    /// What whoever asked is told, where it is not just that the question was taken.
    refusal: Option<Response>,
}

impl Question {
    fn read(text: &str) -> Self {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let params = &message["params"];
        Self {
            method: word(&message["method"]).unwrap_or_default(),
            name: word(&params["name"]).or_else(|| word(&params["uri"])),
            version: word(&params[META][mcp::VERSION_KEY]),
            id: serde_json::from_str(text).map_or(Value::Null, mcp::id_of),
        }
    }

    /// Sets the headers that the newer revisions want beside the message: this transport is older
    /// than they are, so its hosts send none.
    fn mirror(&self, parts: &mut Parts) {
        let Some(version) = &self.version else { return };
        let headers = [
            ("mcp-protocol-version", Some(version)),
            ("mcp-method", Some(&self.method)),
            ("mcp-name", self.name.as_ref()),
        ];
        for (name, value) in headers {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                parts.headers.insert(name, value);
            }
        }
    }

    /// Turns the answer of `POST /mcp` into one for the stream.
    async fn said(&self, response: Response) -> Said {
        let (mut parts, body) = response.into_parts();
        // Its body is written by an outer layer, which this answer does not pass.
        let problem = parts.extensions.get::<Problem>().cloned();
        let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        let kind = parts.headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let messages = match kind {
            _ if parts.status == StatusCode::ACCEPTED => Vec::new(),
            kind if kind.starts_with("text/event-stream") => events(&text),
            kind if kind.starts_with("application/json")
                && (parts.status.is_success() || !self.id.is_null()) =>
            {
                vec![text]
            }
            // A refusal of the request as a whole. Whoever waits for this id must not wait on.
            _ => {
                parts.headers.remove(CONTENT_LENGTH);
                if parts.status.is_server_error() {
                    tracing::warn!(
                        status = parts.status.as_u16(),
                        "a question was not answered"
                    );
                }
                let refusal = Response::from_parts(parts, Body::from(body));
                let messages = self.failed(problem);
                return Said {
                    answer: messages.map(|message| Answer::of(vec![message])),
                    refusal: Some(refusal),
                };
            }
        };
        Said {
            answer: (!messages.is_empty()).then(|| Answer::of(messages)),
            refusal: None,
        }
    }

    /// The message for a question that was refused as a whole, if anybody waits for one.
    fn failed(&self, problem: Option<Problem>) -> Option<String> {
        if self.id.is_null() {
            return None;
        }
        let problem = problem.unwrap_or_else(|| Problem::fault(Code::Internal));
        let text = problem.text();
        let message = match self.method.as_str() {
            "tools/call" => json!({"jsonrpc": "2.0", "id": self.id, "result": {
                "content": [{"type": "text", "text": text}], "isError": true}}),
            _ => json!({"jsonrpc": "2.0", "id": self.id,
                "error": {"code": -32603, "message": text}}),
        };
        Some(message.to_string())
    }
}

impl Answer {
    fn of(messages: Vec<String>) -> Self {
        // One line each: what is laid out over several has its line ends between values alone.
        let lines = messages
            .into_iter()
            .map(|text| text.replace(['\r', '\n'], " "));
        Self {
            id: Uuid::now_v7(),
            messages: lines.collect(),
        }
    }
}

/// The messages of a stream that is over.
fn events(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let data = text.split("\n\n").map(|event| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(str::trim_start).collect::<Vec<_>>().join(" ")
    });
    data.filter(|data| !data.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::respond;

    #[tokio::test]
    async fn a_refusal_as_a_whole_is_told_on_both_connections() {
        let question = Question::read(
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}"#,
        );
        let problem = Problem::new(Code::InsufficientScope, "it lacks memory:read");
        let said = question.said(respond(problem)).await;
        let answer = said.answer.expect("somebody waits");
        let message: Value = serde_json::from_str(&answer.messages[0]).expect("JSON");
        assert_eq!(
            (&message["id"], &message["result"]["isError"]),
            (&json!("a"), &json!(true))
        );
        assert_eq!(said.refusal.expect("refused").status(), 403);
        let note = Question::read(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        let said = note.said(respond(Problem::fault(Code::Internal))).await;
        assert!(said.answer.is_none() && said.refusal.is_some());
    }

    #[test]
    fn what_comes_as_a_stream_is_told_message_by_message() {
        let text =
            ": hello\n\ndata: {\"a\":1}\n\nevent: message\r\ndata: {\"b\":\r\ndata: 2}\r\n\r\n";
        assert_eq!(events(text), ["{\"a\":1}", "{\"b\": 2}"]);
    }
}
