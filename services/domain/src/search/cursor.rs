//! The name of a continuation: `ms_` and 24 characters of base64url.

use std::fmt;
use std::str::FromStr;

use crate::Rejection;
use crate::limits;

const PREFIX: &str = "ms_";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A cursor. Who holds it may continue the search, so its debug form does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cursor(String);

impl Cursor {
    /// The cursor of these random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; limits::CURSOR_BYTES]) -> Self {
        let (groups, _) = bytes.as_chunks::<3>();
        let characters = groups.iter().flat_map(|[a, b, c]| {
            let group = u32::from_be_bytes([0, *a, *b, *c]);
            [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(group >> shift) as usize & 63]))
        });
        Self(PREFIX.chars().chain(characters).collect())
    }

    /// The cursor as a caller sees it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Cursor {
    type Err = Rejection;

    fn from_str(text: &str) -> Result<Self, Rejection> {
        let text = text.trim();
        let tail = text.strip_prefix(PREFIX).unwrap_or_default();
        let whole = tail.len() == limits::CURSOR_BYTES / 3 * 4;
        if whole && tail.bytes().all(|b| ALPHABET.contains(&b)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Rejection::InvalidContinuation)
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursor(ms_…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn eighteen_bytes_are_24_characters() {
        assert_eq!(
            Cursor::from_random([0; 18]).as_str(),
            "ms_AAAAAAAAAAAAAAAAAAAAAAAA"
        );
        assert_eq!(
            Cursor::from_random([0xff; 18]).as_str(),
            "ms_________________________"
        );
        assert_eq!(
            Cursor::from_random(*b"Cairn cursor bytes").as_str(),
            "ms_Q2Fpcm4gY3Vyc29yIGJ5dGVz"
        );
    }

    #[test]
    fn what_is_not_a_cursor_is_unknown() {
        for text in [
            "",
            "ms_",
            "ms_00000000000000000000000",
            "ms_0000000000000000000000001",
            "mz_000000000000000000000001",
            "ms_00000000000000000000000=",
            "ms_00000000000000000000000é",
        ] {
            assert_eq!(
                text.parse::<Cursor>(),
                Err(Rejection::InvalidContinuation),
                "{text}"
            );
        }
        assert!("ms_Z6ywyNBJzkw_XuCLsD6p9-xZ".parse::<Cursor>().is_ok());
    }

    #[test]
    fn a_log_never_shows_one() {
        assert_eq!(
            format!("{:?}", Cursor::from_random([7; 18])),
            "Cursor(ms_…)"
        );
    }

    proptest! {
        #[test]
        fn every_cursor_reads_back(bytes: [u8; 18]) {
            let cursor = Cursor::from_random(bytes);
            prop_assert_eq!(cursor.as_str().parse::<Cursor>(), Ok(cursor));
        }
    }
}
