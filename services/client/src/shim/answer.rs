//! Answers that the shim gives itself, and those of the service brought onto one line.

use serde_json::{Value, json};

use super::message::Message;

/// An error for an id, which is JSON text.
pub fn error(id: &str, code: i32, message: &str) -> String {
    error_with(id, code, message, None)
}

/// The same with what a program reads of it.
pub fn error_with(id: &str, code: i32, message: &str, data: Option<&Value>) -> String {
    let message = Value::from(message);
    let data = data
        .map(|data| format!(",\"data\":{data}"))
        .unwrap_or_default();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}{data}}}}}"
    )
}

/// An answer to a message. One that names no message, because the service could not read which,
/// is given the id of the one that was sent: a host would wait for it in vain.
pub fn addressed(line: String, message: &Message) -> String {
    let Some(id) = message.id.as_deref() else {
        return line;
    };
    let answer: Value = serde_json::from_str(&line).unwrap_or_default();
    let (code, text) = (
        answer["error"]["code"].as_i64(),
        answer["error"]["message"].as_str(),
    );
    match (
        answer.get("id"),
        code.and_then(|code| i32::try_from(code).ok()),
        text,
    ) {
        (None | Some(Value::Null), Some(code), Some(text)) => error(id, code, text),
        _ => line,
    }
}

/// What a message that could not be answered gets: a model can read the result of a tool, so
/// that is where `text` goes; all else is an error. Nothing for a notification.
pub fn failed(message: &Message, text: &str) -> Option<String> {
    let id = message.id.as_deref()?;
    if message.method != "tools/call" {
        return Some(error(id, -32603, text));
    }
    Some(result(id, message, text, true))
}

/// The result of a tool that was called here instead of at the service. Nothing for a
/// notification.
pub fn told(message: &Message, text: &str, is_error: bool) -> Option<String> {
    let id = message.id.as_deref()?;
    Some(result(id, message, text, is_error))
}

fn result(id: &str, message: &Message, text: &str, is_error: bool) -> String {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    if message.version.is_some() {
        result["resultType"] = Value::from("complete");
    }
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

/// The message in an answer's body, on one line; `None` if it holds none.
pub fn one_line(content_type: &str, body: &str) -> Option<String> {
    let json = if content_type.starts_with("text/event-stream") {
        last_event(body)?
    } else {
        body.to_owned()
    };
    let fields: serde_json::Map<String, Value> = serde_json::from_str(&json).ok()?;
    // Line ends in JSON text are white space: those of strings are escaped.
    fields
        .contains_key("jsonrpc")
        .then(|| json.trim().replace(['\r', '\n'], " "))
}

/// The data of the last event that has any: an answer stands at the end of its stream.
fn last_event(body: &str) -> Option<String> {
    let body = body.replace("\r\n", "\n");
    let events = body.split("\n\n").map(|event| {
        let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    });
    events.filter(|data| !data.is_empty()).last()
}

/// The highest moment of work entries that a tool's result names.
pub fn moment(line: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let moment = answer["result"]["structuredContent"]["hlc"].as_str()?;
    Some(moment.to_owned())
}

/// The revision that an answer to `initialize` settles on.
pub fn negotiated(line: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(line).ok()?;
    Some(answer["result"]["protocolVersion"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_from_json_or_from_a_stream() {
        let laid_out = "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"result\": {}\n}\n";
        let line = one_line("application/json", laid_out).expect("an answer");
        assert!(!line.contains(['\r', '\n']), "{line}");
        let stream = ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n\
            event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n";
        let line = one_line("text/event-stream; charset=utf-8", stream);
        assert_eq!(
            line.as_deref(),
            Some("{\"jsonrpc\":\"2.0\", \"id\":1,\"result\":{}}")
        );
        assert_eq!(
            one_line("application/problem+json", "{\"code\":\"internal\"}"),
            None
        );
        assert_eq!(one_line("text/html", "<html>"), None);
    }

    #[test]
    fn c055_a_failed_call_is_a_result_that_a_model_can_read() {
        let line = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}"#;
        let message = Message::parse(line).expect("a message");
        let answer: Value = failed(&message, "service_unreachable - why")
            .and_then(|line| serde_json::from_str(&line).ok())
            .expect("JSON");
        assert_eq!(answer["id"], 7);
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(
            answer["result"]["content"][0]["text"],
            "service_unreachable - why"
        );
    }
}
