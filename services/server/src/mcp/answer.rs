//! A tool's result: what the model can correct it reads; faults of the service stay outside.

use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use cairn_wire::{Code, Problem};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use tower_http::request_id::RequestId;

use crate::actions::Failure;

const NOT_CONTINUED: &str =
    "Searches cannot be continued for the moment; use mode=\"auto\" or try again.";

/// A text and, where there is one, the same answer as data.
pub struct Answer {
    /// What the model reads.
    pub text: String,
    /// What a program reads.
    pub data: Option<serde_json::Value>,
}

/// A refusal that belongs to the request rather than to the tool: [`super::front`] answers with
/// it instead of the message.
#[derive(Clone, Default)]
pub struct Refusal(Arc<OnceLock<Problem>>);

impl Refusal {
    /// The problem, if one was found.
    pub fn find(&self) -> Option<Problem> {
        self.0.get().cloned()
    }
}

/// Turns an action's outcome into a tool result, or a JSON-RPC error for a fault of the service.
pub fn of(outcome: Result<Answer, Failure>, parts: &Parts) -> Result<CallToolResult, ErrorData> {
    let failure = match outcome {
        Ok(answer) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
            result.structured_content = answer.data;
            return Ok(result);
        }
        Err(failure) => failure,
    };
    let request_id = request_id(parts);
    let cause = failure.cause();
    let is_continuation = matches!(failure, Failure::Continuations(_));
    let mut problem = failure.into_problem();
    if is_continuation && problem.code == Code::StoreUnavailable {
        problem.detail = Some(NOT_CONTINUED.to_owned());
    }
    if problem.code == Code::InsufficientScope
        && let Some(refusal) = parts.extensions.get::<Refusal>()
    {
        // Whichever message of a request is refused first speaks for it.
        drop(refusal.0.set(problem.clone()));
    }
    if problem.code == Code::Internal {
        tracing::error!(code = %problem.code, request_id, cause, "fault in a tool");
        let data = serde_json::json!({ "request_id": request_id });
        return Err(ErrorData::internal_error("internal", Some(data)));
    }
    if let Some(cause) = cause {
        tracing::warn!(code = %problem.code, request_id, cause, "unavailable");
    }
    // The model may act on a caller's fault, and on a store that is away for the moment.
    Ok(CallToolResult::error(vec![ContentBlock::text(
        problem.text(),
    )]))
}

fn request_id(parts: &Parts) -> &str {
    let id = parts.extensions.get::<RequestId>();
    id.and_then(|id| id.header_value().to_str().ok())
        .unwrap_or("-")
}
