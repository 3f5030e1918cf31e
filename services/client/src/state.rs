//! State that can be lost without harm: the machine's id, notes, marks of what was told.
//!
//! Kept below `~/.local/state/cairn`; marks are pruned after seven days.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cairn_wire::domain::hex::hex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::config::Dirs;
use crate::files::{self, Links};

/// How long a mark is worth keeping.
const MARK_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Folders of marks.
const MARKS: &[&str] = &["told", "private-turns"];

/// Folders of what the service said last.
const COPIES: &[&str] = &["context-copies", "work-copies", "tool-copies", "seen"];

/// This machine's id: random, made once.
#[must_use]
pub fn machine_id(dirs: &Dirs) -> String {
    let path = dirs.state.join("machine-id");
    let read = || {
        let text = files::read_text(&path, files::SMALL, Links::Refuse).ok()?;
        Some(text.trim().to_owned()).filter(|id| Uuid::parse_str(id).is_ok())
    };
    if let Some(id) = read() {
        return id;
    }
    let id = Uuid::from_u128(rand::random()).to_string();
    // Of two processes that start at once, one makes the file and both use it.
    drop(files::create(&path, id.as_bytes()));
    read().unwrap_or(id)
}

/// Where a note about `subject` stands. Subjects may be any text; the name hides them.
#[must_use]
pub fn kept_path(dirs: &Dirs, topic: &str, subject: &str) -> PathBuf {
    let name = hex(&Sha256::digest(subject.as_bytes()))[..32].to_owned();
    dirs.state.join(topic).join(name)
}

/// Whether this was not yet said in this session; from now on it was. If the mark cannot be
/// kept, it is said again rather than never.
#[must_use]
pub fn first_time(dirs: &Dirs, session: &str, what: &str) -> bool {
    let paths = mark_paths(dirs, "told", &format!("{session}\0{what}"));
    let made = paths.iter().find_map(|path| files::create(path, b"").ok());
    made.unwrap_or(true)
}

/// What is known about the open turn of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nobody asked for privacy.
    Open,
    /// Its prompt was wholly private: nothing of it may be kept.
    Private,
    /// No mark could have been kept, so that its absence says nothing.
    Unknown,
}

/// Marks the open turn of a session as private, or as one that may be recorded. A mark that finds
/// no place beside other state finds one beside the spool; where there is none either, later
/// hooks see that themselves: [`Turn::Unknown`].
pub fn mark_turn(dirs: &Dirs, session: &str, private: bool) {
    for path in mark_paths(dirs, "private-turns", session) {
        if !private {
            // One that stays makes the turn private: too little is kept, not too much.
            drop(fs::remove_file(&path));
        } else if files::create(&path, b"").is_ok() {
            return;
        }
    }
}

/// What is known about the open turn of a session.
#[must_use]
pub fn turn(dirs: &Dirs, session: &str) -> Turn {
    let mut known = true;
    for path in mark_paths(dirs, "private-turns", session) {
        match fs::symlink_metadata(&path) {
            Ok(_) => return Turn::Private,
            Err(e) => {
                let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
                known &= absent.contains(&e.kind());
            }
        }
    }
    let paths = mark_paths(dirs, "private-turns", session);
    let mut folders = paths.iter().filter_map(|path| path.parent());
    if known && folders.any(files::can_write) {
        Turn::Open
    } else {
        Turn::Unknown
    }
}

/// Where a mark may stand: the second place is for a state folder that takes nothing.
fn mark_paths(dirs: &Dirs, topic: &str, subject: &str) -> [PathBuf; 2] {
    let first = kept_path(dirs, topic, subject);
    let beside = Dirs {
        state: dirs.data.join("marks"),
        ..dirs.clone()
    };
    [first, kept_path(&beside, topic, subject)]
}

/// Removes marks and copies that are over their time.
pub fn prune(dirs: &Dirs) {
    for topic in MARKS.iter().chain(COPIES) {
        for folder in [dirs.state.clone(), dirs.data.join("marks")] {
            files::prune(&folder.join(topic), "", MARK_LIFE);
        }
    }
}
