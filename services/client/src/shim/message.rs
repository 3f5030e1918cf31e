//! Message: a line of JSON-RPC, looked at as far as a bridge must.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer;

/// Names the revision of a message since 2026-07-28.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A request or a notification.
#[derive(Debug)]
pub struct Message {
    /// The line as it came.
    pub bytes: Vec<u8>,
    /// The id's JSON text; `None` for a notification.
    pub id: Option<String>,
    /// The method.
    pub method: String,
    /// What the method is applied to: a tool's or a prompt's name, a resource's address.
    pub name: Option<String>,
    /// The revision that the message itself names.
    pub version: Option<String>,
    /// The arguments of a tool's call.
    pub arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Line<'a> {
    jsonrpc: Option<String>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    name: Option<String>,
    uri: Option<String>,
    arguments: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<serde_json::Map<String, Value>>,
}

impl Message {
    /// Reads a line.
    ///
    /// # Errors
    /// The answer to a line that is no message.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let Ok(json) = serde_json::from_slice::<&RawValue>(line) else {
            return Err(answer::error("null", -32700, "Parse error"));
        };
        let Ok(parts) = serde_json::from_str::<Line<'_>>(json.get()) else {
            return Err(answer::error("null", -32600, "Invalid Request"));
        };
        // `"id":null` reads as absent; either way nobody waits for an answer to it.
        let id = parts.id.map(|id| id.get().to_owned());
        let id_ok = id.as_deref().is_none_or(is_id);
        let named = if id_ok {
            id.as_deref().unwrap_or("null")
        } else {
            "null"
        };
        let (Some("2.0"), Some(method), true) = (parts.jsonrpc.as_deref(), parts.method, id_ok)
        else {
            return Err(answer::error(named, -32600, "Invalid Request"));
        };
        let params = parts
            .params
            .map(|params| serde_json::from_str::<Params>(params.get()));
        let params = match params {
            Some(Ok(params)) => params,
            // What is in them is the service's to judge, except where a header needs it.
            Some(Err(_)) | None => Params::default(),
        };
        if method == "tools/call" && params.name.is_none() {
            return Err(answer::error(named, -32602, "Invalid params: name a tool"));
        }
        let version = params
            .meta
            .as_ref()
            .and_then(|meta| meta.get(META_VERSION)?.as_str());
        Ok(Self {
            bytes: line.to_vec(),
            version: version.map(str::to_owned),
            arguments: params.arguments,
            name: match method.as_str() {
                "tools/call" | "prompts/get" => params.name,
                "resources/read" => params.uri,
                _ => None,
            },
            id,
            method,
        })
    }
}

/// A string or a number.
fn is_id(json: &str) -> bool {
    json.starts_with(['"', '-']) || json.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c054_a_malformed_line_has_its_answer() {
        for (line, id, code) in [
            ("not json", "null", -32700),
            (
                "[{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}]",
                "null",
                -32600,
            ),
            ("{\"id\":1,\"method\":\"ping\"}", "1", -32600),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
                "null",
                -32600,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":null}",
                "2",
                -32602,
            ),
            ("\"text\"", "null", -32600),
        ] {
            let refusal = Message::parse(line.as_bytes()).expect_err("no message");
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},");
            assert!(refusal.starts_with(&head), "{line}: {refusal}");
        }
    }

    #[test]
    fn what_headers_repeat_is_read_from_the_message() {
        let line =
            br#"{"jsonrpc":"2.0","id":"s5","method":"tools/call","params":{"name":"mem_search",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let message = Message::parse(line).expect("a message");
        assert_eq!(message.id.as_deref(), Some("\"s5\""));
        assert_eq!(message.name.as_deref(), Some("mem_search"));
        assert_eq!(message.version.as_deref(), Some("2026-07-28"));
    }
}
