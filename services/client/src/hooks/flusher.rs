//! The flusher that a hook or a call leaves behind: a process of its own session, so that the host can end
//! without ending it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::config::Dirs;
use crate::spool::Spool;

/// Starts a flusher unless one is at work. A start that fails is made up for by the next hook.
pub fn start(spool: &Spool, dirs: &Dirs) {
    // Most calls find nothing waiting, and leave the lock to those who need it.
    if !spool.is_empty() && matches!(spool.lock_flush(), Ok(Some(_))) {
        // A process group of its own at once; its own session follows in `detach`.
        drop(flush(dirs).and_then(|mut flush| flush.process_group(0).spawn()));
    }
}

/// A flush in the background, ready to start.
fn flush(dirs: &Dirs) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["flush", "--background"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Not in the host's folder: that one may be removed while the flusher runs.
    command.current_dir(&dirs.data);
    Ok(command)
}

/// Takes this process out of its host's session; `false` if another process goes on instead.
///
/// The leader of a process group cannot open a session, so the leader that a hook starts hands
/// over to a child of its own, which can.
#[must_use]
pub fn detach(dirs: &Dirs) -> bool {
    nix::unistd::setsid().is_ok() || flush(dirs).and_then(|mut flush| flush.spawn()).is_err()
}
