//! Arguments as agents send them: numbers as text, lists as text or as a single value
//! (contract 15.4). What cannot be read is refused by name, never guessed.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::bounds::{head_bytes, units};
use crate::ids::RecordId;
use crate::redact::safe;
use crate::{Rejection, limits};

/// The arguments of `mem_search` as they came in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Input {
    /// `guided` or `auto`.
    pub mode: Option<String>,
    /// What to look for.
    pub query: Option<String>,
    /// The project to look in, by key or name.
    pub project: Option<String>,
    /// The cursor of the step before.
    pub continuation: Option<String>,
    /// Ids chosen from the step before.
    pub selected_ids: Option<Value>,
    /// Rows of the index.
    pub limit: Option<Value>,
    /// Anchors of the timeline, records of the details.
    pub max_details: Option<Value>,
    /// Neighbours before an anchor.
    pub depth_before: Option<Value>,
    /// Neighbours after an anchor.
    pub depth_after: Option<Value>,
}

impl Input {
    const TEXTS: [&str; 4] = ["mode", "query", "project", "continuation"];
    const OTHERS: [&str; 5] = [
        "selectedIds",
        "limit",
        "maxDetails",
        "depthBefore",
        "depthAfter",
    ];

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// As [`object`].
    pub fn read(arguments: Value) -> Result<Self, Rejection> {
        let arguments = object(arguments, &Self::TEXTS, &Self::OTHERS)?;
        serde_json::from_value(Value::Object(arguments))
            .map_err(|error| Rejection::invalid_input("arguments", &error.to_string()))
    }
}

/// The arguments of a tool: an object whose members are all known, texts where texts are due.
/// Null is absent.
///
/// # Errors
/// `invalid_input` naming the first argument that is unknown, or no text where one is due.
pub fn object(
    arguments: Value,
    texts: &[&str],
    others: &[&str],
) -> Result<Map<String, Value>, Rejection> {
    let Value::Object(mut arguments) = arguments else {
        return Err(Rejection::invalid_input("arguments", "an object"));
    };
    arguments.retain(|_, value| !value.is_null());
    for (name, value) in &arguments {
        let is_text = texts.contains(&name.as_str());
        if is_text && !value.is_string() {
            return Err(Rejection::invalid_input(name, "a text"));
        }
        if !is_text && !others.contains(&name.as_str()) {
            let name = head_bytes(name, limits::ROW_TYPE_BYTES);
            return Err(Rejection::invalid_input(name, "no argument of this tool"));
        }
    }
    Ok(arguments)
}

/// A whole number from `min` to `max`, as a number or as digits in a string. Null is absent.
///
/// # Errors
/// `invalid_input` naming `argument` and the range.
pub fn number(
    argument: &str,
    value: Option<&Value>,
    min: u32,
    max: u32,
) -> Result<Option<u32>, Rejection> {
    let read = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => whole(number),
        Some(Value::String(text)) => digits(text),
        Some(_) => None,
    };
    match read.filter(|number| (min..=max).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => {
            let allowed = format!("a whole number from {min} to {max}");
            Err(Rejection::invalid_input(argument, &allowed))
        }
    }
}

/// The words of a search, trimmed. Secrets among them are replaced as in what is searched: no
/// cursor, log or answer carries one.
///
/// # Errors
/// `invalid_input` if there are none, or too many.
pub fn query(text: &str) -> Result<String, Rejection> {
    let text = text.trim();
    let fits = units(text) <= limits::QUERY_UNITS && text.len() <= limits::QUERY_BYTES;
    if text.is_empty() || !fits {
        let allowed = "1 to 500 UTF-16 code units and at most 1,024 bytes";
        return Err(Rejection::invalid_input("query", allowed));
    }
    let kept = safe(text);
    // Marks may be longer than what they stand for.
    let kept = head_bytes(&kept, limits::QUERY_BYTES).trim();
    Ok(if kept.is_empty() {
        text_withheld()
    } else {
        kept.to_owned()
    })
}

fn text_withheld() -> String {
    crate::redact::WITHHELD.to_owned()
}

/// Yes or no, as a value or as its word. Null is absent.
///
/// # Errors
/// `invalid_input` naming `argument`.
pub fn flag(argument: &str, value: Option<&Value>) -> Result<Option<bool>, Rejection> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(Value::String(text)) if text.trim() == "true" => Ok(Some(true)),
        Some(Value::String(text)) if text.trim() == "false" => Ok(Some(false)),
        Some(_) => Err(Rejection::invalid_input(argument, "true or false")),
    }
}

/// An object, as a value or as JSON text. Null is absent.
///
/// # Errors
/// `invalid_input` naming `argument`.
pub fn fields(
    argument: &str,
    value: Option<&Value>,
) -> Result<Option<Map<String, Value>>, Rejection> {
    let read = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(fields)) => Some(fields.clone()),
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        Some(_) => None,
    };
    let refuse = || Rejection::invalid_input(argument, "an object of keys and values");
    read.map(Some).ok_or_else(refuse)
}

/// A list of ids of records, as [`list`] reads it.
///
/// # Errors
/// `invalid_input` naming `argument`.
pub fn ids(argument: &str, value: Option<&Value>) -> Result<Option<Vec<RecordId>>, Rejection> {
    list(argument, value, "a list of ids such as 41, S7 or P3", id)
}

