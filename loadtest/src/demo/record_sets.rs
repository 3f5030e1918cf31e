//! Record sets: folders with `records.jsonl` and `queries.jsonl`, as a yardstick for retrieval
//! would hold them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Records that are replayed, in all.
const RECORDS: usize = 3_000;

/// What was read of a folder of sets.
#[derive(Debug)]
pub struct RecordSets {
    /// How many sets gave records.
    pub sets: usize,
    /// The records, ascending by time; the share of each set is its newest.
    pub records: Vec<Record>,
    /// A query whose answers are among the records.
    pub query: Query,
}

/// One record.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    id: String,
    project: String,
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
    /// The project it is asked in.
    pub project: String,
    /// What is asked.
    #[serde(rename = "query")]
    pub text: String,
    #[serde(default)]
    relevant: Vec<String>,
}

/// The folders with records, if `folder` is one or holds some.
#[must_use]
pub fn find(folder: &Path) -> Vec<PathBuf> {
    if folder.join("records.jsonl").is_file() {
        return vec![folder.to_owned()];
    }
    let sets = folder.join("sets");
    let parent = if sets.is_dir() { &sets } else { folder };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let inside = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = inside
        .filter(|path| path.join("records.jsonl").is_file())
        .collect();
    found.sort();
    found
}

/// Reads an even share of records from each set, and finds a query for them.
///
/// # Errors
/// If a file cannot be read, or no query can be answered from the records.
pub fn read(folders: &[PathBuf]) -> anyhow::Result<RecordSets> {
    let share = RECORDS / folders.len().max(1);
    let (mut records, mut queries) = (Vec::new(), Vec::new());
    for folder in folders {
        let mut set: Vec<Record> = read_lines(&folder.join("records.jsonl"))?;
        set.sort_by_key(|record| record.time());
        records.extend(set.split_off(set.len().saturating_sub(share)));
        let questions = folder.join("queries.jsonl");
        if questions.is_file() {
            queries.extend(read_lines::<Query>(&questions)?);
        }
    }
    records.sort_by_key(Record::time);
    let query = choose(&records, queries).context("no query is answered by these records")?;
    Ok(RecordSets {
        sets: folders.len(),
        records,
        query,
    })
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
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

/// The first of the queries with the most answers among the records.
fn choose(records: &[Record], queries: Vec<Query>) -> Option<Query> {
    let known: HashSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
    let answers = |query: &Query| {
        query
            .relevant
            .iter()
            .filter(|id| known.contains(id.as_str()))
            .count()
    };
    let best = queries.iter().map(answers).max().filter(|most| *most > 0)?;
    queries.into_iter().find(|query| answers(query) == best)
}

impl Record {
    /// Its moment, to order by; the epoch if it has none.
    fn time(&self) -> chrono::DateTime<chrono::Utc> {
        let text = self.created_at.as_deref().unwrap_or_default();
        let parsed = chrono::DateTime::parse_from_rfc3339(text);
        parsed.map(|at| at.to_utc()).unwrap_or_default()
    }

    /// The record as an item for the spool, in a project of its own name.
    #[must_use]
    pub fn item(&self) -> Value {
        let mut item = json!({
            "kind": "observation",
            "project": {"key": format!("name:{}", self.project), "name": self.project},
            "body": {
                "title": self.title,
                "narrative": self.narrative,
                "facts": self.facts,
                "files_modified": self.files,
            },
        });
        if self.created_at.is_some() {
            item["at"] = json!(self.time());
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(root: &Path, name: &str, records: &str, queries: &str) {
        let folder = root.join("sets").join(name);
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("records.jsonl"), records).expect("written");
        fs::write(folder.join("queries.jsonl"), queries).expect("written");
    }

    #[test]
    fn sets_are_read_in_time_order_with_the_query_best_answered() {
        let root = tempfile::tempdir().expect("made");
        let record = |id: &str, at: &str| {
            format!(r#"{{"id":"{id}","project":"p","title":"t","created_at":"{at}"}}"#) + "\n"
        };
        let b = record("b/2", "2020-01-02T00:00:00Z") + &record("b/1", "2020-01-01T00:00:00+08:00");
        set(
            root.path(),
            "b",
            &b,
            r#"{"project":"p","query":"two","relevant":["b/1","b/2"]}"#,
        );
        let a = r#"{"id":"a/1","project":"p","title":"no time"}"#;
        set(
            root.path(),
            "a",
            a,
            r#"{"project":"p","query":"one","relevant":["b/1","gone"]}"#,
        );
        let folders = find(root.path());
        let sets = read(&folders).expect("reads");
        let ids: Vec<&str> = sets
            .records
            .iter()
            .map(|record| record.id.as_str())
            .collect();
        assert_eq!(ids, ["a/1", "b/1", "b/2"]);
        assert_eq!(sets.query.text, "two");
        assert_eq!(find(&folders[0]), [folders[0].clone()]);
        assert_eq!(sets.records[1].item()["at"], "2019-12-31T16:00:00Z");
    }

    #[test]
    fn a_broken_line_is_named() {
        let root = tempfile::tempdir().expect("made");
        set(root.path(), "a", "{}\n", "");
        let error = read(&find(root.path())).expect_err("refused");
        assert!(format!("{error:#}").contains("line 1"), "{error:#}");
    }
}
