//! What one appended entry may be: within its limits, or refused.

use serde_json::{Map, Value};

use crate::Rejection;
use crate::bounds::{clean, head_units, units};
use crate::hlc::Hlc;
use crate::limits;
use crate::plain::one_line;
use crate::redact::{WITHHELD, redact_json, safe};
use crate::wrapper_tags::strip;

/// The key that names an entry's task.
pub(super) const TASK: &str = "task";

/// What a write does beside writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Claims the task for so many minutes.
    Claim {
        /// The length of the lease.
        minutes: u32,
    },
    /// Gives the task back.
    Release,
}

impl Action {
    /// Reads an action and the length of its lease; `None` for a plain write.
    ///
    /// # Errors
    /// `invalid_field` naming the field and what is allowed.
    pub fn parse(name: Option<&str>, minutes: Option<u32>) -> Result<Option<Self>, Rejection> {
        let range = 1..=limits::MAX_LEASE_MINUTES;
        if minutes.is_some_and(|minutes| !range.contains(&minutes)) {
            let allowed = format!("1 to {} minutes", limits::MAX_LEASE_MINUTES);
            return Err(Rejection::invalid_field("/lease_minutes", allowed));
        }
        match name.map(str::trim).filter(|name| !name.is_empty()) {
            None => Ok(None),
            Some("claim") => Ok(Some(Self::Claim {
                minutes: minutes.unwrap_or(limits::LEASE_MINUTES),
            })),
            Some("release") => Ok(Some(Self::Release)),
            Some(_) => Err(Rejection::invalid_field("/action", "claim or release")),
        }
    }

    /// The word on the wire and in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim { .. } => "claim",
            Self::Release => "release",
        }
    }
}

/// An entry as it is about to be appended: within its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkEntryDraft {
    /// The list's name, trimmed.
    pub list: String,
    /// The fields as compact JSON text, keys in the order given.
    pub fields: String,
    /// The task the fields belong to; `None` for the list's own state.
    pub task: Option<String>,
    /// The highest moment its writer had seen.
    pub after: Option<Hlc>,
    /// What it does beside writing; nothing if it waited in a spool.
    pub action: Option<Action>,
}

impl WorkEntryDraft {
    /// Checks a list's name and an entry's fields. Work entries are refused, never cut.
    ///
    /// # Errors
    /// `invalid_field` naming the field and its limit.
    pub fn parse(
        list: &str,
        fields: Map<String, Value>,
        after: Option<Hlc>,
    ) -> Result<Self, Rejection> {
        let given = strip(list).trim().to_owned();
        if units(&given) > limits::LIST_NAME_UNITS {
            return Err(Rejection::invalid_field("/list", list_allowed()));
        }
        let list = clean(safe(&given).trim().to_owned());
        let list = head_units(&list, limits::LIST_NAME_UNITS).to_owned();
        if one_line(&list).is_empty() {
            return Err(Rejection::invalid_field("/list", list_allowed()));
        }
        if fields.is_empty() || fields.len() > limits::WORK_KEYS {
            let allowed = format!("1 to {} keys", limits::WORK_KEYS);
            return Err(Rejection::invalid_field("/fields", allowed));
        }
        let fields = fields
            .into_iter()
            .map(field)
            .collect::<Result<Map<_, _>, _>>()?;
        let as_given = Value::Object(fields.clone()).to_string();
        let fields = without_secrets(fields);
        let task = fields.get(TASK).and_then(task_name);
        if task
            .as_deref()
            .is_some_and(|task| one_line(task).is_empty())
        {
            return Err(Rejection::invalid_field(
                "/fields/task",
                "must not be blank",
            ));
        }
        let text = Value::Object(fields).to_string();
        if units(&as_given) > limits::WORK_FIELDS_UNITS {
            let allowed = format!(
                "at most {} UTF-16 code units as compact JSON",
                limits::WORK_FIELDS_UNITS
            );
            return Err(Rejection::invalid_field("/fields", allowed));
        }
        Ok(Self {
            list,
            fields: text,
            task,
            after,
            action: None,
        })
    }

