//! Project: which one a folder belongs to, on every machine the same (contract 2.4).

mod first_commit;
mod git;
mod glob;
mod paths;
mod remote;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_wire::domain::hex::hex;
use cairn_wire::domain::limits;
use cairn_wire::events::ProjectName;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::config::Dirs;
use crate::spool::Naming;
use crate::{files, state};
use first_commit::Answer;

pub use git::Checkout;

/// The file that names a folder's project.
pub const FILE: &str = ".cairn-project";

/// Characters of the line in it.
pub const NAME_CHARS: usize = 128;

/// A folder's project, and what its records say about the checkout.
#[derive(Clone, Debug)]
pub struct Project {
    /// The key that decides and the name that people read. Of a repository that only its first
    /// commit names, and git was not asked yet, the folder's: see [`Project::unnamed`].
    pub name: ProjectName,
    /// The top folder of the checkout; the folder itself where there is none.
    pub root: PathBuf,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The checkout's root, while git must still be asked for the project's name. What leaves
    /// this machine must not carry the folder's name then: one repository is one project.
    pub unnamed: Option<String>,
    is_plain: bool,
    home: PathBuf,
}

impl Project {
    /// The project of `folder`, as far as files tell: this is quick.
    #[must_use]
    pub fn of(folder: &Path, dirs: &Dirs) -> Self {
        let folder = resolve(folder);
        let checkout = Checkout::find(&folder);
        let root = checkout.as_ref().map_or(&folder, |checkout| &checkout.root);
        let by_address =
            named_by_file(&folder, root).or_else(|| checkout.as_ref().and_then(named_by_origin));
        let found = by_address.or_else(|| {
            let checkout = checkout.as_ref()?;
            let commit = first_commit::find_kept(&checkout.common_dir, dirs)?;
            named_by_first_commit(checkout, &commit)
        });
        Self {
            unnamed: match &checkout {
                Some(_) if found.is_none() => root.to_str().map(str::to_owned),
                _ => None,
            },
            is_plain: found.is_none() && checkout.is_none(),
            name: found.unwrap_or_else(|| named_by_folder(root, dirs)),
            root: root.clone(),
            branch: checkout.as_ref().and_then(Checkout::branch),
            home: resolve(&dirs.home),
        }
    }

    /// The same project, named for good; git may take `patience`. `None` if it took longer.
    #[must_use]
    pub fn named(mut self, dirs: &Dirs, patience: Duration) -> Option<Self> {
        if let Some(root) = self.unnamed.take() {
            match name_checkout(&root, dirs, patience) {
                Naming::Project(name) => self.name = name,
                Naming::Folder => {}
                Naming::Later => return None,
            }
        }
        Some(self)
    }

    /// Whether the person has excluded `folder`, or the checkout that it is in: nothing that is
    /// done there leaves this machine.
    #[must_use]
    pub fn is_excluded(&self, folder: &Path, globs: &[String], home: &Path) -> bool {
        glob::is_excluded(folder, globs, home)
            || glob::is_excluded(&self.root, globs, home)
            || glob::is_excluded(&self.root, globs, &self.home)
    }

    /// Whether nothing but the folder itself makes it a project.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.is_plain
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
        let path = folder.join(FILE);
        let text = files::read_text(&path, files::SMALL, files::Links::Refuse).ok()?;
        let line = file_line(text.lines().next()?)?;
        project(format!("name:{line}"), line)
    })
}

/// The line of the file that names a project so; `None` if no line does.
#[must_use]
pub fn file_line(text: &str) -> Option<&str> {
    let line = text.trim();
    let is_line = !line.chars().any(|c| matches!(c, '\n' | '\r' | '\0'));
    let fits = (1..=NAME_CHARS).contains(&line.chars().count());
    (is_line && fits && project(format!("name:{line}"), line).is_some()).then_some(line)
}

fn named_by_origin(checkout: &Checkout) -> Option<ProjectName> {
    let address = remote::normalise(&checkout.origin()?)?;
    let name = address.rsplit('/').next()?.to_owned();
    project(format!("git:{address}"), &name)
}

/// The project of a checkout that only its first commit names; git may take `patience`.
#[must_use]
pub fn name_checkout(root: &str, dirs: &Dirs, patience: Duration) -> Naming {
    let Some(checkout) = Checkout::find(Path::new(root)) else {
        return Naming::Folder;
    };
    let common_dir = &checkout.common_dir;
    let answer = match first_commit::find_kept(common_dir, dirs) {
        Some(commit) => Answer::Commit(commit),
        None if !checkout.is_sound() => Answer::None,
        None => first_commit::ask(&checkout.root, common_dir, dirs, patience),
    };
    match answer {
        Answer::Commit(commit) => {
            named_by_first_commit(&checkout, &commit).map_or(Naming::Folder, Naming::Project)
        }
        Answer::None => Naming::Folder,
        Answer::Late => Naming::Later,
    }
}

/// All worktrees share the name of the main one, whose folder holds the repository.
fn named_by_first_commit(checkout: &Checkout, commit: &str) -> Option<ProjectName> {
    let main = checkout.common_dir.parent().unwrap_or(&checkout.root);
    project(format!("repo:{commit}"), &folder_name(main))
}

fn named_by_folder(root: &Path, dirs: &Dirs) -> ProjectName {
    let digest = Sha256::digest(root.to_string_lossy().as_bytes());
    let machine = state::machine_id(dirs);
    let key = format!("dir:{machine}/{}", &hex(&digest)[..16]);
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
