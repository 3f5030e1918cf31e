//! What a search leaves out (contract 10.1). Filters narrow; none of them widens what its reader
//! may see.

use chrono::{DateTime, Utc};

use crate::ids::RecordKind;
use crate::observation::{Concept, ObservationType};

/// Conditions on records beside the words; an empty one lets all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of these kinds.
    pub kinds: Vec<RecordKind>,
    /// An observation of one of these types.
    pub types: Vec<ObservationType>,
    /// An observation with any of these concepts.
    pub concepts: Vec<Concept>,
    /// Written by this handle, or `key:<key id>`.
    pub author: Option<String>,
    /// Of the session that its host names so.
    pub session: Option<String>,
    /// Happened at this moment or later.
    pub since: Option<DateTime<Utc>>,
    /// Happened before this moment.
    pub until: Option<DateTime<Utc>>,
    /// An observation that touched one of these: a file by any suffix of segments, or a folder.
    pub files: Vec<String>,
}

impl Filter {
    /// Whether it lets everything pass.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A file or folder as filters compare it: with `/`, without the signs of a checkout's root.
#[must_use]
pub fn path(text: &str) -> String {
    let text = crate::bounds::clean(text.trim().replace('\\', "/"));
    let text = text.trim_start_matches("./").trim_matches('/');
    unicode_normalization::UnicodeNormalization::nfc(text).collect()
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
            assert_eq!(path(text), same);
        }
    }
}