    /// The same entry with what it does beside writing.
    ///
    /// # Errors
    /// `invalid_field` if the action needs a task and there is none.
    pub fn with_action(self, action: Option<Action>) -> Result<Self, Rejection> {
        if action.is_some() && self.task.is_none() {
            let detail = "required to claim or release";
            return Err(Rejection::invalid_field("/fields/task", detail));
        }
        Ok(Self { action, ..self })
    }
}

fn list_allowed() -> String {
    format!("1 to {} UTF-16 code units", limits::LIST_NAME_UNITS)
}

/// The fields with marks in the place of secrets, in keys too; names and values are looked at
/// together.
fn without_secrets(fields: Map<String, Value>) -> Map<String, Value> {
    let text = Value::Object(fields).to_string();
    serde_json::from_str(&redact_json(&text)).unwrap_or_else(|_| {
        let withheld = (TASK.to_owned(), Value::from(WITHHELD));
        [withheld].into_iter().collect()
    })
}

fn field((key, value): (String, Value)) -> Result<(String, Value), Rejection> {
    let key = clean(strip(&key).into_owned());
    if key.is_empty() || units(&key) > limits::WORK_KEY_UNITS {
        let allowed = format!("keys of 1 to {} UTF-16 code units", limits::WORK_KEY_UNITS);
        return Err(Rejection::invalid_field("/fields", allowed));
    }
    let value = match value {
        Value::String(text) => {
            let kept = clean(strip(&text).into_owned());
            if key == TASK && kept.is_empty() && !text.is_empty() {
                // Without its name it would be the list's own state.
                let detail = "must not be wholly private";
                return Err(Rejection::invalid_field("/fields/task", detail));
            }
            Value::String(kept)
        }
        Value::Array(_) | Value::Object(_) => {
            let pointer = format!("/fields/{}", key.replace('~', "~0").replace('/', "~1"));
            return Err(Rejection::invalid_field(
                pointer,
                "must be a string, a finite number, true, false or null",
            ));
        }
        other => other,
    };
    Ok((key, value))
}

/// The task as text; absent, null and empty mean the list itself.
fn task_name(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn parse(list: &str, fields: Value) -> Result<WorkEntryDraft, Rejection> {
        let Value::Object(fields) = fields else {
            unreachable!("tests give objects")
        };
        WorkEntryDraft::parse(list, fields, None)
    }

    #[test]
    fn a_number_is_a_task_too_and_keys_keep_their_order() {
        let entry = parse(" auth ", json!({"status": "todo", "task": 7, "a": null})).expect("ok");
        assert_eq!(
            (entry.list.as_str(), entry.task.as_deref()),
            ("auth", Some("7"))
        );
        assert_eq!(entry.fields, r#"{"status":"todo","task":7,"a":null}"#);
    }

    #[rstest]
    #[case(json!({}))]
    #[case(json!({"a": {"b": 1}}))]
    #[case(json!({"a": [1]}))]
    #[case(json!({"": 1}))]
    #[case(json!({"a": "x".repeat(2_000)}))]
    #[case(json!({"<private>k</private>": 1}))]
    #[case(json!({"task": "<private>t</private>"}))]
    #[case(json!({"task": " \n"}))]
    fn what_breaks_a_rule_is_refused(#[case] fields: Value) {
        assert!(parse("l", fields).is_err());
    }

    #[test]
    fn a_name_that_shows_nothing_is_none() {
        for name in ["", " ", "\u{1}", "<private>secret</private>"] {
            assert!(parse(name, json!({"n": 1})).is_err(), "{name:?}");
        }
        let entry = parse("a <private>secret</private>", json!({"n": 1})).expect("kept");
        assert_eq!(entry.list, "a");
    }

    #[test]
    fn c030_a_list_name_of_9600_characters_names_the_field_and_the_maximum() {
        let refusal = parse(&"0f3a".repeat(2_400), json!({"task": "a"})).expect_err("too long");
        assert_eq!(
            refusal,
            Rejection::invalid_field("/list", "1 to 200 UTF-16 code units")
        );
    }
}
