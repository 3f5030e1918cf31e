//! Project: which one a folder belongs to, on every machine the same (contract 2.4).

mod git;
mod glob;
mod paths;
mod remote;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cairn_wire::domain::limits;
use cairn_wire::events::ProjectName;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::config::Dirs;
use crate::state;

pub use git::Checkout;
pub use glob::is_excluded;

/// Characters of the line in a `.cairn-project` file.
const NAME_CHARS: usize = 128;

/// How long git may take to name a repository's first commit.
const GIT_PATIENCE: Duration = Duration::from_millis(600);

/// A folder's project, and what its records say about the checkout.
#[derive(Clone, Debug)]
pub struct Project {
    /// The key that decides and the name that people read.
    pub name: ProjectName,
    /// The top folder of the checkout; the folder itself where there is none.
    pub root: PathBuf,
    /// The branch that is checked out.
    pub branch: Option<String>,
    home: PathBuf,
}

impl Project {
    /// The project of `folder`.
    #[must_use]
    pub fn of(folder: &Path, dirs: &Dirs) -> Self {
        let folder = resolve(folder);
        let checkout = Checkout::find(&folder);
        let root = checkout.as_ref().map_or(&folder, |checkout| &checkout.root);
        let name = named_by_file(&folder, root)
            .or_else(|| checkout.as_ref().and_then(named_by_origin))
            .or_else(|| {
                checkout
                    .as_ref()
                    .and_then(|c| named_by_first_commit(c, dirs))
            })
            .unwrap_or_else(|| named_by_folder(root, dirs));
        Self {
            name,
            root: root.clone(),
            branch: checkout.as_ref().and_then(Checkout::branch),
            home: resolve(&dirs.home),
        }
    }

    /// Where the checkout is, the home folder as `~`.
    #[must_use]
    pub fn checkout(&self) -> String {
        paths::with_tilde(&self.root.to_string_lossy(), &self.home)
    }

    /// A file as records name it: relative to the checkout's root where it lies inside, with
    /// slashes, in NFC. `cwd` is where a relative path starts.
    #[must_use]
    pub fn file(&self, path: &str, cwd: &Path) -> String {
        paths::relative(path, &resolve(cwd), &self.root, &self.home)
    }
}

/// The folder's real path; a path of another system is only brought into one spelling.
fn resolve(folder: &Path) -> PathBuf {
    if let Some(path) = folder.to_str().and_then(paths::drive_path) {
        return PathBuf::from(path);
    }
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The project of the file's line. Without a repository only the folder itself is looked at: a
/// file far above must not claim every folder below it.
fn named_by_file(folder: &Path, root: &Path) -> Option<ProjectName> {
    let up_to_root = folder
        .ancestors()
        .take_while(|above| above.starts_with(root));
    up_to_root.into_iter().find_map(|folder| {
        let text = fs::read_to_string(folder.join(".cairn-project")).ok()?;
        let line = text.trim_start_matches('\u{feff}').lines().next()?.trim();
        let fits = (1..=NAME_CHARS).contains(&line.chars().count());
        fits.then(|| project(format!("name:{line}"), line))?
    })
}

fn named_by_origin(checkout: &Checkout) -> Option<ProjectName> {
    let address = remote::normalise(&checkout.origin()?)?;
    let name = address.rsplit('/').next()?.to_owned();
    project(format!("git:{address}"), &name)
}

/// Asks git once; the answer is kept, because a first commit never changes.
fn named_by_first_commit(checkout: &Checkout, dirs: &Dirs) -> Option<ProjectName> {
    let kept = state::kept_path(dirs, "roots", &checkout.common_dir.to_string_lossy());
    let commit = match fs::read_to_string(&kept) {
        Ok(commit) => commit,
        Err(_) => {
            let commit = find_first_commit(&checkout.root)?;
            // Without the note git is asked again: slower, not wrong.
            drop(crate::files::replace(&kept, commit.as_bytes()));
            commit
        }
    };
    // All worktrees share the name of the main one, whose folder holds the repository.
    let main = checkout.common_dir.parent().unwrap_or(&checkout.root);
    project(format!("repo:{commit}"), &folder_name(main))
}

fn find_first_commit(root: &Path) -> Option<String> {
    let mut git = Command::new("git")
        .args(["rev-list", "--max-parents=0", "HEAD"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let end = Instant::now() + GIT_PATIENCE;
    while git.try_wait().ok()?.is_none() {
        if Instant::now() >= end {
            drop(git.kill());
            drop(git.wait());
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = git.wait_with_output().ok()?;
    // Joined histories have several first commits; the oldest is printed last.
    let text = String::from_utf8(output.stdout).ok()?;
    let commit = text.lines().last()?.trim();
    let is_id = commit.len() >= 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| commit.to_owned())
}

fn named_by_folder(root: &Path, dirs: &Dirs) -> ProjectName {
    let digest = Sha256::digest(root.to_string_lossy().as_bytes());
    let machine = state::machine_id(dirs);
    let key = format!("dir:{machine}/{}", &state::hex(&digest)[..16]);
    let name = Some(folder_name(root));
    ProjectName { key, name }
}

fn folder_name(root: &Path) -> String {
    let name = root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name: String = name.unwrap_or_else(|| "/".to_owned()).nfc().collect();
    cairn_wire::domain::bounds::head_bytes(&name, limits::PROJECT_BYTES).to_owned()
}

/// A name within the service's limits; a longer key identifies nothing.
fn project(key: String, name: &str) -> Option<ProjectName> {
    let key: String = key.nfc().collect();
    let name: String = name.nfc().collect();
    (key.len() <= limits::PROJECT_BYTES).then_some(ProjectName {
        key,
        name: Some(name),
    })
}
