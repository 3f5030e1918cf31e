//! `cairn-server` as a process of ours: the whole of it in one, or one replica over given stores.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::Signal;

use crate::process::Running;

/// Making a database from nothing takes seconds; a busy machine, many.
const START_TIME: Duration = Duration::from_secs(120);

/// A service with its own database, its address and its first key.
pub struct EmbeddedService {
    /// Its address.
    pub url: String,
    /// The key of the owner of its only tenant.
    pub key: String,
    _running: Running,
}

impl EmbeddedService {
    /// Starts it with its data in `folder`, which it must be able to make or enter.
    ///
    /// # Errors
    /// If it does not say its address and key; the error shows the end of its log.
    pub fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        // The owner of the first tenant is named after the home folder.
        clean_environment(&mut command, &folder.join("demo"));
        command.arg("serve").env("CAIRN_LISTEN", "127.0.0.1:0");
        command
            .env("CAIRN_EMBEDDED", "true")
            .env("CAIRN_DATA", folder.join("data"));
        // One key stands for many people: it may go as fast as the service does.
        for rate in ["CAIRN_RATE_REQUESTS", "CAIRN_RATE_EVENTS"] {
            command.env(rate, "1000000000");
        }
        command.current_dir(folder).stdout(Stdio::piped());
        let mut running = Running::start("cairn-server", &mut command, folder, Signal::SIGTERM)?;
        let lines = read_lines(&mut running);
        let (mut url, mut key) = (None, None);
        running.wait_until(START_TIME, || {
            for line in lines.try_iter() {
                url = url.take().or_else(|| find_url(&line));
                key = key.take().or_else(|| find_key(&line));
            }
            url.is_some() && key.is_some()
        })?;
        let (url, key) = url
            .zip(key)
            .context("the service named no address or key")?;
        Ok(Self {
            url,
            key,
            _running: running,
        })
    }
}

/// The environment of a program that must not see this machine's settings for Cairn.
pub fn clean_environment(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home);
    for name in ["PATH", "LANG", "TZ", "CAIRN_PG_BIN", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// The lines that a program prints; reading goes on so that it never waits for its reader.
fn read_lines(running: &mut Running) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = running.stdout() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
    }
    receiver
}

fn find_url(line: &str) -> Option<String> {
    let (_, url) = line.split_once("listens on ")?;
    Some(url.trim().to_owned())
}

fn find_key(line: &str) -> Option<String> {
    let word = line.trim();
    (word.starts_with("cairn_") && !word.contains(' ')).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_key_are_read_from_the_welcome() {
        let welcome = "Cairn listens on http://127.0.0.1:4\n\nYour key, shown this once:\n  \
                       cairn_a_b\n\nConnect this machine:\n  echo cairn_a_b | cairn login";
        assert_eq!(
            welcome.lines().find_map(find_url).as_deref(),
            Some("http://127.0.0.1:4")
        );
        assert_eq!(
            welcome.lines().find_map(find_key).as_deref(),
            Some("cairn_a_b")
        );
    }
}
