//! Purge: what an admin has removed for good, and how much that was (contract 20.3).

use std::collections::BTreeMap;

use cairn_domain::Rejection;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is to be removed: what meets all that is named, private or not. At least one of `project`,
/// `author` and `before` must be.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PurgeAsk {
    /// Id, key or name of a project; `*` for all.
    pub project: Option<String>,
    /// A handle, of a removed member too, or `key:<key id>`.
    pub author: Option<String>,
    /// What happened before this.
    pub before: Option<DateTime<Utc>>,
    /// Of `observation`, `summary`, `prompt`, `tool_use` and `work_entry`; all if empty.
    pub kinds: Vec<String>,
    /// Count, and remove nothing.
    pub dry_run: bool,
}

impl PurgeAsk {
    /// Refuses one that names nothing: everything must be asked for in words.
    ///
    /// # Errors
    /// `invalid_field`.
    pub fn check(&self) -> Result<(), Rejection> {
        let is_named = |text: &Option<String>| text.as_ref().is_some_and(|t| !t.trim().is_empty());
        if is_named(&self.project) || is_named(&self.author) || self.before.is_some() {
            return Ok(());
        }
        let detail = "name a project (* for all), an author or a time";
        Err(Rejection::invalid_field("/project", detail))
    }

    /// The same in words, for the audit log.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{name}={value}")));
        };
        add("project", self.project.clone());
        add("author", self.author.clone());
        add("before", self.before.map(crate::time::text));
        add(
            "kinds",
            Some(self.kinds.join(",")).filter(|k| !k.is_empty()),
        );
        words.join(" ")
    }
}

/// How much was removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeAnswer {
    /// By kind; kinds of which there is nothing are left out.
    pub counts: BTreeMap<String, u64>,
    /// Whether it was only counted.
    pub dry_run: bool,
}
