//! What the demo takes of record sets: an even share of each, and a query that they answer.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Context;

use crate::record_sets::{QUERIES, Query, RECORDS, Record, read_lines};

/// Records that are replayed, in all.
const MOST: usize = 3_000;

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

/// Reads an even share of records from each set, and finds a query for them.
///
/// # Errors
/// If a file cannot be read, or no query can be answered from the records.
pub fn read(folders: &[PathBuf]) -> anyhow::Result<RecordSets> {
    let share = MOST / folders.len().max(1);
    let (mut records, mut queries) = (Vec::new(), Vec::new());
    for folder in folders {
        let mut set: Vec<Record> = read_lines(&folder.join(RECORDS))?;
        set.sort_by_key(|record| record.time());
        records.extend(set.split_off(set.len().saturating_sub(share)));
        let questions = folder.join(QUERIES);
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::record_sets::find;

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
        let folders = find(root.path(), RECORDS);
        let sets = read(&folders).expect("reads");
        let ids: Vec<&str> = sets
            .records
            .iter()
            .map(|record| record.id.as_str())
            .collect();
        assert_eq!(ids, ["a/1", "b/1", "b/2"]);
        assert_eq!(sets.query.text, "two");
        assert_eq!(find(&folders[0], RECORDS), [folders[0].clone()]);
        assert_eq!(sets.records[1].item()["at"], "2019-12-31T16:00:00Z");
    }

    #[test]
    fn a_broken_line_is_named() {
        let root = tempfile::tempdir().expect("made");
        set(root.path(), "a", "{}\n", "");
        let error = read(&find(root.path(), RECORDS)).expect_err("refused");
        assert!(format!("{error:#}").contains("line 1"), "{error:#}");
    }
}
