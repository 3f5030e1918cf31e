//! Segment: a file of records that a flush works through.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::SPOOL_FILE;
use super::aside::Entry;
use super::record::{Item, Record};
use super::service::{Addressee, Naming};
use crate::files;

/// The lines of one segment; a line that is dealt with is gone.
pub struct Segment {
    path: PathBuf,
    lines: Vec<Option<Line>>,
    changed: bool,
}

struct Line {
    bytes: Vec<u8>,
    /// What to send; `None` for a record that is for somebody else, or not to be sent yet.
    record: Option<Record>,
}

impl Segment {
    /// Reads a segment; lines that cannot be read come back beside it. `name` is asked for the
    /// project of a checkout.
    pub fn read(
        path: &Path,
        to: &Addressee,
        name: &dyn Fn(&str) -> Naming,
    ) -> io::Result<(Self, Vec<Entry>)> {
        let bytes = files::read(path, SPOOL_FILE, files::Links::Refuse)?;
        let mut lines = Vec::new();
        let mut unreadable = Vec::new();
        let mut renamed = false;
        for line in bytes
            .split(|b| *b == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
        {
            match Record::parse(line) {
                Ok(record) => {
                    let line = Line::of(record, line, to, name);
                    renamed |= line.1;
                    lines.push(Some(line.0));
                }
                Err(reason) => unreadable.push(Entry {
                    line: String::from_utf8_lossy(line).into_owned(),
                    reason: reason.to_owned(),
                    code: None,
                    version: None,
                }),
            }
        }
        let segment = Self {
            path: path.to_owned(),
            // A line that could not be read leaves with the next rewriting.
            changed: renamed || !unreadable.is_empty() || lines.is_empty(),
            lines,
        };
        Ok((segment, unreadable))
    }

    /// Places of the records to send, in order. Of several with one event id the first is sent.
    pub fn pending(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let places = self.lines.iter().enumerate();
        let pending = places.filter_map(|(place, line)| {
            let record = line.as_ref()?.record.as_ref()?;
            seen.insert(record.item.event_id.as_str()).then_some(place)
        });
        pending.collect()
    }

    /// The item at a place.
    pub fn item(&self, place: usize) -> Option<&Item> {
        let record = self.lines.get(place)?.as_ref()?.record.as_ref()?;
        Some(&record.item)
    }

    /// Bytes of the line at a place.
    pub fn size(&self, place: usize) -> usize {
        let line = self.lines.get(place).and_then(Option::as_ref);
        line.map_or(0, |line| line.bytes.len())
    }

    /// The line at a place.
    pub fn text(&self, place: usize) -> String {
        let line = self.lines.get(place).and_then(Option::as_ref);
        line.map(|line| String::from_utf8_lossy(&line.bytes).into_owned())
            .unwrap_or_default()
    }

    /// Drops every record with this event id that is for the addressee.
    pub fn remove(&mut self, event_id: &str) {
        for line in &mut self.lines {
            let record = line.as_ref().and_then(|line| line.record.as_ref());
            if record.is_some_and(|record| record.item.event_id == event_id) {
                *line = None;
                self.changed = true;
            }
        }
    }

    /// Cuts the texts of a record to `limit` bytes; whether anything changed.
    pub fn shorten(&mut self, place: usize, limit: usize) -> bool {
        let Some(Some(line)) = self.lines.get_mut(place) else {
            return false;
        };
        let Some(record) = &mut line.record else {
            return false;
        };
        let changed = record.shorten(limit);
        if changed {
            line.bytes = to_bytes(record);
            self.changed = true;
        }
        changed
    }

    /// Brings the file to what is left; without lines it is removed.
    pub fn save(&mut self) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for line in self.lines.iter().flatten() {
            bytes.extend_from_slice(&line.bytes);
            bytes.push(b'\n');
        }
        self.changed = false;
        if bytes.is_empty() {
            return fs::remove_file(&self.path);
        }
        files::replace(&self.path, &bytes)
    }
}

impl Line {
    /// A record's line, and whether it is another one now than in the file.
    fn of(
        mut record: Record,
        bytes: &[u8],
        to: &Addressee,
        name: &dyn Fn(&str) -> Naming,
    ) -> (Self, bool) {
        let mut line = Self {
            bytes: bytes.to_vec(),
            record: None,
        };
        if !to.is_for(&record) {
            return (line, false);
        }
        let claimed = to.claim(&mut record);
        if claimed {
            line.bytes = to_bytes(&record);
        }
        let naming = record.checkout_root.as_deref().map(name);
        let renamed = match naming {
            Some(Naming::Later) => return (line, claimed),
            Some(Naming::Project(project)) => {
                record.item.project = Some(project);
                true
            }
            Some(Naming::Folder) => true,
            None => false,
        };
        if renamed {
            record.checkout_root = None;
            line.bytes = to_bytes(&record);
        }
        line.record = Some(record);
        (line, claimed || renamed)
    }
}

fn to_bytes(record: &Record) -> Vec<u8> {
    record.line().trim_end().as_bytes().to_vec()
}
