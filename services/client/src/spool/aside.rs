//! Set aside: records that will not be sent by themselves, each with the reason.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;

/// The file of set-aside records.
#[derive(Clone, Debug)]
pub struct Aside {
    path: PathBuf,
}

/// A record that was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The line as it stood in the spool.
    pub line: String,
    /// Why it is here, for people.
    pub reason: String,
    /// The service's code, if the service refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The service's version at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Aside {
    pub(super) fn at(dir: &Path) -> Self {
        Self {
            path: dir.join("records.ndjson"),
        }
    }

    /// What was set aside, oldest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    /// Adds records. One that is there already, after a crash between this and the segment's
    /// rewriting, is not added again.
    ///
    /// # Errors
    /// What the file system says.
    pub fn add(&self, entries: Vec<Entry>) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut all = self.list()?;
        for entry in entries {
            if !all.iter().any(|known| known.line == entry.line) {
                all.push(entry);
            }
        }
        self.write(&all)
    }

    /// Takes out the records of which `wanted` is true.
    ///
    /// # Errors
    /// What the file system says.
    pub fn take(&self, wanted: impl Fn(&Entry) -> bool) -> io::Result<Vec<Entry>> {
        let (taken, left): (Vec<_>, Vec<_>) = self.list()?.into_iter().partition(wanted);
        if !taken.is_empty() {
            self.write(&left)?;
        }
        Ok(taken)
    }

    fn write(&self, entries: &[Entry]) -> io::Result<()> {
        let mut text = String::new();
        for entry in entries {
            text.push_str(&serde_json::to_string(entry).expect("texts serialise"));
            text.push('\n');
        }
        files::replace(&self.path, text.as_bytes())
    }
}
