//! The client's log: a line for each thing that went wrong where nobody was looking.
//!
//! Two files of at most 5 MiB; no memory text and no key is ever written here.

use std::fs;
use std::io::Write;

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
    let line = format!("{now} {}\n", text.replace('\n', " "));
    drop(files::make_private_dir(&dirs.state).and_then(|()| {
        files::private()
            .create(true)
            .append(true)
            .open(&path)?
            .write_all(line.as_bytes())
    }));
}
