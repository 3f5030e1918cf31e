//! The sets of a folder, and in which of them each query is to be asked.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, bail};

use crate::record_sets::{QUERIES, Query, RECORDS, Record, find, read_lines};

/// A set: records, and queries with known answers.
#[derive(Debug)]
pub struct Set {
    /// The name of its folder.
    pub name: String,
    /// Its records; none if its queries go to the records of other sets.
    pub records: Vec<Record>,
    /// Its queries.
    pub queries: Vec<Query>,
}

/// Reads the sets of a folder, by name.
///
/// # Errors
/// If there are none, a file cannot be read, or a query names no answer.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Set>> {
    let mut sets = Vec::new();
    for path in find(folder, QUERIES) {
        let name = path.file_name().unwrap_or_default();
        let (name, records) = (name.to_string_lossy().into_owned(), path.join(RECORDS));
        let queries: Vec<Query> = read_lines(&path.join(QUERIES))?;
        if let Some(query) = queries.iter().find(|query| query.relevant.is_empty()) {
            bail!("{name}: the query {} names no answer", query.qid);
        }
        sets.push(Set {
            name,
            records: match records.is_file() {
                true => read_lines(&records)?,
                false => Vec::new(),
            },
            queries,
        });
    }
    if sets.is_empty() {
        bail!("{} holds no sets", folder.display());
    }
    Ok(sets)
}

/// For each query of `set`, the index of the set whose records it is asked of: its own, or of
/// those with its project the one that holds most of its answers.
///
/// # Errors
/// If a query's project is nowhere.
pub fn targets(sets: &[Set], set: &Set) -> anyhow::Result<Vec<usize>> {
    let own = sets.iter().position(|other| other.name == set.name);
    if let Some(own) = own.filter(|_| !set.records.is_empty()) {
        return Ok(vec![own; set.queries.len()]);
    }
    let projects: Vec<HashSet<&str>> = sets.iter().map(projects).collect();
    let ids: Vec<HashSet<&str>> = sets.iter().map(ids).collect();
    let target = |query: &Query| {
        let held = |index: usize| {
            let held = query.relevant.iter().map(String::as_str);
            held.filter(|id| ids[index].contains(id)).count()
        };
        let possible =
            (0..sets.len()).filter(|index| projects[*index].contains(query.project.as_str()));
        // The first of equals.
        possible
            .rev()
            .max_by_key(|index| held(*index))
            .with_context(|| format!("{}: no set has the project {}", query.qid, query.project))
    };
    set.queries.iter().map(target).collect()
}

fn projects(set: &Set) -> HashSet<&str> {
    let projects = set.records.iter().map(|record| record.project.as_str());
    projects.collect()
}

fn ids(set: &Set) -> HashSet<&str> {
    set.records
        .iter()
        .map(|record| record.id.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn queries_without_records_go_to_where_their_answers_are() {
        let root = tempfile::tempdir().expect("made");
        let write = |set: &str, file: &str, text: &str| {
            let folder = root.path().join("sets").join(set);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join(file), text).expect("written");
        };
        let record = |id: &str| format!(r#"{{"id":"{id}","project":"p","title":"t"}}"#);
        let query = |answer: &str, project: &str| {
            format!(r#"{{"qid":"q","project":"{project}","query":"t","relevant":["{answer}"]}}"#)
                + "\n"
        };
        write("b", RECORDS, &record("b/1"));
        write("b", QUERIES, &query("c/1", "p"));
        write("c", RECORDS, &record("c/1"));
        write("c", QUERIES, &query("c/1", "p"));
        write("a", QUERIES, &(query("c/1", "p") + &query("gone", "p")));
        let sets = read(root.path()).expect("reads");
        let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let of = |index: usize| targets(&sets, &sets[index]).expect("found");
        assert_eq!((of(0), of(1)), (vec![2, 1], vec![1]));

        write("a", QUERIES, &query("c/1", "other"));
        let sets = read(root.path()).expect("reads");
        let error = targets(&sets, &sets[0]).expect_err("nowhere");
        assert!(error.to_string().contains("other"), "{error}");
        write("a", QUERIES, r#"{"qid":"q","project":"p","query":"t"}"#);
        assert!(read(root.path()).is_err(), "no answer is named");
    }
}
