//! What is replayed: the items, the folder they belong to, and a query for them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use super::{commits, record_sets};
use crate::output::grouped;
use crate::process::Scratch;

/// The input of a demo.
pub struct Replay {
    /// What it is, for people.
    pub describe: String,
    /// The folder whose project the session and the search belong to.
    pub checkout: PathBuf,
    /// Observations for the spool.
    pub items: Vec<Value>,
    /// What to search for.
    pub query: String,
}

impl Replay {
    /// Reads the input: record sets if there are any, else commits.
    ///
    /// # Errors
    /// If `folder` holds neither, or what it holds cannot be read.
    pub fn of(folder: &Path, scratch: &Scratch) -> anyhow::Result<Self> {
        let sets = crate::record_sets::find(folder, crate::record_sets::RECORDS);
        if !sets.is_empty() {
            return Self::of_sets(&sets, scratch);
        }
        if !commits::is_repository(folder) {
            bail!(
                "{} is no git repository and holds no record sets",
                folder.display()
            );
        }
        let commits = commits::read(folder)?;
        Ok(Self {
            describe: format!("{} commits of this git repository", grouped(commits.len())),
            checkout: folder.to_owned(),
            query: commits::query(&commits),
            items: commits.iter().map(commits::Commit::item).collect(),
        })
    }

    fn of_sets(folders: &[PathBuf], scratch: &Scratch) -> anyhow::Result<Self> {
        let read = record_sets::read(folders)?;
        let checkout = scratch.folder("checkout")?;
        // The rule that goes before all others says which project the folder belongs to.
        let name = format!("{}\n", read.query.project);
        fs::write(checkout.join(".cairn-project"), name).context("naming the project")?;
        Ok(Self {
            describe: format!(
                "{} records of {} sets; the query is one of theirs, asked in the project {}",
                grouped(read.records.len()),
                read.sets,
                read.query.project
            ),
            checkout,
            items: read
                .records
                .iter()
                .map(crate::record_sets::Record::item)
                .collect(),
            query: read.query.text,
        })
    }
}
