//! Record: one event as a line of the spool, and as an item of a request. None is made but without
//! what must not be kept.

use std::borrow::Cow;

use cairn_wire::domain::bounds::{self, Bound};
use cairn_wire::domain::redact::{WITHHELD, safe, safe_json};
use cairn_wire::events::ProjectName;
use cairn_wire::session::SessionName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::account::Account;

/// The version of the line format.
pub const VERSION: u32 = 1;

/// Bytes of one line.
pub const LINE_BYTES: usize = 1024 * 1024;

/// A line of the spool: an event, and for whom it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub v: u32,
    /// The service it was recorded for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The tenant it was recorded for, where the client knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The id of the key it was recorded under, where its tenant was not known yet. With neither,
    /// nobody was signed in: it goes to the first account that sends anything to its service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// The checkout whose first commit names the project. A hook has no time to ask git for it,
    /// so the project is named by its folder until a flush has asked. Not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout_root: Option<String>,
    /// What is sent.
    #[serde(flatten)]
    pub item: Item,
}

/// An event as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Item {
    /// A UUID; unique for ever.
    pub event_id: String,
    /// The kind's word on the wire.
    pub kind: String,
    /// When it happened, RFC 3339.
    pub at: String,
    /// Its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectName>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    /// The highest moment of work entries that was seen before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The subagent's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The subagent's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where the checkout is, the home folder as `~`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// `private`; absent for `team`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// What the kind needs.
    #[serde(default)]
    pub body: Map<String, Value>,
}

impl Item {
    /// The item as it may leave the process that made it: without wrapper tags and secrets, in
    /// whatever field they stand.
    fn checked(mut self) -> Self {
        let texts = [
            &mut self.agent_id,
            &mut self.agent_type,
            &mut self.branch,
            &mut self.checkout,
        ];
        for text in texts.into_iter().flatten() {
            *text = safe(text).into_owned();
        }
        if let Some(project) = &mut self.project {
            project.key = safe(&project.key).into_owned();
            project.name = project.name.as_deref().map(|name| safe(name).into_owned());
        }
        if let Some(session) = &mut self.session {
            session.id = safe(&session.id).into_owned();
        }
        let body = serde_json::to_string(&self.body).expect("texts serialise");
        if let Cow::Owned(kept) = safe_json(&body) {
            self.body = serde_json::from_str(&kept).unwrap_or_else(|_| {
                let mut names = std::mem::take(&mut self.body);
                names
                    .values_mut()
                    .for_each(|value| *value = Value::from(WITHHELD));
                names
            });
        }
        self
    }

    /// The key of its project, if it begins a session there or writes to a list.
    #[must_use]
    pub fn touches_lists(&self) -> Option<&str> {
        let project = self.project.as_ref().map(|project| project.key.as_str());
        project.filter(|_| matches!(self.kind.as_str(), "session_start" | "work_entry"))
    }
}

impl Record {
    /// The record of an item that is for `service` and the tenant of `account`; nothing secret is
    /// left in it.
    #[must_use]
    pub fn new(item: Item, service: &str, account: Option<&Account>) -> Self {
        let tenant = account.and_then(|account| account.tenant.clone());
        let key_id = account.filter(|account| account.tenant.is_none());
        Self {
            v: VERSION,
            service: Some(service.to_owned()),
            key_id: key_id.map(|account| account.key_id.clone()),
            tenant,
            checkout_root: None,
            item: item.checked(),
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Why it cannot be read, in a few words.
    pub fn parse(line: &[u8]) -> Result<Self, &'static str> {
        if line.contains(&0) {
            return Err("the line holds NUL bytes");
        }
        let text = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8")?;
        let record: Self = serde_json::from_str(text).map_err(|_| {
            if serde_json::from_str::<Map<String, Value>>(text).is_ok() {
                "the line is no record of this version"
            } else {
                "the line is torn"
            }
        })?;
        if record.v == VERSION {
            Ok(record)
        } else {
            Err("the line has an unknown version")
        }
    }

    /// The record as a line, its end included. A record that does not fit a line is shortened
    /// until it does.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = to_line(self);
        let mut short = self.clone();
        let mut limit = LINE_BYTES / 4;
        while line.len() > LINE_BYTES && limit > 64 {
            short.shorten(limit);
            line = to_line(&short);
            limit /= 2;
        }
        line
    }

    /// Cuts every text of the body to `limit` bytes, with a mark; whether anything changed.
    pub fn shorten(&mut self, limit: usize) -> bool {
        let mut changed = false;
        for value in self.item.body.values_mut() {
            if let Value::String(text) = value
                && text.len() > limit
            {
                *text = bounds::cut(text, Bound::Bytes(limit));
                changed = true;
            }
        }
        changed
    }

    /// Cuts the output of a tool use to `limit` bytes; nothing happens to other records.
    pub fn shorten_output(&mut self, limit: usize) {
        if let Some(Value::String(text)) = self.item.body.get_mut("output") {
            *text = bounds::cut(text, Bound::Bytes(limit));
        }
    }

    /// Whether it is only counted when the spool is full.
    #[must_use]
    pub fn is_expendable(&self) -> bool {
        self.item.kind == "tool_use"
    }
}

fn to_line(record: &Record) -> String {
    let mut line = serde_json::to_string(record).expect("texts serialise");
    line.push('\n');
    line
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// A record with this event id and text.
    pub fn record(event_id: &str, text: &str) -> Record {
        let item = json!({"event_id": event_id, "kind": "observation",
            "at": "2026-10-10T08:45:00.120Z", "body": {"title": text}});
        Record {
            v: VERSION,
            service: Some("https://memory.example.com".to_owned()),
            tenant: None,
            key_id: None,
            checkout_root: None,
            item: serde_json::from_value(item).expect("an item"),
        }
    }

    #[test]
    fn a_line_reads_back() {
        let record = record("e1", "line\nend \u{2028} \"quote\"");
        let line = record.line();
        assert_eq!(line.matches('\n').count(), 1);
        let again = Record::parse(line.trim_end().as_bytes()).expect("reads back");
        assert_eq!(again.line(), line);
    }

    #[test]
    fn a_line_never_exceeds_its_limit() {
        let line = record("e1", &"\u{1}".repeat(256 * 1024)).line();
        assert!(
            line.len() <= LINE_BYTES && line.contains("[cut "),
            "{}",
            line.len()
        );
    }

    #[test]
    fn unreadable_lines_are_told_apart() {
        let why = |line: &[u8]| Record::parse(line).expect_err("unreadable");
        assert_eq!(
            why(b"{\"v\":1,\"event_id\":\"e3\",\"na"),
            "the line is torn"
        );
        assert_eq!(why(b"\0\0"), "the line holds NUL bytes");
        let other = record("e1", "t").line().replacen("\"v\":1", "\"v\":2", 1);
        assert_eq!(
            why(other.trim_end().as_bytes()),
            "the line has an unknown version"
        );
    }
}
