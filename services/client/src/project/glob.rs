//! Globs that name folders: `*` and `?` within a segment, `**` across segments, `~` for home.

use std::path::Path;

/// Whether `folder` or one above it matches one of `globs`. A glob without a slash names a
/// folder wherever it is.
#[must_use]
pub fn is_excluded(folder: &Path, globs: &[String], home: &Path) -> bool {
    globs.iter().any(|glob| {
        let glob = match glob.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", home.display()),
            None => glob.clone(),
        };
        let glob = glob.trim_end_matches('/');
        folder.ancestors().any(|folder| {
            let whole = folder.to_string_lossy();
            match glob.contains('/') {
                true => matches(glob.as_bytes(), whole.as_bytes()),
                false => folder.file_name().is_some_and(|name| {
                    matches(glob.as_bytes(), name.to_string_lossy().as_bytes())
                }),
            }
        })
    })
}

/// Goes back to the last star only, so that time is bounded by the product of both lengths.
fn matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize, bool)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                let deep = glob.get(g + 1) == Some(&b'*');
                g += if deep { 2 } else { 1 };
                star = Some((g, t, deep));
                continue;
            }
            Some(b'?') if text[t] != b'/' => {
                g += 1;
                t += 1;
                continue;
            }
            Some(c) if *c == text[t] => {
                g += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        match star {
            Some((after, from, deep)) if deep || text[from] != b'/' => {
                star = Some((after, from + 1, deep));
                g = after;
                t = from + 1;
            }
            _ => return false,
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_below_a_named_one_are_excluded_too() {
        let excluded = |glob: &str, folder: &str| {
            is_excluded(Path::new(folder), &[glob.to_owned()], Path::new("/h"))
        };
        assert!(excluded("~/secret", "/h/secret/a/b"));
        assert!(excluded("/w/*/private", "/w/app/private"));
        assert!(excluded("/w/**/private", "/w/a/b/private/c"));
        assert!(excluded("private", "/w/private/c"));
        assert!(excluded("/w/a?c", "/w/abc"));
        assert!(!excluded("/w/*/private", "/w/a/b/private"));
        assert!(!excluded("private", "/w/privateer"));
        assert!(!excluded("~/secret", "/h/secrets"));
    }
}
