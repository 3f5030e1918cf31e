//! Files of the client: private folders, writes that are whole or not there, locks.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::OFlag;
use uuid::Uuid;

/// What unfinished files start with; they are worthless once their writer is gone.
const UNFINISHED: &str = ".unfinished-";

/// How long a writer may be thought to be still at work.
const UNFINISHED_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Bytes of a file that is written by hand: settings, names, what git keeps of a work tree.
pub const SMALL: u64 = 64 * 1024;

/// Bytes of a file that the client keeps for itself, and of a repository's settings, which hold a
/// section for every branch.
pub const LARGE: u64 = 1024 * 1024;

/// Whether a symbolic link may stand in a file's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// It is followed.
    Follow,
    /// It is refused: a checkout must not have other files of its reader read in its name.
    Refuse,
}

/// Reads a whole file. Only a regular file of at most `limit` bytes is read: a checkout may hold
/// anything, and a pipe or a device would never end.
///
/// # Errors
/// What the file system says; `InvalidData` for what is no such file.
pub fn read(path: &Path, limit: u64, links: Links) -> io::Result<Vec<u8>> {
    read_open(open_regular(path, links)?, limit)
}

/// [`read`] for text; a byte order mark before it is left out.
///
/// # Errors
/// As [`read`]; `InvalidData` also for what is not UTF-8.
pub fn read_text(path: &Path, limit: u64, links: Links) -> io::Result<String> {
    to_text(read(path, limit, links)?)
}

/// Reads a file that decides where keys and records go: nobody but its owner, who is the current
/// user or root, may be able to write it or its folder.
///
/// # Errors
/// As [`read_text`]; `PermissionDenied` if somebody else could have written it.
pub fn read_trusted(path: &Path) -> io::Result<String> {
    let file = open_regular(path, Links::Follow)?;
    check_owner(&file.metadata()?)?;
    check_folder(path.parent().unwrap_or(Path::new("/")))?;
    to_text(read_open(file, LARGE)?)
}

/// Whether a folder, if it is there, belongs to the current user or root alone.
///
/// # Errors
/// `PermissionDenied` if somebody else could write to it.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    match fs::metadata(folder) {
        Ok(data) => check_owner(&data),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

fn check_owner(data: &fs::Metadata) -> io::Result<()> {
    let me = nix::unistd::geteuid().as_raw();
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if data.uid() != me && data.uid() != 0 {
        return refuse("belongs to somebody else, so it is ignored");
    }
    if data.mode() & 0o022 != 0 {
        return refuse("others can write to it or its folder, so it is ignored; run: chmod go-w");
    }
    Ok(())
}

/// Opens a regular file for reading, and nothing else.
///
/// # Errors
/// What the file system says; `InvalidData` for what is no regular file.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    // Without waiting for the other end of a pipe.
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    if links == Links::Refuse {
        flags |= OFlag::O_NOFOLLOW;
    }
    // Opening a device may do something already; the check of the handle is the one that counts.
    if !fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(irregular())
    }
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "is no regular file")
}

fn read_open(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("is longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

fn to_text(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8"))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Whether files can be made in a folder at this moment.
#[must_use]
pub fn can_write(folder: &Path) -> bool {
    let probe = folder.join(format!("{UNFINISHED}{}", Uuid::now_v7()));
    let made =
        make_private_dir(folder).and_then(|()| private().write(true).create_new(true).open(&probe));
    made.and_then(|_| fs::remove_file(&probe)).is_ok()
}

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
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a program that another thread is starting holds the same open
        // file for a moment, between fork and exec, and the lock with it.
        let _ = self.0.unlock();
    }
}

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = TempDir::new().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "\u{feff}text").expect("writes");
        symlink(at("file"), at("link")).expect("links");
        symlink("/dev/zero", at("zero")).expect("links");
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let read = |name: &str, links| read_text(&at(name), 7, links).ok();
        assert_eq!(read("file", Links::Refuse).as_deref(), Some("text"));
        assert_eq!(read("link", Links::Follow).as_deref(), Some("text"));
        assert_eq!(read("link", Links::Refuse), None);
        for name in ["zero", "pipe", "nothing", "."] {
            assert_eq!(read(name, Links::Follow), None, "{name}");
        }
        assert!(read_text(&at("file"), 6, Links::Follow).is_err());
    }

    #[test]
    fn a_lock_ends_although_a_child_still_shares_the_file() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("lock");
        let take = || lock(&path, Duration::ZERO).expect("a lock file");
        let held = take().expect("free");
        let shared = held.0.try_clone().expect("shared as by a fork");
        assert!(take().is_none());
        drop(held);
        assert!(take().is_some());
        drop(shared);
    }

    #[test]
    fn what_others_can_write_is_not_trusted() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "text").expect("writes");
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        };
        set(&path, 0o600);
        assert_eq!(read_trusted(&path).expect("reads"), "text");
        set(&path, 0o620);
        assert!(read_trusted(&path).is_err());
        set(&path, 0o600);
        set(folder.path(), 0o777);
        assert!(read_trusted(&path).is_err());
    }
}
