//! Other programs: run to their end, or kept running and stopped with us; and the folder that
//! all of them work in.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long a program may take to end when it is asked to.
const STOP_TIME: Duration = Duration::from_secs(15);
/// How often a condition is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(50);

/// A folder that is gone at the end, with every program that still works in it.
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes the folder. Others may pass through it: a database may have to run as another user.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("cairn-loadtest.").tempdir();
        let folder = folder.context("making a temporary folder")?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a folder inside.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    /// Ends what was started with a home in this folder and outlived its starter, such as a
    /// flusher that still waits for the service.
    fn drop(&mut self) {
        let mark = self.path().as_os_str().as_encoded_bytes().to_vec();
        for pid in processes_with(&mark) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

/// The other processes whose environment holds `mark`.
fn processes_with(mark: &[u8]) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let marked = environment.windows(mark.len()).any(|window| window == mark);
        (marked && pid != std::process::id()).then(|| i32::try_from(pid).ok().map(Pid::from_raw))?
    });
    others.collect()
}

/// A program that runs until this value is dropped.
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
    stop: Signal,
}

impl Running {
    /// Starts a program; what it complains about goes to `<folder>/<name>.log`. `stop` is the
    /// signal that ends it in good order.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        name: &str,
        command: &mut Command,
        folder: &Path,
        stop: Signal,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let child = command.stdin(Stdio::null()).stderr(file).spawn();
        let child = child.with_context(|| format!("starting {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
            stop,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, once, if it was piped.
    pub fn stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits until `ready` holds.
    ///
    /// # Errors
    /// If the program ends or `time` is over first; the error shows the end of its log.
    pub fn wait_until(
        &mut self,
        time: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended ({status}):\n{}", self.name, self.log_end());
            }
            if began.elapsed() > time {
                bail!(
                    "{} is not ready after {time:?}:\n{}",
                    self.name,
                    self.log_end()
                );
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// The last lines of what it complained about.
    #[must_use]
    pub fn log_end(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), self.stop);
        }
        let began = Instant::now();
        while began.elapsed() < STOP_TIME {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end and answers what it printed.
///
/// # Errors
/// If it cannot be started or does not end with 0; the error holds its complaint.
pub fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("running {name}"))?;
    if !output.status.success() {
        // The first words say what was asked; the rest may be pages of values.
        let words: Vec<_> = command
            .get_args()
            .take(6)
            .map(|a| a.to_string_lossy())
            .collect();
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{name} {}: {}\n{}",
            words.join(" "),
            output.status,
            complaint.trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until `done` holds; `false` if `time` is over first.
pub fn wait_for(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > time {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}

/// A program that was built beside this one.
///
/// # Errors
/// If it was not.
pub fn built(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("finding this program")?;
    let path = own.with_file_name(name);
    if !path.is_file() {
        bail!("{} is missing; build it first", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted() {
        let failing = &mut Command::new("sh");
        let error = output_of(failing.args(["-c", "echo because >&2; exit 3"])).expect_err("fails");
        assert!(error.to_string().contains("because"), "{error}");
    }

    #[test]
    fn what_works_in_a_scratch_folder_ends_with_it() {
        let scratch = Scratch::new().expect("made");
        let mut child = Command::new("sleep");
        let mut child = child
            .arg("600")
            .env("HOME", scratch.path())
            .spawn()
            .expect("started");
        assert!(wait_for(Duration::from_secs(5), || {
            !processes_with(scratch.path().as_os_str().as_encoded_bytes()).is_empty()
        }));
        drop(scratch);
        assert!(!child.wait().expect("ended").success());
    }

    #[test]
    fn a_running_program_is_stopped_and_its_log_is_kept_until_then() {
        let scratch = Scratch::new().expect("made");
        let mut command = Command::new("sh");
        command.args(["-c", "echo hello >&2; exec sleep 600"]);
        let mut running =
            Running::start("sleeper", &mut command, scratch.path(), Signal::SIGTERM).expect("runs");
        let log = scratch.path().join("sleeper.log");
        let logged = || fs::read(&log).is_ok_and(|text| text == b"hello\n");
        running
            .wait_until(Duration::from_secs(5), logged)
            .expect("logs");
        let pid = Pid::from_raw(i32::try_from(running.child.id()).expect("small"));
        assert_eq!(running.log_end(), "hello");
        drop(running);
        assert!(kill(pid, None).is_err(), "it still runs");
    }
}
