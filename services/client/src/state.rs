//! State that can be lost without harm: the machine's id, notes, marks of what was told.
//!
//! Kept below `~/.local/state/cairn`; marks are pruned after seven days.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::config::Dirs;
use crate::files;

/// How long a mark is worth keeping.
const MARK_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Folders of marks.
const MARKS: &[&str] = &["told", "private-turns"];

/// This machine's id: random, made once.
#[must_use]
pub fn machine_id(dirs: &Dirs) -> String {
    let path = dirs.state.join("machine-id");
    let read = || {
        let text = fs::read_to_string(&path).ok()?;
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
    let path = kept_path(dirs, "told", &format!("{session}\0{what}"));
    files::create(&path, b"").unwrap_or(true)
}

/// Marks the open turn of a session as private, or as one that may be recorded.
///
/// # Errors
/// What the file system says.
pub fn mark_private_turn(dirs: &Dirs, session: &str, private: bool) -> std::io::Result<()> {
    let path = kept_path(dirs, "private-turns", session);
    match private {
        true => files::create(&path, b"").map(drop),
        false if path.exists() => fs::remove_file(&path),
        false => Ok(()),
    }
}

/// Whether the open turn of a session is private.
#[must_use]
pub fn is_private_turn(dirs: &Dirs, session: &str) -> bool {
    kept_path(dirs, "private-turns", session).exists()
}

/// Removes marks that are over their time.
pub fn prune(dirs: &Dirs) {
    for topic in MARKS {
        files::prune(&dirs.state.join(topic), "", MARK_LIFE);
    }
}

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
