//! The folders of the private Postgres: made, locked, initialised, and cleared of what a killed
//! server left running.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use sha2::{Digest as _, Sha256};

use super::binaries::Programs;
use super::process::{Owner, Runner};
use super::{EmbeddedError, POLL};
use cairn_domain::hex::hex;

/// The longest path of a socket, without its final zero.
const SOCKET_BYTES: usize = 107;
/// `/.s.PGSQL.5432.lock`: the longest name that Postgres puts into the folder of its socket.
const SOCKET_NAME_BYTES: usize = 19;
/// How much of the end of a log is shown.
const LOG_TAIL_BYTES: usize = 2_000;
/// The file in which a server says that it runs on these data.
const NOTE: &str = "postmaster.pid";
/// Time for a left-over server to shut down, then to quit.
const ORPHAN_TIME: Duration = Duration::from_secs(30);

/// Where everything of one embedded database is.
pub(super) struct Folders {
    pub(super) data: PathBuf,
    /// Postgres's own data.
    pub(super) postgres: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) log: PathBuf,
}

impl Folders {
    /// The folders of an existing data folder.
    pub(super) fn of(data: &Path) -> Result<Self, EmbeddedError> {
        let data = data
            .canonicalize()
            .map_err(EmbeddedError::io("cannot use", data))?;
        Ok(Self {
            postgres: data.join("postgres"),
            socket: socket_folder(&data),
            log: data.join("postgres.log"),
            data,
        })
    }

    /// Makes the folders that are missing, each closed to others.
    pub(super) fn prepare(data: &Path, runner: &Runner) -> Result<Self, EmbeddedError> {
        make_private(data)?;
        let folders = Self::of(data)?;
        if let Some(owner) = &runner.owner {
            open_to(owner, &folders.data, runner)?;
        }
        folders.prepare_socket(runner)?;
        Ok(folders)
    }

    /// Keeps other servers away from the folder until the value is dropped.
    pub(super) fn lock(&self) -> Result<DataLock, EmbeddedError> {
        let path = self.data.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(EmbeddedError::io("cannot open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(DataLock(file)),
            Err(TryLockError::WouldBlock) => Err(EmbeddedError::InUse(self.data.clone())),
            Err(TryLockError::Error(error)) => Err(EmbeddedError::io("cannot lock", &path)(error)),
        }
    }

    /// The socket's folder as part of a database address.
    pub(super) fn socket_text(&self) -> Result<String, EmbeddedError> {
        match self.socket.to_str() {
            Some(text) => Ok(encode(text)),
            None => Err(EmbeddedError::Refused(format!(
                "{} is not UTF-8: choose another CAIRN_DATA",
                self.socket.display()
            ))),
        }
    }

    /// The last lines that the server wrote.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let start = log.len().saturating_sub(LOG_TAIL_BYTES);
        String::from_utf8_lossy(&log[start..]).into_owned()
    }

    /// Takes away the folder of the socket once nothing is in it any more: it may stand outside
    /// the data folder. One that is left behind does no harm.
    pub(super) fn clear_socket(&self) {
        let _ = fs::remove_dir(&self.socket);
    }

    fn remove_notes(&self) -> Result<(), EmbeddedError> {
        let socket = format!(".s.PGSQL.{}", super::PORT);
        for path in [
            self.postgres.join(NOTE),
            self.socket.join(format!("{socket}.lock")),
            self.socket.join(socket),
        ] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(EmbeddedError::io("cannot remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn prepare_socket(&self, runner: &Runner) -> Result<(), EmbeddedError> {
        make_private(&self.socket)?;
        let owner = runner.owner.as_ref();
        // The fallback stands where everybody may write: never use what somebody else made.
        let found = fs::symlink_metadata(&self.socket)
            .map_err(EmbeddedError::io("cannot use", &self.socket))?;
        let ours = [Some(Uid::effective()), owner.map(|owner| owner.uid)];
        let is_ours = ours.contains(&Some(Uid::from_raw(found.uid())));
        if !found.is_dir() || !is_ours || found.mode() & 0o077 != 0 {
            return Err(EmbeddedError::Refused(format!(
                "{} is not a private folder of ours: remove it",
                self.socket.display()
            )));
        }
        owner.map_or(Ok(()), |owner| owner.take(&self.socket))
    }
}

/// The lock of a data folder. It ends with the value, or with the process.
pub(super) struct DataLock(File);

impl Drop for DataLock {
    fn drop(&mut self) {
        // Closing is not enough: a program that is being started elsewhere in this process holds
        // the same open file for a moment, between fork and exec, and the lock with it.
        let _ = self.0.unlock();
    }
}

/// Lets the database's user pass through the folder, without seeing what else is there.
fn open_to(owner: &Owner, data: &Path, runner: &Runner) -> Result<(), EmbeddedError> {
    fs::set_permissions(data, Permissions::from_mode(0o711))
        .map_err(EmbeddedError::io("cannot open to its user", data))?;
    let mut enter = runner.command(Path::new("test"));
    if enter
        .arg("-x")
        .arg(data)
        .status()
        .is_ok_and(|status| status.success())
    {
        return Ok(());
    }
    Err(EmbeddedError::Refused(format!(
        "Postgres runs as {}, who cannot enter {}: set CAIRN_DATA to a folder that is reachable, \
         such as /var/lib/cairn",
        owner.name,
        data.display()
    )))
}

/// Inside the data folder, unless its path is too long for a socket.
fn socket_folder(data: &Path) -> PathBuf {
    let folder = data.join("run");
    if folder.as_os_str().len() + SOCKET_NAME_BYTES <= SOCKET_BYTES {
        return folder;
    }
    let digest = Sha256::digest(data.as_os_str().as_bytes());
    Path::new("/tmp").join(format!("cairn-{}", hex(&digest[..8])))
}

/// Makes a folder closed to others, unless it is there; those above it get the usual rights.
fn make_private(folder: &Path) -> Result<(), EmbeddedError> {
    let above = folder.parent().map_or(Ok(()), fs::create_dir_all);
    let made = above.and_then(|()| match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    });
    made.map_err(EmbeddedError::io("cannot make", folder))
}

fn encode(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b);
    path.bytes()
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}

