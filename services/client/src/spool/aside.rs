//! Set aside: records that will not be sent by themselves, each with the reason.
//!
//! A flush and a person may both be at the file, so every writer holds its lock.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_wire::domain::redact;
use serde::{Deserialize, Serialize};

use crate::files;

/// How long a writer waits for another one, which may be putting back many records.
const PATIENCE: Duration = Duration::from_secs(30);

/// The file of set-aside records.
#[derive(Clone, Debug)]
pub struct Aside {
    dir: PathBuf,
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

impl Entry {
    fn without_secrets(self) -> Self {
        Self {
            line: redact::redact_json(&self.line).into_owned(),
            reason: redact::safe(&self.reason).into_owned(),
            ..self
        }
    }
}

impl Aside {
    pub(super) fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    /// What was set aside, oldest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        self.read()?.collect()
    }

    /// How many there are. The records are read only if the number that the last writer noted
    /// is not for the file as it stands.
    ///
    /// # Errors
    /// What the file system says.
    pub fn count(&self) -> io::Result<usize> {
        let bytes = self.bytes();
        if bytes == 0 {
            return Ok(0);
        }
        let noted = files::read_text(&self.count_path(), files::SMALL, files::Links::Refuse);
        let noted = noted.unwrap_or_default();
        let noted = noted.trim().split_once(' ');
        if let Some((of, count)) = noted
            && of.parse() == Ok(bytes)
            && let Ok(count) = count.parse()
        {
            return Ok(count);
        }
        let mut count = 0;
        for entry in self.read()? {
            entry?;
            count += 1;
        }
        self.note_count(bytes, count);
        Ok(count)
    }

    /// Bytes of the records.
    pub(super) fn bytes(&self) -> u64 {
        fs::metadata(self.path()).map_or(0, |data| data.len())
    }

    /// Adds records. One that is there already, after a crash between this and the segment's
    /// rewriting, is not added again.
    ///
    /// # Errors
    /// What the file system says; then they are not all there.
    pub fn add(&self, entries: Vec<Entry>) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        // A line of an older client's, or a torn one, has passed nothing yet.
        let entries: Vec<Entry> = entries.into_iter().map(Entry::without_secrets).collect();
        let _lock = self.lock()?;
        let mut known = HashSet::new();
        let mut count = 0;
        for entry in self.read()? {
            let line = entry?.line;
            count += 1;
            if entries.iter().any(|new| new.line == line) {
                known.insert(line);
            }
        }
        let mut text = String::new();
        for entry in entries {
            if known.insert(entry.line.clone()) {
                push_line(&mut text, &entry);
                count += 1;
            }
        }
        self.append(&text)?;
        self.note_count(self.bytes(), count);
        Ok(())
    }

    /// Takes out the records for which `goes` is true; how many. If it fails for one, those
    /// before it are gone and that one and the rest stay.
    ///
    /// # Errors
    /// What `goes` or the file system says.
    pub fn take(&self, mut goes: impl FnMut(&Entry) -> io::Result<bool>) -> io::Result<usize> {
        let _lock = self.lock()?;
        let mut text = String::new();
        let (mut taken, mut left) = (0, 0);
        let mut failed = None;
        for entry in self.list()? {
            let gone = match failed {
                Some(_) => false,
                None => goes(&entry).unwrap_or_else(|e| {
                    failed = Some(e);
                    false
                }),
            };
            if gone {
                taken += 1;
            } else {
                push_line(&mut text, &entry);
                left += 1;
            }
        }
        if taken > 0 {
            files::replace(&self.path(), text.as_bytes())?;
            self.note_count(text.len() as u64, left);
        }
        failed.map_or(Ok(taken), Err)
    }

    fn read(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>> + use<>> {
        let file = match files::open_regular(&self.path(), files::Links::Refuse) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let lines = file
            .into_iter()
            .flat_map(|file| BufReader::new(file).split(b'\n'));
        // A line that a crash has torn is still in its segment.
        Ok(lines.filter_map(|line| {
            line.map(|line| serde_json::from_slice(&line).ok())
                .transpose()
        }))
    }

    fn append(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut options = files::private();
        let mut file = options
            .create(true)
            .read(true)
            .append(true)
            .open(self.path())?;
        let torn = !files::ends_in_newline(&mut file)?;
        let text = if torn {
            format!("\n{text}")
        } else {
            text.to_owned()
        };
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        files::sync_dir(&self.dir)
    }

    /// A number that cannot be kept is found again by counting.
    fn note_count(&self, bytes: u64, count: usize) {
        let text = format!("{bytes} {count}\n");
        drop(files::replace(&self.count_path(), text.as_bytes()));
    }

    fn lock(&self) -> io::Result<files::Lock> {
        files::make_private_dir(&self.dir)?;
        let lock = files::lock(&self.dir.join("lock"), PATIENCE)?;
        lock.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "set-aside records are in use"))
    }

    fn path(&self) -> PathBuf {
        self.dir.join("records.ndjson")
    }

    fn count_path(&self) -> PathBuf {
        self.dir.join("count")
    }
}

