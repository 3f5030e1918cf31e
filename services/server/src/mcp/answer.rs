//! A tool's result: what the model can correct it reads; faults of the service stay outside.

use cairn_wire::Problem;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};

use crate::actions::Failure;

const NOT_CONTINUED: &str = "Searches cannot be continued for the moment; try again.";

/// A text and, where there is one, the same answer as data.
pub struct Answer {
    /// What the model reads.
    pub text: String,
    /// What a program reads.
    pub data: Option<serde_json::Value>,
}

/// Turns an action's outcome into a tool result, or a JSON-RPC error for a fault of the service.
pub fn of(outcome: Result<Answer, Failure>) -> Result<CallToolResult, ErrorData> {
    match outcome {
        Ok(answer) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
            result.structured_content = answer.data;
            Ok(result)
        }
        Err(failure) => {
            let cause = failure.cause();
            let is_continuation = matches!(failure, Failure::Continuations(_));
            let mut problem = failure.into_problem();
            if is_continuation {
                problem.detail = Some(NOT_CONTINUED.to_owned());
            }
            if is_for_the_model(&problem) {
                if let Some(cause) = cause {
                    tracing::warn!(code = %problem.code, cause, "unavailable");
                }
                return Ok(CallToolResult::error(vec![ContentBlock::text(
                    problem.text(),
                )]));
            }
            let request_id = uuid::Uuid::now_v7().to_string();
            tracing::error!(code = %problem.code, request_id, cause, "fault in a tool");
            let data = serde_json::json!({ "request_id": request_id });
            Err(ErrorData::internal_error("internal", Some(data)))
        }
    }
}

/// A caller's fault, or a store that is away for the moment: the model may act on either.
fn is_for_the_model(problem: &Problem) -> bool {
    problem.status < 500 || problem.status == 503
}
