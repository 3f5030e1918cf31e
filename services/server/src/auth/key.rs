//! API keys: `cairn_<key id>_<secret>` (contract 14.1). Only a hash of the secret is kept.

use std::fmt;

use rand::Rng;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const ID_CHARS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const ID_LENGTH: usize = 12;
const SECRET_CHARS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// 43 characters of 62 are 256 bits.
const SECRET_LENGTH: usize = 43;

/// A key as a person holds it. Its `Debug` form hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    id: String,
    secret: String,
}

impl ApiKey {
    /// A fresh key.
    #[must_use]
    pub fn generate(rng: &mut impl Rng) -> Self {
        Self {
            id: draw(rng, ID_CHARS, ID_LENGTH),
            secret: draw(rng, SECRET_CHARS, SECRET_LENGTH),
        }
    }

    /// Reads a key; `None` if the text has not the form of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix("cairn_")?.split_once('_')?;
        let is_id = id.len() == ID_LENGTH && id.bytes().all(|b| ID_CHARS.contains(&b));
        let is_secret =
            secret.len() == SECRET_LENGTH && secret.bytes().all(|b| b.is_ascii_alphanumeric());
        (is_id && is_secret).then(|| Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// The part that names the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is stored of the secret: SHA-256 of the id, NUL and the secret.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.id.as_bytes());
        hasher.update([0]);
        hasher.update(self.secret.as_bytes());
        hasher.finalize().into()
    }

    /// Whether this key's hash is the stored one, compared in constant time.
    #[must_use]
    pub fn matches(&self, stored: &[u8; 32]) -> bool {
        self.hash().ct_eq(stored).into()
    }

    /// The whole key, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("cairn_{}_{}", self.id, self.secret)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}, …)", self.id)
    }
}

/// A text of this length out of these characters, each as likely as any other.
pub(super) fn draw(rng: &mut impl Rng, chars: &[u8], length: usize) -> String {
    (0..length)
        .map(|_| char::from(chars[draw_below(rng, chars.len())]))
        .collect()
}

/// An unbiased number below `bound` (at most 256): bytes that would favour low numbers are drawn
/// again.
fn draw_below(rng: &mut impl Rng, bound: usize) -> usize {
    let fair = 256 - 256 % bound;
    loop {
        let mut byte = [0_u8; 1];
        rng.fill_bytes(&mut byte);
        let value = usize::from(byte[0]);
        if value < fair {
            return value % bound;
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any key will do here")]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_key_reads_back() {
        let key = ApiKey::generate(&mut rand::rng());
        assert_eq!(ApiKey::parse(&key.reveal()), Some(key.clone()));
        assert!(key.matches(&key.hash()));
        assert!(!format!("{key:?}").contains(&key.secret));
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_none() {
        let key = ApiKey::generate(&mut rand::rng()).reveal();
        for text in [
            "",
            "cairn_",
            "cairn__",
            &key[1..],
            &key[..key.len() - 1],
            &format!("{key}x"),
        ] {
            assert_eq!(ApiKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn another_secret_does_not_match() {
        let (one, two) = (
            ApiKey::generate(&mut rand::rng()),
            ApiKey::generate(&mut rand::rng()),
        );
        assert!(!one.matches(&two.hash()));
    }
}
