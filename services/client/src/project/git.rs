//! A git checkout as its files describe it, read by hand: a hook has no time for a `git` process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, Links};

/// Files of a repository that git reads on its way to the first commit.
const READ_BY_GIT: &[&str] = &[
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "info/grafts",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];

/// A checkout: a work tree and the repository behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The top folder of the work tree.
    pub root: PathBuf,
    /// The folder of this work tree's own state.
    git_dir: PathBuf,
    /// The folder that all work trees of the repository share.
    pub common_dir: PathBuf,
}

impl Checkout {
    /// The checkout that `folder` lies in.
    #[must_use]
    pub fn find(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    fn at(root: &Path) -> Option<Self> {
        let dot_git = root.join(".git");
        let git_dir = if dot_git.is_dir() {
            dot_git
        } else {
            // A worktree's or a submodule's `.git` is a file that names the folder.
            let text = small(&dot_git)?;
            root.join(text.trim().strip_prefix("gitdir:")?.trim())
        };
        if !git_dir.join("HEAD").is_file() {
            return None;
        }
        let common = small(&git_dir.join("commondir"));
        let common = common.map_or_else(|| git_dir.clone(), |path| git_dir.join(path.trim()));
        Some(Self {
            root: root.to_owned(),
            common_dir: fs::canonicalize(&common).unwrap_or(common),
            git_dir,
        })
    }

    /// The branch that is checked out; `None` if none is.
    #[must_use]
    pub fn branch(&self) -> Option<String> {
        let head = small(&self.git_dir.join("HEAD"))?;
        Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
    }

    /// The address of the remote `origin`.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        find_origin(&self.config().ok()?)
    }

    /// Whether git may be let loose on the repository. It reads such files whole, and would wait
    /// for a pipe for ever or read a device to the last byte of memory.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_sound = |path: PathBuf| match fs::metadata(path) {
            Ok(data) => data.is_file(),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        };
        let branch = self.branch().map(|branch| format!("refs/heads/{branch}"));
        let names = READ_BY_GIT.iter().copied().chain(branch.as_deref());
        let paths = names.flat_map(|name| [&self.git_dir, &self.common_dir].map(|d| d.join(name)));
        paths.into_iter().all(is_sound)
    }

    fn config(&self) -> io::Result<String> {
        files::read_text(&self.common_dir.join("config"), files::LARGE, Links::Follow)
    }
}

/// A short file of git's. Tools that share a repository make links of these.
fn small(path: &Path) -> Option<String> {
    files::read_text(path, files::SMALL, Links::Follow).ok()
}

/// The first `url` of `[remote "origin"]` in git's configuration format.
fn find_origin(config: &str) -> Option<String> {
    let mut in_origin = false;
    let joined = config.replace("\\\r\n", "").replace("\\\n", "");
    for line in joined.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let (header, after) = rest.split_once(']')?;
            in_origin = is_origin(header);
            line = after.trim();
        }
        if !in_origin {
            continue;
        }
        if let Some((name, value)) = line.split_once('=')
            && name.trim().eq_ignore_ascii_case("url")
        {
            return Some(parse_value(value.trim()));
        }
    }
    None
}

/// `remote "origin"`: the section's name without case, the remote's name as it is.
fn is_origin(header: &str) -> bool {
    let parts = header.trim().split_once(char::is_whitespace);
    parts.is_some_and(|(section, name)| {
        section.eq_ignore_ascii_case("remote") && name.trim() == "\"origin\""
    })
}

/// A value without quotes, escapes and comment.
fn parse_value(text: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => value.extend(chars.next()),
            '#' | ';' if !quoted => break,
            c => value.push(c),
        }
    }
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = a:b\n\tfetch = x\n")]
    #[case::other_remote_first("[remote \"up\"]\nurl = no\n[Remote \"origin\"]\nURL=a:b # why\n")]
    #[case::quoted("[remote \"origin\"]\n url = \"a:b\" ; why\n")]
    #[case::one_line("[remote \"origin\"] url = a:b")]
    #[case::continued("[remote \"origin\"]\nurl = a:\\\nb\n")]
    #[case::two_urls("[remote \"origin\"]\nurl = a:b\nurl = c:d\n")]
    fn the_origin_is_found_in_git_s_own_format(#[case] config: &str) {
        assert_eq!(find_origin(config).as_deref(), Some("a:b"));
    }

    #[test]
    fn another_section_is_not_the_origin() {
        for config in [
            "",
            "[remote \"Origin\"]\nurl = x",
            "[branch \"origin\"]\nurl = x",
        ] {
            assert_eq!(find_origin(config), None);
        }
    }
}
