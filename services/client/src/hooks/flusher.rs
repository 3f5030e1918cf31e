//! The flusher that a hook leaves behind: a process of its own session, so that the host can end
//! without ending it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::config::Dirs;
use crate::spool::Spool;

/// Starts a flusher unless one is at work. A start that fails is made up for by the next hook.
pub fn start(spool: &Spool, dirs: &Dirs) {
    let free = matches!(spool.lock_flush(), Ok(Some(_)));
    if free && !spool.is_empty() {
        // A process group of its own at once; its own session follows in `detach`.
        drop(spawn(dirs, 0));
    }
}

fn spawn(dirs: &Dirs, group: i32) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["flush", "--background"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Not in the host's folder: that one may be removed while the flusher runs.
    command.current_dir(&dirs.data);
    if group == 0 {
        command.process_group(0);
    }
    command.spawn().map(drop)
}

/// Takes this process out of its host's session; `false` if another process goes on instead.
///
/// The leader of a process group cannot open a session, so the leader that a hook starts hands
/// over to a child of its own, which can.
#[must_use]
pub fn detach(dirs: &Dirs) -> bool {
    nix::unistd::setsid().is_ok() || spawn(dirs, 1).is_err()
}
