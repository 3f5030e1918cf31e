//! How a tool use is asked for: by its own id, or by the id that its host gave the call.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::bounds::word;
use crate::ids::ToolUseId;
use crate::{Rejection, limits};

/// A name of a tool use: `T118`, a host's id of the call, or digits, which may be either.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolUseName {
    /// The id it may be.
    pub id: Option<ToolUseId>,
    /// The host's id that it may be, which any number of calls may share: some hosts count their
    /// calls anew in each session.
    pub host: Option<String>,
}

impl ToolUseName {
    /// Reads an argument of a tool: a text, or a whole number for digits.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) if number.is_u64() => number.to_string().parse().ok(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl FromStr for ToolUseName {
    type Err = Rejection;

    /// `T118` and `#118` are our ids, `118` may also be a host's, all else is a host's.
    ///
    /// # Errors
    /// `invalid_input` for an empty text and for one that no host's id can be.
    fn from_str(text: &str) -> Result<Self, Rejection> {
        let id = text.parse::<ToolUseId>().ok();
        let is_ours = text.trim().starts_with(['#', 'T', 't']) && id.is_some();
        let host = match is_ours {
            true => None,
            false => {
                let host = word("", text.to_owned(), limits::HOST_ID_BYTES);
                Some(host.map_err(|_| Rejection::invalid_input("id", "an id such as T118"))?)
            }
        };
        Ok(Self { id, host })
    }
}

impl fmt::Display for ToolUseName {
    /// As it was given: a name that may be a host's is printed as the host wrote it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.id) {
            (Some(host), _) => f.write_str(host),
            (None, Some(id)) => id.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::ours(json!("T118"), Some(118), None)]
    #[case::lower_case(json!(" #t118 "), Some(118), None)]
    #[case::marked(json!("#118"), Some(118), None)]
    #[case::digits(json!("118"), Some(118), Some("118"))]
    #[case::number(json!(118), Some(118), Some("118"))]
    #[case::digits_of_a_host(json!("0118"), None, Some("0118"))]
    #[case::more_than_a_number(json!("9223372036854775808"), None, Some("9223372036854775808"))]
    #[case::of_a_host(json!("toolu_01A"), None, Some("toolu_01A"))]
    #[case::not_quite_ours(json!("T118x"), None, Some("T118x"))]
    #[case::nul(json!("a\0b"), None, Some("a\u{fffd}b"))]
    fn a_name_is_ours_a_hosts_or_both(
        #[case] given: Value,
        #[case] id: Option<i64>,
        #[case] host: Option<&str>,
    ) {
        let name = ToolUseName::read(&given).expect("a name");
        assert_eq!(name.id, id.map(ToolUseId));
        assert_eq!(name.host.as_deref(), host);
    }

    #[rstest]
    #[case(json!(""))]
    #[case(json!("  "))]
    #[case(json!("x".repeat(257)))]
    #[case(json!(-118))]
    #[case(json!(1.5))]
    #[case(json!(1e30))]
    #[case(json!(null))]
    #[case(json!(true))]
    #[case(json!(["T118"]))]
    #[case(json!({"id": "T118"}))]
    fn what_names_nothing_is_refused(#[case] given: Value) {
        assert_eq!(ToolUseName::read(&given), None);
    }

    #[test]
    fn a_name_prints_as_it_was_given() {
        for text in ["T118", "118", "toolu_01A"] {
            assert_eq!(
                text.parse::<ToolUseName>().expect("a name").to_string(),
                text
            );
        }
    }
}
