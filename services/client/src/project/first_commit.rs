//! First commit: what names a repository without a remote. Only git can find it, in its own time,
//! so a hook never asks; what was found is kept, because a first commit never changes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::config::Dirs;
use crate::files::{self, Links};
use crate::state;

/// What git said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The id of the first commit.
    Commit(String),
    /// There is none, or no git that could tell.
    None,
    /// Nothing in time.
    Late,
}

/// The first commit as it was found earlier.
#[must_use]
pub fn find_kept(common_dir: &Path, dirs: &Dirs) -> Option<String> {
    files::read_text(&kept_path(common_dir, dirs), files::SMALL, Links::Refuse).ok()
}

/// Asks git, for at most `patience`, and keeps what it says.
#[must_use]
pub fn ask(root: &Path, common_dir: &Path, dirs: &Dirs, patience: Duration) -> Answer {
    let mut git = Command::new("git");
    git.args(["rev-list", "--max-parents=0", "HEAD"])
        .current_dir(root);
    let answer = run(&mut git, patience);
    if let Answer::Commit(commit) = &answer {
        // Without the note git is asked again: slower, not wrong.
        drop(files::replace(
            &kept_path(common_dir, dirs),
            commit.as_bytes(),
        ));
    }
    answer
}

fn kept_path(common_dir: &Path, dirs: &Dirs) -> PathBuf {
    state::kept_path(dirs, "roots", &common_dir.to_string_lossy())
}

fn run(git: &mut Command, patience: Duration) -> Answer {
    let started = git
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return Answer::None;
    };
    match wait(&mut child, patience) {
        Ok(true) => {}
        Ok(false) | Err(_) => {
            drop(child.kill());
            drop(child.wait());
            return Answer::Late;
        }
    }
    let mut text = String::new();
    let read = child
        .stdout
        .take()
        .map(|mut pipe| pipe.read_to_string(&mut text));
    // Joined histories have several first commits; the oldest is printed last.
    let commit = text.lines().last().unwrap_or_default().trim();
    let is_id = commit.len() >= 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    match read {
        Some(Ok(_)) if is_id => Answer::Commit(commit.to_owned()),
        _ => Answer::None,
    }
}

/// Whether a process ends in time.
fn wait(child: &mut Child, patience: Duration) -> io::Result<bool> {
    let end = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() >= end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_that_takes_its_time_is_not_one_that_knows_nothing() {
        let answer = |program: &mut Command| run(program, Duration::from_millis(200));
        // Programs that stand for git: one does not end, one says nothing, one is not there.
        assert_eq!(answer(Command::new("sleep").arg("60")), Answer::Late);
        assert_eq!(answer(&mut Command::new("true")), Answer::None);
        assert_eq!(answer(&mut Command::new("/nowhere/git")), Answer::None);
        let commit = "0123456789012345678901234567890123456789";
        let first = run(Command::new("echo").arg(commit), Duration::from_secs(9));
        assert_eq!(first, Answer::Commit(commit.to_owned()));
    }
}
