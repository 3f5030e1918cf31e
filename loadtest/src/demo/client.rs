//! `cairn` with a home of its own, called as a person or a host would call it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::process::wait_for;
use crate::service::clean_environment;

/// How long the spool may take to empty.
const FLUSH_TIME: Duration = Duration::from_secs(120);

/// The client and where it keeps its files.
pub struct Client {
    program: PathBuf,
    home: PathBuf,
}

impl Client {
    /// The program `cairn` with `home` as home folder.
    #[must_use]
    pub fn new(program: PathBuf, home: PathBuf) -> Self {
        Self { program, home }
    }

    /// Signs in with a key.
    ///
    /// # Errors
    /// If the client or the service refuses.
    pub fn login(&self, url: &str, key: &str) -> anyhow::Result<()> {
        let words = ["login", "--key", "--url", url];
        self.call(&self.home, &words, key.as_bytes()).map(drop)
    }

    /// Appends events to the spool.
    ///
    /// # Errors
    /// If the client refuses.
    pub fn record(&self, checkout: &Path, items: &[Value]) -> anyhow::Result<()> {
        let lines: String = items.iter().map(|item| format!("{item}\n")).collect();
        self.call(checkout, &["record"], lines.as_bytes()).map(drop)
    }

    /// One hook call of Claude Code; answers what the hook printed.
    ///
    /// # Errors
    /// If the hook complains: a host would go on, a demo must not.
    pub fn hook(&self, checkout: &Path, event: &str, payload: &str) -> anyhow::Result<String> {
        self.call(
            checkout,
            &["hook", "claude-code", event],
            payload.as_bytes(),
        )
    }

    /// Sends what is spooled and waits until nothing is left; a flusher that a hook started may
    /// hold the spool meanwhile.
    ///
    /// # Errors
    /// If something stays or was set aside.
    pub fn flush(&self) -> anyhow::Result<()> {
        let data = self.home.join(".local/share/cairn");
        let mut failure = None;
        let empty = wait_for(FLUSH_TIME, || {
            failure = self.call(&self.home, &["flush"], b"").err();
            failure.is_some() || spool_is_empty(&data.join("spool"))
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        if !empty {
            bail!("the spool is not empty after {FLUSH_TIME:?}");
        }
        let aside = non_empty_files(&data.join("set-aside"));
        if let Some(file) = aside.first() {
            let text = fs::read_to_string(file).unwrap_or_default();
            bail!(
                "records were set aside: {}",
                text.lines().next().unwrap_or_default()
            );
        }
        Ok(())
    }

    /// A command of the client in a folder, its standard streams not yet set.
    #[must_use]
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        clean_environment(&mut command, &self.home);
        command.current_dir(folder);
        command
    }

    fn call(&self, folder: &Path, words: &[&str], input: &[u8]) -> anyhow::Result<String> {
        let what = || format!("cairn {}", words.join(" "));
        let mut command = self.command(folder);
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().with_context(what)?;
        let mut stdin = child.stdin.take().context("a piped stdin")?;
        stdin.write_all(input).with_context(what)?;
        drop(stdin);
        let output = child.wait_with_output().with_context(what)?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        // A hook ends with 0 whatever happened; what it says on stderr is all there is to see.
        let failed_hook = words.first() == Some(&"hook") && !complaint.trim().is_empty();
        if !output.status.success() || failed_hook {
            bail!("{}: {}\n{}", what(), output.status, complaint.trim_end());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn spool_is_empty(spool: &Path) -> bool {
    let lines = non_empty_files(spool);
    !lines.iter().any(|path| {
        path.extension()
            .is_some_and(|extension| extension == "ndjson")
    })
}

fn non_empty_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let filled = entries.filter(|entry| entry.metadata().is_ok_and(|m| m.is_file() && m.len() > 0));
    filled.map(|entry| entry.path()).collect()
}
