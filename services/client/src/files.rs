//! Files of the client: private folders, writes that are whole or not there, locks.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

/// What unfinished files start with; they are worthless once their writer is gone.
const UNFINISHED: &str = ".unfinished-";

/// How long a writer may be thought to be still at work.
const UNFINISHED_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Makes a folder and those above it, readable by their owner alone.
///
/// # Errors
/// What the file system says.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Options for a file that its owner alone may read and write.
#[must_use]
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Replaces a file as a whole: a crash leaves the old content or the new, never a part.
///
/// # Errors
/// What the file system says.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_private_dir(folder)?;
    let unfinished = write_aside(folder, content)?;
    fs::rename(&unfinished, path).inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    sync_dir(folder)
}

/// Writes a file that must not exist yet; `false` if it does, and then it stays as it is.
///
/// # Errors
/// What the file system says.
pub fn create(path: &Path, content: &[u8]) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_private_dir(folder)?;
    let unfinished = write_aside(folder, content)?;
    // A link fails where a rename would overwrite.
    let made = fs::hard_link(&unfinished, path);
    drop(fs::remove_file(&unfinished));
    match made {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e),
    }
}

fn write_aside(folder: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let unfinished = folder.join(format!("{UNFINISHED}{}", Uuid::now_v7()));
    let mut file = private().write(true).create_new(true).open(&unfinished)?;
    file.write_all(content)?;
    file.sync_data()?;
    Ok(unfinished)
}

/// Makes changes of a folder's entries durable.
///
/// # Errors
/// What the file system says.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether a file that is open for reading ends in a newline, or is empty.
///
/// # Errors
/// What the file system says.
pub fn ends_in_newline(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Removes what writers that were killed left in a folder.
pub fn remove_unfinished(folder: &Path) {
    prune(folder, UNFINISHED, UNFINISHED_LIFE);
}

/// Removes files of a folder whose names start with `prefix` and that are older than `life`.
pub fn prune(folder: &Path, prefix: &str, life: Duration) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|data| data.modified());
        let age = age
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        let named = entry.file_name().to_string_lossy().starts_with(prefix);
        if named && age.is_some_and(|age| age > life) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// A lock file, locked. The lock ends with the value, or with the process.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Locks a file, waiting at most `patience`; `None` if somebody else holds it longer.
///
/// # Errors
/// What the file system says.
pub fn lock(path: &Path, patience: Duration) -> io::Result<Option<Lock>> {
    let file = private().create(true).append(true).open(path)?;
    let end = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(Lock(file))),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => return Ok(None),
            // Writers hold the lock for one write without a sync: well under a millisecond.
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(500)),
        }
    }
}
