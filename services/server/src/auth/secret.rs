//! Secrets that a person or a program holds and the store knows by their hash alone.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Letters of a code that a person types: no vowels, so that no words come out.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Letters between two hyphens.
const GROUP: usize = 4;

/// What a secret is for: the same text for something else has another hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The code of an approval, or of a device that waits for one.
    Approval,
    /// What a person types to let a device in.
    UserCode,
    /// What a member signs in with.
    SignIn,
    /// A signed-in browser's cookie.
    Browser,
    /// A form that a page of ours holds.
    Form,
    /// A refresh token.
    Refresh,
}

impl Purpose {
    const fn label(self) -> &'static str {
        match self {
            Self::Approval => "cairn:approval:v1",
            Self::UserCode => "cairn:user-code:v1",
            Self::SignIn => "cairn:sign-in:v1",
            Self::Browser => "cairn:browser:v1",
            Self::Form => "cairn:form:v1",
            Self::Refresh => "cairn:refresh:v1",
        }
    }

    /// The hash of a secret of this purpose.
    #[must_use]
    pub fn hash(self, secret: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.label().as_bytes());
        hasher.update([0]);
        hasher.update(secret.as_bytes());
        hasher.finalize().into()
    }
}

/// 256 bits from the system's randomness.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "secrets are made here")]
pub fn random() -> [u8; 32] {
    rand::random()
}

/// A fresh secret for programs: 43 characters of base64url.
#[must_use]
pub fn fresh() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(random())
}

/// Whether a text has the form of [`fresh`].
#[must_use]
pub fn has_form(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    text.len() == 43 && text.bytes().all(plain)
}

/// A fresh code for people: `letters` letters in groups of four, `BCDF-GHJK`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "secrets are made here")]
pub fn code(letters: usize) -> String {
    let drawn = super::key::draw(&mut rand::rng(), LETTERS, letters);
    grouped(&drawn)
}

/// A code as a person may have typed it, in the form of [`code`].
#[must_use]
pub fn read_code(typed: &str) -> String {
    let letters = typed.chars().filter(char::is_ascii_alphabetic);
    // More than any code has is none of ours.
    let letters: String = letters.take(64).map(|c| c.to_ascii_uppercase()).collect();
    grouped(&letters)
}

fn grouped(letters: &str) -> String {
    let groups = letters.as_bytes().chunks(GROUP);
    let groups = groups.map(|group| std::str::from_utf8(group).unwrap_or_default());
    groups.collect::<Vec<_>>().join("-")
}

/// A refresh token: `cairn_r_<grant id>_<secret>`. Its `Debug` form hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct RefreshToken {
    /// The grant that it belongs to.
    pub grant: Uuid,
    secret: String,
}

impl RefreshToken {
    /// The first token of a grant.
    #[must_use]
    pub fn first(grant: Uuid) -> Self {
        Self {
            grant,
            secret: fresh(),
        }
    }

    /// Reads a token; `None` if the text has not the form of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (grant, secret) = text.strip_prefix("cairn_r_")?.split_at_checked(32)?;
        let secret = secret.strip_prefix('_')?;
        has_form(secret).then_some(())?;
        Some(Self {
            grant: Uuid::try_parse(grant).ok()?,
            secret: secret.to_owned(),
        })
    }

    /// The token that follows this one. The salt is kept beside this one's hash: whoever shows
    /// this token again gets the same successor, and nobody can make it from what is kept.
    #[must_use]
    pub fn successor(&self, salt: &[u8; 32]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(salt);
        hasher.update(self.reveal().as_bytes());
        Self {
            grant: self.grant,
            secret: BASE64_URL_SAFE_NO_PAD.encode(hasher.finalize()),
        }
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Purpose::Refresh.hash(&self.reveal())
    }

    /// The whole token.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("cairn_r_{}_{}", self.grant.simple(), self.secret)
    }
}

impl std::fmt::Debug for RefreshToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RefreshToken({}, …)", self.grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_token_reads_back_and_has_one_successor_a_salt() {
        let token = RefreshToken::first(Uuid::from_u128(7));
        let read = RefreshToken::parse(&token.reveal());
        assert_eq!(read.as_ref(), Some(&token));
        assert!(!format!("{token:?}").contains(&token.secret));
        let (one, two) = (token.successor(&[1; 32]), token.successor(&[2; 32]));
        assert_eq!(one, read.expect("read").successor(&[1; 32]));
        assert!(one != two && one != token && one.hash() != token.hash());
        assert_eq!(RefreshToken::parse(&one.reveal()), Some(one));
        for other in [
            "",
            "cairn_r_",
            &token.reveal()[1..],
            &format!("{}x", token.reveal()),
        ] {
            assert_eq!(RefreshToken::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_code_may_be_typed_in_any_way() {
        let made = code(8);
        assert_eq!((made.len(), made.as_bytes()[4]), (9, b'-'));
        assert!(!made.contains(['A', 'E', 'I', 'O', 'U', 'Y']));
        let typed = format!(" {} ", made.to_lowercase().replace('-', " "));
        assert_eq!(read_code(&typed), made);
        assert_eq!(read_code("bcdfghjk"), "BCDF-GHJK");
        assert_eq!(code(16).len(), 19);
    }

    #[test]
    fn one_text_has_a_hash_for_each_purpose() {
        assert_ne!(Purpose::SignIn.hash("x"), Purpose::UserCode.hash("x"));
        assert!(has_form(&fresh()) && !has_form("x"));
    }
}
