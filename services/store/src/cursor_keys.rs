//! The key ring of cursors: how a continuation is hidden and its state sealed.
//!
//! Pure functions of keys, scope and cursor (contract 7.4). Where sealed states are kept is the
//! business of `continuations.rs`; cursors of lists, which need no keeping, of `page_cursor.rs`.

use std::fmt;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cairn_domain::limits;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use cairn_domain::hex::hex;

/// Base64 as people produce it, with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const STATE_LABEL: &[u8] = b"cairn:mem-search:v1";
const SEAL_LABEL: &[u8] = b"cairn:mem-search:v1:seal";
const SEAL_VERSION: u8 = 1;
const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;
const KID_BYTES: usize = 32;

/// Why a key ring is refused. Never shows a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cursor keys: {0}")]
pub struct KeyRingError(String);

/// 1 to 3 keys, the same on every replica. The first writes; all are tried on reading, so that a
/// ring can change without voiding a search.
#[derive(Clone)]
pub struct KeyRing {
    keys: Vec<CursorKey>,
}

impl KeyRing {
    /// Reads `<kid>:<base64>,…`; each key has at least 32 bytes, each kid 1 to 32 characters of
    /// `A-Z a-z 0-9 _ -`.
    ///
    /// # Errors
    /// [`KeyRingError`] says which entry breaks which rule.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let keys = text
            .split(',')
            .map(|entry| CursorKey::parse(entry.trim()))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.len() > limits::CURSOR_KEYS {
            let most = limits::CURSOR_KEYS;
            return Err(KeyRingError(format!("more than {most} keys")));
        }
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].iter().any(|other| other.kid == key.kid) {
                return Err(KeyRingError(format!("{} appears twice", key.kid)));
            }
        }
        Ok(Self { keys })
    }

    /// The key that seals new states.
    pub(crate) fn writer(&self) -> &CursorKey {
        self.keys.first().expect("a parsed ring has a key")
    }

    /// Every key, the writing one first.
    pub(crate) fn readers(&self) -> &[CursorKey] {
        &self.keys
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.keys.iter().map(|key| &key.kid))
            .finish()
    }
}

/// One key of the ring, with the name under which its states are kept.
#[derive(Clone)]
pub(crate) struct CursorKey {
    kid: String,
    secret: Vec<u8>,
}

impl CursorKey {
    fn parse(entry: &str) -> Result<Self, KeyRingError> {
        let Some((kid, secret)) = entry.split_once(':') else {
            return Err(KeyRingError("an entry is not <kid>:<base64>".to_owned()));
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if kid.is_empty() || kid.len() > KID_BYTES || !kid.bytes().all(plain) {
            return Err(KeyRingError(format!(
                "the kid {kid:?} is not 1 to {KID_BYTES} characters of A-Z a-z 0-9 _ -"
            )));
        }
        let secret = BASE64
            .decode(secret.trim())
            .map_err(|_| KeyRingError(format!("the key {kid} is not base64")))?;
        if secret.len() < KEY_BYTES {
            let length = secret.len();
            return Err(KeyRingError(format!(
                "the key {kid} has {length} bytes, fewer than {KEY_BYTES}"
            )));
        }
        Ok(Self {
            kid: kid.to_owned(),
            secret,
        })
    }

    /// The key's public name.
    pub(crate) fn kid(&self) -> &str {
        &self.kid
    }

    /// What the key signs. Whoever signs begins with a label of its own.
    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.secret).expect("an HMAC takes keys of any length")
    }

    /// What a cursor of a scope is called in the store: 64 hex digits that lead back to neither.
    pub(crate) fn state_key(&self, scope: &str, cursor: &str) -> String {
        let mut mac = self.mac();
        for part in [
            STATE_LABEL,
            b"\0",
            scope.as_bytes(),
            b"\0",
            cursor.as_bytes(),
        ] {
            mac.update(part);
        }
        hex(&mac.finalize().into_bytes())
    }

    /// Encrypts a state so that only scope and cursor together open it. Never use a nonce twice.
    pub(crate) fn seal(
        &self,
        scope: &str,
        cursor: &str,
        state: &[u8],
        nonce: [u8; NONCE_BYTES],
    ) -> Vec<u8> {
        let aad = self.state_key(scope, cursor);
        let payload = Payload {
            msg: state,
            aad: aad.as_bytes(),
        };
        let sealed = self
            .cipher(scope, cursor)
            .encrypt(&Nonce::from(nonce), payload)
            .expect("a state is far below the cipher's limit");
        [&[SEAL_VERSION][..], &nonce, &sealed].concat()
    }

    /// The state inside a sealed value; `None` if it was sealed otherwise or has been changed.
    pub(crate) fn open(&self, scope: &str, cursor: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (&version, rest) = sealed.split_first()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        if version != SEAL_VERSION {
            return None;
        }
        let aad = self.state_key(scope, cursor);
        let payload = Payload {
            msg: sealed,
            aad: aad.as_bytes(),
        };
        let nonce = Nonce::from(*nonce);
        self.cipher(scope, cursor).decrypt(&nonce, payload).ok()
    }

    fn cipher(&self, scope: &str, cursor: &str) -> Aes256Gcm {
        Aes256Gcm::new(&self.seal_key(scope, cursor).into())
    }

    fn seal_key(&self, scope: &str, cursor: &str) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        Hkdf::<Sha256>::new(Some(&self.secret), cursor.as_bytes())
            .expand_multi_info(&[SEAL_LABEL, b"\0", scope.as_bytes()], &mut key)
            .expect("HKDF-SHA256 expands to 32 bytes");
        key
    }
}