/// Makes a cluster if there is none; a half-made one is never taken for a whole one.
pub(super) async fn initialise(
    folders: &Folders,
    programs: &Programs,
    runner: &Runner,
) -> Result<(), EmbeddedError> {
    if folders.postgres.exists() {
        return Ok(());
    }
    let unfinished = folders.data.join("postgres.new");
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(EmbeddedError::io("cannot remove", &unfinished)(error));
        }
        _ => {}
    }
    make_private(&unfinished)?;
    if let Some(owner) = &runner.owner {
        owner.take(&unfinished)?;
    }
    let mut initdb = runner.command(&programs.initdb);
    initdb
        .args([
            "--auth-local=trust",
            "--auth-host=reject",
            "--data-checksums",
        ])
        .args([
            "--encoding=UTF8",
            "--locale=C",
            "--username",
            super::SUPERUSER,
        ])
        .arg("-D")
        .arg(&unfinished)
        .current_dir(&folders.data)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // Started like the server, from a thread that stays until it has ended.
    let made = tokio::task::spawn_blocking(move || initdb.output())
        .await
        .expect("the task does not panic")
        .map_err(EmbeddedError::io("cannot run", &programs.initdb))?;
    if !made.status.success() {
        let words = String::from_utf8_lossy(&made.stderr);
        return Err(EmbeddedError::Failed(format!("initdb failed: {words}")));
    }
    fs::rename(&unfinished, &folders.postgres)
        .map_err(EmbeddedError::io("cannot rename", &unfinished))
}

/// Ends the server that a killed process left running on these data, and takes away the notes
/// of one that is gone: its number may long be another process's, or that of a dead child nobody
/// waits for, and Postgres would take either for the old server. Call it under the lock.
pub(super) async fn end_orphan(folders: &Folders) -> Result<(), EmbeddedError> {
    let postgres = folders.postgres.as_path();
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        let deadline = Instant::now() + ORPHAN_TIME;
        let Holder::Running(pid) = holder(postgres) else {
            break;
        };
        tracing::warn!(%pid, "ending a Postgres that an earlier server left running");
        let _ = kill(pid, signal);
        while holder(postgres) == Holder::Running(pid) && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
    }
    match holder(postgres) {
        Holder::Gone => folders.remove_notes(),
        Holder::Unknown => Ok(()),
        Holder::Running(pid) => Err(EmbeddedError::Refused(format!(
            "process {pid} is still running on {} and does not end",
            postgres.display()
        ))),
    }
}

/// Who runs on some data, as far as the note of the last server tells.
#[derive(PartialEq, Eq)]
enum Holder {
    /// No note; or its process has ended or is no server of these data.
    Gone,
    /// This system does not tell; Postgres will find out.
    Unknown,
    Running(Pid),
}

fn holder(postgres: &Path) -> Holder {
    let note = match fs::read_to_string(postgres.join(NOTE)) {
        Ok(note) => note,
        Err(error) if error.kind() == ErrorKind::NotFound => return Holder::Gone,
        Err(_) => return Holder::Unknown,
    };
    let Some(Ok(pid)) = note.lines().next().map(|line| line.trim().parse::<i32>()) else {
        return Holder::Unknown;
    };
    if !Path::new("/proc/self").exists() {
        return Holder::Unknown;
    }
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(works_in) if works_in == postgres => Holder::Running(Pid::from_raw(pid)),
        Ok(_) => Holder::Gone,
        Err(error) if error.kind() == ErrorKind::NotFound => Holder::Gone,
        Err(_) => Holder::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_gets_a_short_socket_of_its_own() {
        let short = Path::new("/var/lib/cairn");
        assert_eq!(socket_folder(short), short.join("run"));
        let long = |end: &str| PathBuf::from(format!("/{}/{end}", "d".repeat(100)));
        let (one, two) = (socket_folder(&long("1")), socket_folder(&long("2")));
        assert!(
            one.as_os_str().len() + SOCKET_NAME_BYTES <= SOCKET_BYTES,
            "{one:?}"
        );
        assert_ne!(one, two);
    }

    #[test]
    fn a_lock_ends_although_a_child_still_shares_the_file() {
        let data = tempfile::TempDir::new().expect("a folder");
        let folders = Folders::of(data.path()).expect("folders");
        let lock = folders.lock().expect("locked");
        let shared = lock.0.try_clone().expect("shared as by a fork");
        assert!(matches!(folders.lock(), Err(EmbeddedError::InUse(_))));
        drop(lock);
        assert!(folders.lock().is_ok());
        drop(shared);
    }

    #[test]
    fn paths_are_encoded_for_addresses() {
        assert_eq!(encode("/a b/ü&c?d=1"), "/a%20b/%C3%BC%26c%3Fd%3D1");
    }
}
