//! Paths of files as records name them. Pure text: nothing here asks the file system, except
//! that two spellings of an existing folder are one.

use std::fs;
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

/// A path with a drive letter in its one spelling: `c:/git/app`. `None` for any other path.
#[must_use]
pub fn drive_path(path: &str) -> Option<String> {
    let bytes = path.as_bytes();
    let is_drive = bytes.first()?.is_ascii_alphabetic()
        && bytes.get(1) == Some(&b':')
        && matches!(bytes.get(2), Some(b'/' | b'\\'));
    is_drive.then(|| {
        format!(
            "{}{}",
            path[..1].to_lowercase(),
            path[1..].replace('\\', "/")
        )
    })
}

/// `path` with the home folder written as `~`.
#[must_use]
pub fn with_tilde(path: &str, home: &Path) -> String {
    let home = home.to_string_lossy();
    match path.strip_prefix(home.trim_end_matches('/')) {
        Some(rest) if home.len() > 1 && (rest.is_empty() || rest.starts_with('/')) => {
            format!("~{rest}")
        }
        _ => path.to_owned(),
    }
}

/// `path` relative to `root` if it lies inside; else whole, with the home folder as `~`. A
/// relative path starts at `cwd`.
#[must_use]
pub fn relative(path: &str, cwd: &Path, root: &Path, home: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let root = root.to_string_lossy();
    let whole = match drive_path(path) {
        Some(path) => path,
        None if path.starts_with('/') => path.to_owned(),
        None if drive_path(&cwd).is_some() => format!("{cwd}/{}", path.replace('\\', "/")),
        None => format!("{cwd}/{path}"),
    };
    let whole = without_dots(&whole);
    let inside = strip_root(&whole, &root).map(str::to_owned);
    let inside = inside.or_else(|| strip_root(&real(&whole)?, &root).map(str::to_owned));
    let named = inside.unwrap_or_else(|| with_tilde(&whole, home));
    named.nfc().collect()
}

/// The rest of `path` below `root`. Drive letters stand for file systems that ignore case.
fn strip_root<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let root = root.trim_end_matches('/');
    let head = path.get(..root.len())?;
    let same = head == root || (drive_path(root).is_some() && head.eq_ignore_ascii_case(root));
    let rest = path[root.len()..].strip_prefix('/')?;
    (same && !rest.is_empty()).then_some(rest)
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let lead = if path.starts_with('/') { "/" } else { "" };
    format!("{lead}{}", kept.join("/"))
}

/// The path with its folder's symbolic links followed.
fn real(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let folder = fs::canonicalize(folder).ok()?;
    Some(folder.join(name).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/w/app/src/a.rs", "src/a.rs")]
    #[case("/w/app/src/../b.rs", "b.rs")]
    #[case("a.rs", "src/a.rs")]
    #[case("/w/application/a.rs", "/w/application/a.rs")]
    #[case("/h/dev/notes.md", "~/notes.md")]
    #[case("/w/app/cafe\u{301}.ts", "caf\u{e9}.ts")]
    fn files_are_named_from_the_checkout_root(#[case] path: &str, #[case] want: &str) {
        let [cwd, root, home] = ["/w/app/src", "/w/app", "/h/dev"].map(Path::new);
        assert_eq!(relative(path, cwd, root, home), want);
    }

    #[rstest]
    #[case("c:\\git\\app\\SRC\\Main.cs")]
    #[case("C:/Git/App/SRC/Main.cs")]
    #[case("SRC\\Main.cs")]
    fn c062_drive_letters_and_slashes_do_not_matter(#[case] path: &str) {
        let root = Path::new("c:/git/app");
        assert_eq!(relative(path, root, root, Path::new("/h")), "SRC/Main.cs");
    }

    #[test]
    fn c062_one_folder_on_a_drive_has_one_spelling() {
        for path in ["C:\\git\\app", "c:\\git\\app", "C:/git/app"] {
            assert_eq!(drive_path(path).as_deref(), Some("c:/git/app"));
        }
        assert_eq!(drive_path("/mnt/c"), None);
    }
}