/// A nonce, never drawn twice.
#[expect(
    clippy::disallowed_methods,
    reason = "a nonce is drawn from the system's randomness"
)]
pub(crate) fn new_nonce() -> [u8; NONCE_BYTES] {
    rand::random()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S0: &str = "fixture-scope";
    const S1: &str = "0198f000-0000-7000-8000-000000000001/0198f000-0000-7000-8000-00000000000a\
                      /0198f000-0000-7000-8000-0000000000a1";
    const S2: &str = "0198f000-0000-7000-8000-000000000001/0198f000-0000-7000-8000-00000000000a\
                      /0198f000-0000-7000-8000-0000000000a1,0198f000-0000-7000-8000-0000000000b2";
    const S3: &str = "0198f000-0000-7000-8000-000000000001/0198f000-0000-7000-8000-00000000000a/*";
    const C1: &str = "ms_000000000000000000000001";
    const C2: &str = "ms_Z6ywyNBJzkw_XuCLsD6p9-xZ";

    fn key(number: u8) -> CursorKey {
        CursorKey {
            kid: format!("k{number}"),
            secret: format!("cairn-cursor-fixture-key-{number}-32-bytes!").into_bytes(),
        }
    }

    #[test]
    fn state_keys_equal_the_vectors_of_the_contract() {
        let vectors = [
            (
                1,
                S0,
                C1,
                "26e12d9dbab14ae8fb614ea1812d437adae2a051b5eb2de480b9ce3d04515a67",
            ),
            (
                1,
                S1,
                C1,
                "2df2c5989e6fb26666e6282a6d30d89afefd9ab62c507c247717076c023a3555",
            ),
            (
                1,
                S1,
                C2,
                "c918d90531d519d0d7bd86595005dd05f86c663fdd04c1e0c762b7faec7d5af6",
            ),
            (
                1,
                S2,
                C2,
                "f37fd3e37afe62fd8849ba880852d19909c15e0b321dcddb16278d939874de3d",
            ),
            (
                1,
                S3,
                C2,
                "9141c4e3b93d0f81d6610a18dee4d4d970d40981898745d1f7bf23d8befc3fb0",
            ),
            (
                2,
                S1,
                C2,
                "583b44991aa73c228bd69040ca6870208a94690a29a3b1c68857abf2d575d6d0",
            ),
            (
                2,
                S3,
                C2,
                "df39989fb80d772c660625caa55799d37d80ddf8808471ae6157228796500d44",
            ),
        ];
        for (number, scope, cursor, expected) in vectors {
            assert_eq!(
                key(number).state_key(scope, cursor),
                expected,
                "k{number} {scope}"
            );
        }
    }

    #[test]
    fn seal_keys_equal_the_vectors_of_the_contract() {
        let vectors = [
            (
                1,
                "c609e48f22a0418054d636e5361d59180215975f3d67d93ca779113ff79b2903",
            ),
            (
                2,
                "acb85e584c76451b410f5460ac92f01f71e04fd141e315974eefd87b5474b5a2",
            ),
        ];
        for (number, expected) in vectors {
            assert_eq!(hex(&key(number).seal_key(S1, C2)), expected, "k{number}");
        }
    }

    #[test]
    fn a_sealed_state_equals_the_vector_of_the_contract() {
        let nonce = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        let sealed = key(1).seal(S1, C2, br#"{"v":1}"#, nonce);
        assert_eq!(
            hex(&sealed),
            "01000102030405060708090a0b2cbd577765a5121763649e2e78d9e81acb2be59425a343"
        );
        assert_eq!(key(1).open(S1, C2, &sealed).expect("opens"), br#"{"v":1}"#);
    }

    #[test]
    fn nothing_else_opens_a_sealed_state() {
        let sealed = key(1).seal(S1, C2, b"state", [7; 12]);
        assert_eq!(key(2).open(S1, C2, &sealed), None, "another key");
        assert_eq!(key(1).open(S3, C2, &sealed), None, "another scope");
        assert_eq!(key(1).open(S1, C1, &sealed), None, "another cursor");
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(key(1).open(S1, C2, &changed), None, "byte {place} changed");
            assert_eq!(
                key(1).open(S1, C2, &sealed[..place]),
                None,
                "cut at {place}"
            );
        }
    }

    #[test]
    fn a_ring_keeps_its_order_and_takes_base64_with_or_without_padding() {
        let padded = "Y2Fpcm4tY3Vyc29yLWZpeHR1cmUta2V5LTEtMzItYnl0ZXMh";
        let bare = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let ring = KeyRing::parse(&format!("k1:{padded}, old-2:{bare},old_3:{bare}="));
        let ring = ring.expect("a ring");
        assert_eq!(ring.writer().secret, key(1).secret);
        let kids: Vec<_> = ring.readers().iter().map(CursorKey::kid).collect();
        assert_eq!(kids, ["k1", "old-2", "old_3"]);
        assert_eq!(format!("{ring:?}"), r#"["k1", "old-2", "old_3"]"#);
    }

    #[test]
    fn a_bad_ring_is_refused_without_showing_a_key() {
        let good = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let short = "c2VjcmV0c2VjcmV0";
        for ring in [
            String::new(),
            "k1".to_owned(),
            format!(":{good}"),
            format!("a b:{good}"),
            format!("k1:{short}"),
            "k1:not*base64".to_owned(),
            format!("k1:{good},k1:{good}"),
            format!("a:{good},b:{good},c:{good},d:{good}"),
            format!("k1:{good},"),
        ] {
            let error = KeyRing::parse(&ring).expect_err(&ring).to_string();
            assert!(
                !error.contains(short) && !error.contains("not*base64"),
                "{error}"
            );
        }
    }
}
