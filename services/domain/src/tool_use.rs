//! ToolUse: the original input and output of one tool call, kept as exact JSON text.

use sha2::{Digest, Sha256};

use crate::bounds::{Bound, cut};
use crate::limits;

/// One side of a tool call: the text kept, and what it was before it was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The JSON text, at most [`limits::TEXT_BYTES`].
    pub text: String,
    /// Bytes of the whole text.
    pub bytes: i64,
    /// SHA-256 of the whole text.
    pub sha256: [u8; 32],
}

impl Evidence {
    /// Takes a whole text, notes its size and digest, and cuts what is over the limit.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            bytes: i64::try_from(text.len()).unwrap_or(i64::MAX),
            sha256: Sha256::digest(text.as_bytes()).into(),
            text: cut(text, Bound::Bytes(limits::TEXT_BYTES)),
        }
    }

    /// The same text as the cut form of a longer one, which its client measured before cutting.
    /// A size below the text's own is no such measure and changes nothing.
    #[must_use]
    pub fn cut_from(self, bytes: i64, sha256: [u8; 32]) -> Self {
        if bytes > self.bytes {
            Self {
                bytes,
                sha256,
                ..self
            }
        } else {
            self
        }
    }
}

/// A tool use as it is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUseDraft {
    /// The tool's name as the host gives it.
    pub tool: String,
    /// The host's id of the call, if it has one.
    pub host_tool_use_id: Option<String>,
    /// What went in.
    pub input: Evidence,
    /// What came out.
    pub output: Evidence,
    /// Whether the call failed; `None` if the host does not say.
    pub failed: Option<bool>,
    /// Files the call touched.
    pub files: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_cut_says_what_it_cut_from() {
        let kept = Evidence::of("abc…[cut 97 bytes]");
        assert_eq!(kept.clone().cut_from(100, [7; 32]).bytes, 100);
        assert_eq!(kept.clone().cut_from(3, [7; 32]), kept);
    }

    #[test]
    fn digest_and_size_are_of_the_text_before_the_cut() {
        let whole = "a".repeat(limits::TEXT_BYTES + 1);
        let kept = Evidence::of(&whole);
        assert_eq!(kept.bytes, 65_537);
        assert_eq!(
            kept.sha256,
            <[u8; 32]>::from(Sha256::digest(whole.as_bytes()))
        );
        assert!(kept.text.len() <= limits::TEXT_BYTES && kept.text.ends_with("bytes]"));
    }
}
