//! Record sets: folders with `records.jsonl` and `queries.jsonl`, as a yardstick for retrieval
//! holds them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The file with a set's records, and the one with its queries.
pub const RECORDS: &str = "records.jsonl";
pub const QUERIES: &str = "queries.jsonl";

/// One record.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    /// Its name in the set.
    pub id: String,
    /// The project it belongs to.
    pub project: String,
    title: String,
    #[serde(default)]
    narrative: String,
    #[serde(default)]
    facts: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    created_at: Option<String>,
}

/// One query with its known answers.
#[derive(Clone, Debug, Deserialize)]
pub struct Query {
    /// Its name in the set.
    #[serde(default)]
    pub qid: String,
    /// The project it is asked in.
    pub project: String,
    /// What is asked.
    #[serde(rename = "query")]
    pub text: String,
    /// Ids of the records that answer it.
    #[serde(default)]
    pub relevant: Vec<String>,
}

/// The folders that hold a file of this name: `folder` itself, those of its folder `sets`, or
/// else its own.
#[must_use]
pub fn find(folder: &Path, file: &str) -> Vec<PathBuf> {
    if folder.join(file).is_file() {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(parent(folder)).into_iter().flatten().flatten();
    let inside = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = inside.filter(|path| path.join(file).is_file()).collect();
    found.sort();
    found
}

/// The folder whose folders are the sets.
#[must_use]
pub fn parent(folder: &Path) -> PathBuf {
    let sets = folder.join("sets");
    if sets.is_dir() {
        sets
    } else {
        folder.to_owned()
    }
}

/// Reads a file of one JSON object a line.
///
/// # Errors
/// If it cannot be read or is empty; a line that cannot be is named.
pub fn read_lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(at, line)| {
        serde_json::from_str(line).with_context(|| format!("{} line {}", path.display(), at + 1))
    });
    let parsed: Vec<T> = parsed.collect::<anyhow::Result<_>>()?;
    if parsed.is_empty() {
        bail!("{} is empty", path.display());
    }
    Ok(parsed)
}

impl Record {
    /// Its moment, to order by; the epoch if it has none.
    #[must_use]
    pub fn time(&self) -> chrono::DateTime<chrono::Utc> {
        let text = self.created_at.as_deref().unwrap_or_default();
        let parsed = chrono::DateTime::parse_from_rfc3339(text);
        parsed.map(|at| at.to_utc()).unwrap_or_default()
    }

    /// The record as an event, in a project of its own name.
    #[must_use]
    pub fn item(&self) -> Value {
        let mut item = json!({
            "kind": "observation",
            "project": {"key": project_key(&self.project), "name": self.project},
            "body": {
                "title": self.title,
                "narrative": self.narrative,
                "facts": self.facts,
                "files_modified": self.files,
            },
        });
        if self.created_at.is_some() {
            // The service takes no time before this; some abstracts are older.
            item["at"] = json!(self.time().max(chrono::DateTime::UNIX_EPOCH));
        }
        item
    }
}

/// The key of a project that is named by a record.
#[must_use]
pub fn project_key(project: &str) -> String {
    format!("name:{project}")
}