fn push_line(text: &mut String, entry: &Entry) {
    text.push_str(&serde_json::to_string(entry).expect("texts serialise"));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn entry(line: &str) -> Entry {
        Entry {
            line: line.to_owned(),
            reason: "why".to_owned(),
            code: None,
            version: None,
        }
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let folder = TempDir::new().expect("a folder");
        let aside = Aside::at(folder.path());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let aside = aside.clone();
                scope.spawn(move || {
                    for n in 0..20 {
                        let line = format!("{writer}-{n}");
                        aside.add(vec![entry(&line), entry("drop")]).expect("adds");
                        aside.take(|entry| Ok(entry.line == "drop")).expect("takes");
                    }
                });
            }
        });
        assert_eq!(aside.list().expect("reads").len(), 80);
        assert_eq!(aside.count().expect("reads"), 80);
    }

    #[test]
    fn what_is_there_is_not_added_again_and_a_torn_line_is_no_entry() {
        let folder = TempDir::new().expect("a folder");
        let aside = Aside::at(folder.path());
        aside.add(vec![entry("a"), entry("a")]).expect("adds");
        let mut file = files::private()
            .append(true)
            .open(aside.path())
            .expect("opens");
        file.write_all(b"{\"line\":\"b").expect("writes");
        assert_eq!(aside.count().expect("reads"), 1);
        aside.add(vec![entry("a"), entry("b")]).expect("adds");
        assert_eq!(aside.list().expect("reads"), [entry("a"), entry("b")]);
    }

    #[test]
    fn the_number_is_known_without_reading_the_records() {
        let folder = TempDir::new().expect("a folder");
        let aside = Aside::at(folder.path());
        aside.add(vec![entry("a"), entry("b")]).expect("adds");
        // As many bytes, none of them a record: only the note can say two.
        let bytes = usize::try_from(aside.bytes()).expect("small");
        fs::write(aside.path(), vec![b'x'; bytes]).expect("writes");
        assert_eq!(aside.count().expect("reads"), 2);
        fs::write(aside.path(), "").expect("writes");
        assert_eq!(aside.count().expect("reads"), 0);
    }

    #[test]
    fn a_record_that_cannot_go_stays_with_those_after_it() {
        let folder = TempDir::new().expect("a folder");
        let aside = Aside::at(folder.path());
        aside
            .add(["a", "b", "c"].map(entry).to_vec())
            .expect("adds");
        let taken = aside.take(|entry| match entry.line.as_str() {
            "b" => Err(io::Error::other("full")),
            _ => Ok(true),
        });
        assert!(taken.is_err());
        assert_eq!(aside.list().expect("reads"), [entry("b"), entry("c")]);
    }
}