/// A list: as such, as JSON text, or of a single item; each item as `read` takes it. Repeats
/// collapse. Null is absent; an empty text is refused, so that no list is empty by accident.
///
/// # Errors
/// `invalid_input` naming `argument` and what is `allowed`.
pub fn list<T: PartialEq>(
    argument: &str,
    value: Option<&Value>,
    allowed: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<Vec<T>>, Rejection> {
    let items = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => items(value),
    };
    let refuse = || Rejection::invalid_input(argument, allowed);
    let mut listed = Vec::new();
    for item in items.ok_or_else(refuse)? {
        let item = read(&item).ok_or_else(refuse)?;
        if !listed.contains(&item) {
            listed.push(item);
        }
    }
    Ok(Some(listed))
}

/// A list of texts: a list, a list as JSON text, or a single text. Numbers read as their digits.
/// Null is absent.
///
/// # Errors
/// `invalid_input` naming `argument`.
pub fn texts(argument: &str, value: Option<&Value>) -> Result<Option<Vec<String>>, Rejection> {
    let items = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => items(value),
    };
    let text = |item: Value| match item {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let texts = items.and_then(|items| items.into_iter().map(text).collect());
    let refuse = || Rejection::invalid_input(argument, "a list of texts");
    texts.map(Some).ok_or_else(refuse)
}

fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.clone()),
        Value::String(text) if text.trim_start().starts_with('[') => {
            serde_json::from_str(text).ok()
        }
        scalar => Some(vec![scalar.clone()]),
    }
}

fn id(item: &Value) -> Option<RecordId> {
    match item {
        Value::Number(number) => number.to_string().parse().ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// `5` and `5.0` are the same number in JSON.
fn whole(number: &serde_json::Number) -> Option<u32> {
    let text = number.to_string();
    digits(text.strip_suffix(".0").unwrap_or(&text))
}

fn digits(text: &str) -> Option<u32> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(5), Some(5))]
    #[case(json!("5"), Some(5))]
    #[case(json!(5.0), Some(5))]
    #[case(json!(null), None)]
    fn c050_numbers_may_come_as_text(#[case] value: Value, #[case] read: Option<u32>) {
        assert_eq!(number("limit", Some(&value), 1, 20), Ok(read));
    }

    #[rstest]
    #[case(json!(0))]
    #[case(json!(21))]
    #[case(json!(-1))]
    #[case(json!(1.5))]
    #[case(json!(""))]
    #[case(json!("five"))]
    #[case(json!([5]))]
    #[case(json!(true))]
    #[case(json!(1e30))]
    fn c050_other_numbers_are_refused_by_name(#[case] value: Value) {
        let refused = number("limit", Some(&value), 1, 20).expect_err("refused");
        assert_eq!(refused.to_string(), "limit: a whole number from 1 to 20.");
    }

    #[test]
    fn c050_flags_and_objects_may_come_as_text() {
        for (value, read) in [
            (json!(true), Some(Some(true))),
            (json!("false"), Some(Some(false))),
            (json!(null), Some(None)),
            (json!("yes"), None),
            (json!(1), None),
        ] {
            assert_eq!(flag("includeClosed", Some(&value)).ok(), read, "{value}");
        }
        let object = json!({"task": "a"});
        let read = |value: &Value| fields("fields", Some(value)).ok().flatten();
        assert_eq!(
            read(&json!(object.to_string())),
            object.as_object().cloned()
        );
        assert_eq!(read(&object), object.as_object().cloned());
        for other in [json!("[1]"), json!("{"), json!([1]), json!(7)] {
            assert_eq!(read(&other), None, "{other}");
        }
    }

    #[rstest]
    #[case(json!([41, "42"]), "41 42")]
    #[case(json!("[\"41\",\"42\"]"), "41 42")]
    #[case(json!("[41, 42]"), "41 42")]
    #[case(json!(41), "41")]
    #[case(json!("#41"), "41")]
    #[case(json!("S7"), "S7")]
    #[case(json!(["#41", "41", 41]), "41")]
    #[case(json!([]), "")]
    #[case(json!("[]"), "")]
    fn c050_ids_may_come_as_text_or_alone(#[case] value: Value, #[case] read: &str) {
        let ids = ids("selectedIds", Some(&value))
            .expect("read")
            .expect("given");
        let ids: Vec<String> = ids.iter().map(RecordId::to_string).collect();
        assert_eq!(ids.join(" "), read);
    }

    #[rstest]
    #[case(json!(["a", 4]), Some("a 4"))]
    #[case(json!("[\"a\"]"), Some("a"))]
    #[case(json!("a, b"), Some("a, b"))]
    #[case(json!([]), Some(""))]
    #[case(json!("[a"), None)]
    #[case(json!([["a"]]), None)]
    #[case(json!(true), None)]
    fn c050_texts_may_come_as_text_or_alone(#[case] value: Value, #[case] read: Option<&str>) {
        let texts = texts("facts", Some(&value)).ok().flatten();
        assert_eq!(texts.map(|texts| texts.join(" ")).as_deref(), read);
    }

    #[rstest]
    #[case(json!("[41"))]
    #[case(json!(""))]
    #[case(json!(" "))]
    #[case(json!([null]))]
    #[case(json!([[41]]))]
    #[case(json!({"id": 41}))]
    #[case(json!("41,42"))]
    #[case(json!([1.5]))]
    fn c050_no_selection_is_empty_by_accident(#[case] value: Value) {
        let refused = ids("selectedIds", Some(&value)).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "selectedIds: a list of ids such as 41, S7 or P3."
        );
    }
}
