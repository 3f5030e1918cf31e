//! Filter: which records are wanted, of a list and of a search alike (contract 10.1). Filters
//! narrow; none of them widens what its reader may see.

use chrono::{DateTime, Utc};
use unicode_normalization::UnicodeNormalization;

use crate::bounds::clean;
use crate::ids::RecordKind;
use crate::observation::{Concept, ObservationType};

/// Conditions on records beside the words; an empty one lets all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of one of these kinds.
    pub kinds: Vec<RecordKind>,
    /// An observation of one of these types.
    pub types: Vec<ObservationType>,
    /// An observation with any of these concepts.
    pub concepts: Vec<Concept>,
    /// An observation about one of these: a file by any suffix of segments, or a folder above it.
    /// Each as [`file_path`] has it.
    pub files: Vec<String>,
    /// By one author.
    pub author: Option<ByAuthor>,
    /// Of a session, by the host's id of it, alone or behind the host's name and `/`.
    pub session: Option<String>,
    /// Not before this moment.
    pub from: Option<DateTime<Utc>>,
    /// Before this moment.
    pub until: Option<DateTime<Utc>>,
}

impl Filter {
    /// Whether it lets everything pass.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whose records are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByAuthor {
    /// The caller's own.
    Me,
    /// Those of this handle, or `key:<key id>`.
    Named(String),
}

impl ByAuthor {
    /// Reads a handle; `me` means the caller.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text {
            "me" => Self::Me,
            handle => Self::Named(handle.to_owned()),
        }
    }
}

/// A file's path as records keep it: its segments between slashes, none before the first, NFC.
#[must_use]
pub fn file_path(path: &str) -> String {
    let path = clean(path.trim().replace('\\', "/"));
    let path = path.trim_start_matches("./").trim_matches('/');
    path.nfc().collect()
}

/// The spellings in which records may hold a path: not every client composes letters with their
/// marks. None for a path that names nothing.
pub fn file_spellings(path: &str) -> impl Iterator<Item = String> {
    let composed = file_path(path);
    let decomposed: String = composed.nfd().collect();
    let other = (decomposed != composed).then_some(decomposed);
    let spellings = std::iter::once(composed).chain(other);
    spellings.filter(|spelling| !spelling.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_compared_without_its_root() {
        for (text, same) in [
            ("src/net/retry.ts", "src/net/retry.ts"),
            ("./src\\net/", "src/net"),
            ("/retry.ts", "retry.ts"),
            ("caf\u{65}\u{301}.ts", "caf\u{e9}.ts"),
        ] {
            assert_eq!(file_path(text), same);
        }
    }

    #[test]
    fn a_path_has_every_spelling() {
        let all = |path| file_spellings(path).collect::<Vec<_>>();
        assert_eq!(all("caf\u{e9}.ts"), ["caf\u{e9}.ts", "cafe\u{301}.ts"]);
        assert_eq!(all("./a.ts"), ["a.ts"]);
        assert!(all(" / ").is_empty());
    }
}
