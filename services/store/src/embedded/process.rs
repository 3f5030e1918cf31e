//! The Postgres process: as whom it runs, that it dies with us, and how it is asked to end.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User};
use tokio::sync::watch;

use super::EmbeddedError;
use super::binaries::Programs;
use super::cluster::Folders;

/// Time to stop where nobody waits: a fast shutdown writes a checkpoint.
pub(super) const SHUTDOWN_TIME: Duration = Duration::from_secs(30);

/// Settings of a small, durable, private server. What makes commits durable is set although it
/// is the default: a changed configuration file must not switch it off.
const SETTINGS: [&str; 14] = [
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    "max_connections=40",
    "shared_buffers=64MB",
    "max_wal_size=256MB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "jit=off",
    "logging_collector=off",
    "log_checkpoints=off",
    "log_line_prefix=%m [%p] ",
];

/// Postgres refuses to run as root, so root runs it as somebody else.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    /// A program with arguments that runs the command behind it.
    wrapper: Vec<OsString>,
    /// Whom the database's folders must belong to, if not to us.
    pub(super) owner: Option<Owner>,
}

/// The unprivileged user that root lends the database to.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) uid: Uid,
    gid: Gid,
}

impl Owner {
    /// Hands a folder or file to this user.
    pub(super) fn take(&self, path: &Path) -> Result<(), EmbeddedError> {
        std::os::unix::fs::chown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
            .map_err(EmbeddedError::io("cannot hand over", path))
    }
}

impl Runner {
    /// Finds out who we are and how commands are started.
    pub(super) fn detect() -> Result<Self, EmbeddedError> {
        let owner = if Uid::effective().is_root() {
            Some(unprivileged_user()?)
        } else {
            None
        };
        let mut wrapper: Vec<OsString> = vec!["setpriv".into(), "--pdeathsig=INT".into()];
        if let Some(owner) = &owner {
            wrapper.push(format!("--reuid={}", owner.uid).into());
            wrapper.push(format!("--regid={}", owner.gid).into());
            wrapper.push("--clear-groups".into());
        }
        wrapper.push("--".into());
        let runner = Self { wrapper, owner };
        let works = runner
            .command(Path::new("true"))
            .stderr(Stdio::null())
            .status();
        match (works.is_ok_and(|status| status.success()), &runner.owner) {
            (true, _) => Ok(runner),
            (false, Some(owner)) => Err(EmbeddedError::Refused(format!(
                "Postgres cannot run as root, and setpriv (package util-linux) cannot run it as \
                 {}: start the server as an ordinary user",
                owner.name
            ))),
            // Without the program Postgres still runs; after a kill the next start ends it.
            (false, None) => Ok(Self {
                wrapper: Vec::new(),
                owner: None,
            }),
        }
    }

    /// A command that will run as the right user, deaf to the terminal's signals and to settings
    /// of other Postgres clients.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut words = self.wrapper.iter().map(OsString::as_os_str);
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
            None => Command::new(program),
        };
        for name in [
            "PGDATA",
            "PGHOST",
            "PGPORT",
            "PGUSER",
            "PGDATABASE",
            "PGOPTIONS",
        ] {
            command.env_remove(name);
        }
        command
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::null());
        command
    }
}

fn unprivileged_user() -> Result<Owner, EmbeddedError> {
    let known = ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| User::from_name(name).ok().flatten());
    let user = known.ok_or_else(|| {
        EmbeddedError::Refused("there is no user postgres or nobody to run Postgres as".to_owned())
    })?;
    Ok(Owner {
        name: user.name,
        uid: user.uid,
        gid: user.gid,
    })
}

/// A started server. Dropping it asks it to end, without waiting.
pub(super) struct Postgres {
    pid: Pid,
    has_ended: watch::Receiver<bool>,
}

impl Postgres {
    /// Starts the server. It is not yet ready to answer.
    pub(super) fn spawn(
        folders: &Folders,
        programs: &Programs,
        runner: &Runner,
    ) -> Result<Self, EmbeddedError> {
        let log = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&folders.log)
            .map_err(EmbeddedError::io("cannot write", &folders.log))?;
        let mut command = runner.command(&programs.postgres);
        command.arg("-D").arg(&folders.postgres);
        command.arg("-k").arg(&folders.socket);
        command.arg("-p").arg(super::PORT.to_string());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command
            .current_dir(&folders.data)
            .stdout(Stdio::null())
            .stderr(log);
        let (started, pid) = std::sync::mpsc::channel();
        let (end, has_ended) = watch::channel(false);
        // The signal at our death is sent when the thread that started the child ends: so that
        // thread stays until the child has ended.
        std::thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || match command.spawn() {
                Ok(mut child) => {
                    let _ = started.send(Ok(child.id()));
                    let _ = child.wait();
                    end.send_replace(true);
                }
                Err(error) => drop(started.send(Err(error))),
            })
            .map_err(EmbeddedError::io("cannot start", &programs.postgres))?;
        let pid = pid
            .recv()
            .expect("the thread answers before it ends")
            .map_err(EmbeddedError::io("cannot start", &programs.postgres))?;
        let pid = Pid::from_raw(i32::try_from(pid).expect("process ids fit"));
        Ok(Self { pid, has_ended })
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        let mut has_ended = self.has_ended.clone();
        // An error means that the thread is gone, and with it the process.
        let _ = has_ended.wait_for(|ended| *ended).await;
    }

    /// Ends connections, writes a checkpoint, ends; less politely if most of the time is over.
    pub(super) async fn stop(self, patience: Duration) {
        for (signal, part) in [(Signal::SIGINT, 0.8), (Signal::SIGQUIT, 0.2)] {
            self.signal(signal);
            let patience = patience.mul_f32(part);
            if tokio::time::timeout(patience, self.ended()).await.is_ok() {
                return;
            }
        }
        self.signal(Signal::SIGKILL);
        self.ended().await;
    }

    fn signal(&self, signal: Signal) {
        // Until the thread has seen the end, the number is still this child's.
        if !*self.has_ended.borrow() {
            let _ = kill(self.pid, signal);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.signal(Signal::SIGINT);
    }
}
