//! The client's log: a line for each thing that went wrong where nobody was looking.
//!
//! Two files of at most 5 MiB; no memory text and no secret is ever written here.

use std::fs;
use std::io::Write;

use cairn_wire::domain::redact::safe;
use chrono::Utc;

use crate::config::Dirs;
use crate::files;

/// Size from which a new file is begun.
const FILE_BYTES: u64 = 5 * 1024 * 1024;

/// Writes a line. A log that cannot be written stops nothing.
pub fn line(dirs: &Dirs, text: &str) {
    let path = dirs.state.join("cairn.log");
    if fs::metadata(&path).is_ok_and(|data| data.len() > FILE_BYTES) {
        drop(fs::rename(&path, dirs.state.join("cairn.log.1")));
    }
    let now = cairn_wire::time::text(Utc::now());
    // What went wrong may be told in the words of what it went wrong with.
    let line = format!("{now} {}\n", safe(text).replace('\n', " "));
    drop(files::make_private_dir(&dirs.state).and_then(|()| {
        files::private()
            .create(true)
            .append(true)
            .open(&path)?
            .write_all(line.as_bytes())
    }));
}
