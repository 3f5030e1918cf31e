//! Problem: a refusal or a fault as the client reads it, of a service of any version.
//!
//! Codes are text here: one that this client does not know is still an answer.

use cairn_wire::Code;
use serde::Deserialize;

/// What every problem's type starts with.
const TYPE: &str = "urn:cairn:problem:";

/// A problem document, as far as the client must know it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Problem {
    /// Tells a document of Cairn from anybody else's.
    #[serde(rename = "type", default)]
    kind: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: String,
    /// What the code means.
    #[serde(default)]
    pub title: String,
    /// What is wrong this time.
    #[serde(default)]
    pub detail: Option<String>,
}

impl Problem {
    /// Reads a problem of Cairn's; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let problem: Self = serde_json::from_str(text).ok()?;
        problem.kind.starts_with(TYPE).then_some(problem)
    }

    /// What the client itself finds wrong with an answer.
    #[must_use]
    pub fn new(code: Code, detail: String) -> Self {
        Self {
            kind: format!("{TYPE}{code}"),
            status: code.status(),
            code: code.name().to_owned(),
            title: code.title().to_owned(),
            detail: Some(detail),
        }
    }

    /// What an answer without a document stands for: it may come from something between here and
    /// the service.
    #[must_use]
    pub fn of_status(status: u16) -> Self {
        let code = match status {
            401 => Code::Unauthenticated,
            429 => Code::RateLimited,
            500 => Code::Internal,
            _ => Code::StoreUnavailable,
        };
        Self {
            kind: format!("{TYPE}{code}"),
            status: code.status(),
            code: code.name().to_owned(),
            title: format!("HTTP {status}"),
            detail: None,
        }
    }

    /// Whether it is of this code.
    #[must_use]
    pub fn is(&self, code: Code) -> bool {
        self.code == code.name()
    }

    /// The form a model reads: `<code> - <detail>`.
    #[must_use]
    pub fn text(&self) -> String {
        let words = self.detail.as_deref().unwrap_or(&self.title);
        format!("{} - {words}", self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_a_later_version_reads_like_any_other() {
        let json = r#"{"type":"urn:cairn:problem:too_purple","title":"t","status":422,
            "code":"too_purple","detail":"less purple","shade":[1]}"#;
        let problem = Problem::parse(json).expect("a problem");
        assert_eq!(problem.text(), "too_purple - less purple");
    }

    #[test]
    fn what_is_not_ours_is_no_problem_of_ours() {
        for other in [
            r#"{"type":"about:blank","title":"t","status":422,"code":"x"}"#,
            r#"{"status":422,"code":"x"}"#,
            r#"{"type":"urn:cairn:problem:x","status":422}"#,
            "<html>",
        ] {
            assert_eq!(Problem::parse(other), None, "{other}");
        }
    }
}
