//! Message: a line of JSON-RPC, looked at as far as a bridge must.

use cairn_wire::domain::json_text::mend_escapes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer;

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
    /// The revision that a handshake asks for.
    pub asked_version: Option<String>,
    /// The arguments of a tool's call, if they can be read here.
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

/// Each member is looked at for itself: what is in them is the service's to judge, and may be
/// more than can be read here, such as a number without end.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "protocolVersion")]
    asked_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

impl Message {
    /// Reads a line.
    ///
    /// # Errors
    /// The answer to a line that is no message.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).unwrap_or_default();
        // Halves of pairs are as good as any other character, but not to a parser.
        let text = mend_escapes(text);
        let Ok(json) = serde_json::from_str::<&RawValue>(&text) else {
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
        let params: Params<'_> = parts.params.and_then(read).unwrap_or_default();
        let word = |value: Option<&RawValue>| value.and_then(read::<String>);
        let name = word(params.name);
        if method == "tools/call" && name.is_none() {
            return Err(answer::error(named, -32602, "Invalid params: name a tool"));
        }
        let meta: Meta<'_> = params.meta.and_then(read).unwrap_or_default();
        Ok(Self {
            bytes: line.to_vec(),
            version: word(meta.version),
            asked_version: word(params.asked_version),
            arguments: params.arguments.and_then(read),
            name: match method.as_str() {
                "tools/call" | "prompts/get" => name,
                "resources/read" => word(params.uri),
                _ => None,
            },
            id,
            method,
        })
    }
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
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
    fn c054_what_a_parser_stumbles_over_passes_with_its_name() {
        for arguments in [
            r#"{"query":"ok \ud83d done"}"#,
            r#"{"limit":1e400}"#,
            r#"{"limit":123456789012345678901234567890}"#,
            &format!("{}1{}", "[".repeat(300), "]".repeat(300)),
        ] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
            );
            let message = Message::parse(line.as_bytes()).expect("a message");
            assert_eq!(message.name.as_deref(), Some("x"), "{arguments}");
            assert_eq!(message.bytes, line.as_bytes(), "as it came");
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
