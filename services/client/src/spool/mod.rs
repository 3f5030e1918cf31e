//! Spool: records on their way to the service, durable from the moment a hook returns.
//!
//! `open.ndjson` takes new records; a flush renames it to a segment and works through segments,
//! so that a hook never waits for the network (contract 18.4).

mod answer;
mod aside;
mod flush;
mod held;
mod pace;
mod record;
mod segment;
mod service;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::Utc;
use uuid::Uuid;

use crate::config::{Dirs, Settings};
use crate::files;

pub use answer::{Answer, Outlook};
pub use aside::{Aside, Entry as AsideEntry};
pub use flush::{Flush, request};
pub use pace::Pace;
pub use record::{Item, Record};
pub use service::{Addressee, Delivery, Naming, Outcome, Service, Stop, Trouble};

use held::Held;

/// How long a hook waits for another one to write.
const PATIENCE: Duration = Duration::from_millis(150);

/// Size from which a full `open.ndjson` becomes a segment: a rewritten segment stays small.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes that are read of one file. None gets this long unless something else has written it.
const SPOOL_FILE: u64 = 1024 * 1024 * 1024;

/// Bytes that are read at a time where lines are looked through.
const READ_BYTES: usize = 256 * 1024;

/// Bytes that are looked through whatever the time: a few milliseconds' worth.
const FREE_BYTES: usize = 1024 * 1024;

/// What an output keeps when the spool is full.
const FULL_OUTPUT_BYTES: usize = 1_024;

/// The spool of this machine.
#[derive(Clone, Debug)]
pub struct Spool {
    dir: PathBuf,
    aside: Aside,
    max_bytes: u64,
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is on the disk.
    Kept,
    /// The spool is full: it was counted and is gone.
    Counted,
}

impl Spool {
    /// The spool of this person.
    #[must_use]
    pub fn of(dirs: &Dirs, settings: &Settings) -> Self {
        Self::at(&dirs.data, settings.spool_max)
    }

    fn at(data: &Path, max_bytes: u64) -> Self {
        Self {
            dir: data.join("spool"),
            aside: Aside::at(&data.join("set-aside")),
            max_bytes,
        }
    }

    /// The records that will not be sent by themselves.
    #[must_use]
    pub const fn aside(&self) -> &Aside {
        &self.aside
    }

    /// Appends a record and returns once it is durable.
    ///
    /// # Errors
    /// What the file system says; then nothing was kept.
    pub fn append(&self, record: &Record) -> io::Result<Appended> {
        let kept = self.write(record, || self.fit(record))?;
        if !kept {
            self.count_one()?;
            return Ok(Appended::Counted);
        }
        Ok(Appended::Kept)
    }

    /// Writes what `fit` makes of a record, under the lock; whether it made anything of it.
    fn write(
        &self,
        record: &Record,
        fit: impl FnOnce() -> io::Result<Option<String>>,
    ) -> io::Result<bool> {
        files::make_private_dir(&self.dir)?;
        let Some(lock) = files::lock(&self.dir.join("lock"), PATIENCE)? else {
            // Somebody holds the lock for longer than a write takes, and a hook cannot wait.
            files::replace(&self.segment_path(), record.line().as_bytes())?;
            return Ok(true);
        };
        let Some(line) = fit()? else {
            return Ok(false);
        };
        let path = self.dir.join("open.ndjson");
        let mut file = files::private()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)?;
        let length = file.metadata()?.len();
        let line = if files::ends_in_newline(&mut file)? {
            line
        } else {
            format!("\n{line}")
        };
        file.write_all(line.as_bytes())?;
        if length + line.len() as u64 > SEGMENT_BYTES {
            fs::rename(&path, self.segment_path())?;
        }
        // The line is in place; several hooks may now wait for the disk at once.
        drop(lock);
        file.sync_data()?;
        if length == 0 {
            files::sync_dir(&self.dir)?;
        }
        Ok(true)
    }

    /// The record's line as far as there is room for it. Set-aside records take room as well:
    /// they would grow without bound if nobody looked after them.
    fn fit(&self, record: &Record) -> io::Result<Option<String>> {
        let line = record.line();
        let taken = self.bytes()? + self.aside.bytes();
        let room = self.max_bytes.saturating_sub(taken);
        if line.len() as u64 <= room || !record.is_expendable() {
            return Ok(Some(line));
        }
        let mut short = record.clone();
        short.shorten_output(FULL_OUTPUT_BYTES);
        Ok(Some(short.line()).filter(|line| line.len() as u64 <= room))
    }

    fn count_one(&self) -> io::Result<()> {
        let path = self.dir.join("counted");
        fs::write(path, (self.counted() + 1).to_string())
    }

    /// Counts what was left out because its turn may have been private, if a number can be kept.
    pub fn count_left_out(&self) {
        drop(self.count_one());
    }

    /// Tool uses that found no room, and what else was left out.
    #[must_use]
    pub fn counted(&self) -> u64 {
        let path = self.dir.join("counted");
        let text = files::read_text(&path, files::SMALL, files::Links::Refuse);
        text.unwrap_or_default().trim().parse().unwrap_or(0)
    }

    /// Brings set-aside records back among those that wait; how many.
    ///
    /// # Errors
    /// What the file system says.
    pub fn put_back(&self, wanted: impl Fn(&AsideEntry) -> bool) -> io::Result<usize> {
        self.aside.take(|entry| {
            let record = Record::parse(entry.line.as_bytes());
            match record {
                // First there, then gone here: a crash in between costs a duplicate, which is
                // harmless. It takes the room that it had, so a full spool does not matter.
                Ok(record) if wanted(entry) => self.write(&record, || Ok(Some(record.line()))),
                _ => Ok(false),
            }
        })
    }

    /// Records that are held back because the service failed on them.
    #[must_use]
    pub fn held(&self) -> usize {
        Held::load(&self.dir, Utc::now()).count()
    }

    /// Whether records came that were not there for a flush with this outcome.
    ///
    /// # Errors
    /// What the file system says.
    pub fn has_more_than(&self, outcome: &Outcome) -> io::Result<bool> {
        let open = fs::metadata(self.dir.join("open.ndjson")).map_or(0, |data| data.len());
        let mut segments = self.segments()?.into_iter();
        Ok(open > 0 || segments.any(|path| !outcome.segments.contains(&path)))
    }

    /// Bytes that wait.
    ///
    /// # Errors
    /// What the file system says.
    pub fn bytes(&self) -> io::Result<u64> {
        let mut paths = self.segments()?;
        paths.push(self.dir.join("open.ndjson"));
        Ok(paths
            .iter()
            .filter_map(|path| fs::metadata(path).ok())
            .map(|data| data.len())
            .sum())
    }

    /// Records that wait.
    ///
    /// # Errors
    /// What the file system says.
    pub fn waiting(&self) -> io::Result<Vec<Record>> {
        let mut paths = self.segments()?;
        paths.push(self.dir.join("open.ndjson"));
        let mut records = Vec::new();
        for path in paths {
            let bytes = files::read(&path, SPOOL_FILE, files::Links::Refuse).unwrap_or_default();
            let lines = bytes.split(|b| *b == b'\n');
            records.extend(lines.filter_map(|line| Record::parse(line).ok()));
        }
        Ok(records)
    }

    /// Records of one kind that wait, for somebody who must not wait long: however much else there
    /// is, what is not found until `end` is left out. The first megabyte is always read.
    #[must_use]
    pub fn waiting_of(&self, kind: &str, end: Instant) -> Vec<Record> {
        let mut paths = self.segments().unwrap_or_default();
        paths.push(self.dir.join("open.ndjson"));
        let mark = format!("\"kind\":\"{kind}\"");
        let mut records = Vec::new();
        let (mut line, mut read) = (Vec::new(), 0);
        for path in paths {
            let Ok(file) = files::open_regular(&path, files::Links::Refuse) else {
                continue;
            };
            let mut lines = BufReader::with_capacity(READ_BYTES, file);
            while read < FREE_BYTES || Instant::now() < end {
                line.clear();
                let mut next = (&mut lines).take(record::LINE_BYTES as u64 + 1);
                match next.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(bytes) => read += bytes,
                }
                // Most lines hold something else, and looking is cheaper than reading.
                let is_one = std::str::from_utf8(&line).is_ok_and(|line| line.contains(&mark));
                let record = is_one.then(|| Record::parse(line.trim_ascii()));
                records.extend(record.and_then(Result::ok));
            }
        }
        records.retain(|record: &Record| record.item.kind == kind);
        records
    }

    /// Whether anything is there to be flushed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let open = fs::metadata(self.dir.join("open.ndjson")).map_or(0, |data| data.len());
        open == 0 && self.segments().is_ok_and(|segments| segments.is_empty())
    }

    /// The right to flush; `None` if another process has it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn lock_flush(&self) -> io::Result<Option<files::Lock>> {
        files::make_private_dir(&self.dir)?;
        files::lock(&self.dir.join("flush.lock"), Duration::ZERO)
    }

    /// Turns what was appended so far into a segment. New records go to a new file.
    fn rotate(&self) -> io::Result<()> {
        files::make_private_dir(&self.dir)?;
        files::remove_unfinished(&self.dir);
        let open = self.dir.join("open.ndjson");
        // A hook that is stopped with the lock in its hand must not stop the flush for good.
        let Some(_lock) = files::lock(&self.dir.join("lock"), Duration::from_secs(2))? else {
            return Ok(());
        };
        match fs::metadata(&open) {
            Ok(data) if data.len() > 0 => fs::rename(&open, self.segment_path()),
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// The segments, oldest first: their names hold the time.
    fn segments(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let regular = entry.file_type()?.is_file();
            if regular && name.starts_with("seg-") && name.ends_with(".ndjson") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    fn segment_path(&self) -> PathBuf {
        self.dir.join(format!("seg-{}.ndjson", Uuid::now_v7()))
    }
}

#[cfg(test)]
mod tests;
