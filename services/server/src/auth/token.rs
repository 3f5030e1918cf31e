//! Access tokens: JWTs signed with Ed25519 (contract 14.2). A token proves which grant asks and
//! for which address; what that may do is read from the grant's row.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cairn_domain::limits;
use chrono::{DateTime, Utc};
use jsonwebtoken::jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::secret;

const KID_BYTES: usize = 32;
const SEED_BYTES: usize = 32;
/// What stands before the seed in the PKCS#8 form of a private key (RFC 8410).
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Why a ring of token keys is refused. Never shows a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("token keys: {0}")]
pub struct TokenKeysError(String);

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The service that made it.
    pub iss: String,
    /// The address that it is good for.
    pub aud: String,
    /// The member's id.
    pub sub: Uuid,
    /// The grant's id.
    pub sid: Uuid,
    /// What it allowed when it was made, for programs that look.
    pub scope: String,
    /// Seconds of the epoch when it ends.
    pub exp: i64,
    /// Seconds of the epoch when it was made.
    pub iat: i64,
    /// Its own id.
    pub jti: Uuid,
}

/// Why a token is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// None of ours, or not for this service.
    Unknown,
    /// Ours, and over.
    Expired,
}

/// 1 to 3 keys, the same on every replica. The first signs; all are known, so that the ring can
/// change while tokens are under way.
#[derive(Clone)]
pub struct TokenKeys {
    keys: Vec<TokenKey>,
}

#[derive(Clone)]
struct TokenKey {
    kid: String,
    signing: EncodingKey,
    verifying: DecodingKey,
    public: Jwk,
}

impl TokenKeys {
    /// Reads `<kid>:<key>,…`. A key is the base64 of a seed of 32 bytes or of a PKCS#8 document,
    /// or that document as PEM, its line ends also written `\n`; a kid has 1 to 32 characters of
    /// `A-Z a-z 0-9 _ -`.
    ///
    /// # Errors
    /// [`TokenKeysError`] says which entry breaks which rule.
    pub fn parse(text: &str) -> Result<Self, TokenKeysError> {
        let entries = text.split(',').map(|entry| TokenKey::parse(entry.trim()));
        let keys = entries.collect::<Result<Vec<_>, _>>()?;
        if keys.len() > limits::TOKEN_KEYS {
            let most = limits::TOKEN_KEYS;
            return Err(TokenKeysError(format!("more than {most} keys")));
        }
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].iter().any(|other| other.kid == key.kid) {
                return Err(TokenKeysError(format!("{} appears twice", key.kid)));
            }
        }
        Ok(Self { keys })
    }

    /// A ring of one fresh key, as [`Self::parse`] reads it.
    #[must_use]
    pub fn generate(kid: &str) -> String {
        format!("{kid}:{}", BASE64_STANDARD.encode(secret::random()))
    }

    /// Signs what a token says.
    ///
    /// # Panics
    /// Never: a key of a parsed ring signs any claims.
    #[must_use]
    pub fn sign(&self, claims: &Claims) -> String {
        let key = self.keys.first().expect("a parsed ring has a key");
        let header = Header {
            kid: Some(key.kid.clone()),
            typ: Some("at+jwt".to_owned()),
            ..Header::new(Algorithm::EdDSA)
        };
        jsonwebtoken::encode(&header, claims, &key.signing).expect("a parsed key signs")
    }

    /// What a token of this issuer says, if it is good now. For which address it is good is left
    /// to the caller.
    ///
    /// # Errors
    /// [`Invalid`] says why it is not.
    pub fn verify(&self, token: &str, issuer: &str, now: DateTime<Utc>) -> Result<Claims, Invalid> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| Invalid::Unknown)?;
        let key = self
            .keys
            .iter()
            .find(|key| header.kid.as_ref() == Some(&key.kid));
        let key = key.ok_or(Invalid::Unknown)?;
        // Time and address are checked below: by our clock, and by the path that is called.
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.validate_exp = false;
        rules.validate_aud = false;
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        rules.set_issuer(&[issuer]);
        let read = jsonwebtoken::decode::<Claims>(token, &key.verifying, &rules);
        let claims = read.map_err(|_| Invalid::Unknown)?.claims;
        let skew = i64::try_from(limits::TOKEN_SKEW.as_secs()).unwrap_or_default();
        if claims.iat > now.timestamp() + skew {
            return Err(Invalid::Unknown);
        }
        if claims.exp + skew < now.timestamp() {
            return Err(Invalid::Expired);
        }
        Ok(claims)
    }

    /// The public half of every key, the signing one first.
    #[must_use]
    pub fn public(&self) -> JwkSet {
        JwkSet {
            keys: self.keys.iter().map(|key| key.public.clone()).collect(),
        }
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kids = self.keys.iter().map(|key| &key.kid);
        f.debug_list().entries(kids).finish()
    }
}

impl TokenKey {
    fn parse(entry: &str) -> Result<Self, TokenKeysError> {
        let Some((kid, key)) = entry.split_once(':') else {
            return Err(TokenKeysError("an entry is not <kid>:<key>".to_owned()));
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if kid.is_empty() || kid.len() > KID_BYTES || !kid.bytes().all(plain) {
            return Err(TokenKeysError(format!(
                "the kid {kid:?} is not 1 to {KID_BYTES} characters of A-Z a-z 0-9 _ -"
            )));
        }
        let odd = || {
            TokenKeysError(format!(
                "the key {kid} is no Ed25519 key: base64 of {SEED_BYTES} bytes, or PKCS#8"
            ))
        };
        let signing = signing_key(key.trim()).ok_or_else(odd)?;
        let mut public = Jwk::from_encoding_key(&signing, Algorithm::EdDSA).map_err(|_| odd())?;
        let verifying = DecodingKey::from_jwk(&public).map_err(|_| odd())?;
        public.common.key_id = Some(kid.to_owned());
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        public.common.key_operations = Some(vec![KeyOperations::Verify]);
        Ok(Self {
            kid: kid.to_owned(),
            signing,
            verifying,
            public,
        })
    }
}

fn signing_key(text: &str) -> Option<EncodingKey> {
    if text.starts_with("-----BEGIN") {
        let pem = text.replace("\\n", "\n");
        return EncodingKey::from_ed_pem(pem.as_bytes()).ok();
    }
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    match bytes.len() {
        SEED_BYTES => Some(EncodingKey::from_ed_der(
            &[&PKCS8_HEAD, &bytes[..]].concat(),
        )),
        48 if bytes.starts_with(&PKCS8_HEAD) => Some(EncodingKey::from_ed_der(&bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://memory.example.com";
    /// The key of RFC 8037, appendix A.
    const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\\n-----END PRIVATE KEY-----";

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_791_618_300 + seconds, 0).expect("an instant")
    }

    fn ring(text: &str) -> TokenKeys {
        TokenKeys::parse(text).expect("a ring")
    }

    fn claims() -> Claims {
        Claims {
            iss: ISSUER.to_owned(),
            aud: ISSUER.to_owned(),
            sub: Uuid::from_u128(1),
            sid: Uuid::from_u128(2),
            scope: "memory:read".to_owned(),
            exp: at(600).timestamp(),
            iat: at(0).timestamp(),
            jti: Uuid::from_u128(3),
        }
    }

    #[test]
    fn a_token_reads_back_until_it_is_over() {
        let ring = ring(&format!("k1:{SEED}"));
        let token = ring.sign(&claims());
        assert_eq!(ring.verify(&token, ISSUER, at(0)), Ok(claims()));
        assert_eq!(ring.verify(&token, ISSUER, at(630)), Ok(claims()));
        assert_eq!(ring.verify(&token, ISSUER, at(631)), Err(Invalid::Expired));
        assert_eq!(ring.verify(&token, ISSUER, at(-31)), Err(Invalid::Unknown));
        let elsewhere = ring.verify(&token, "https://other.example.com", at(0));
        assert_eq!(elsewhere, Err(Invalid::Unknown));
    }

    #[test]
    fn the_ring_changes_while_tokens_are_under_way() {
        let two = TokenKeys::generate("k2");
        let old = ring(&format!("k1:{SEED}"));
        let both = ring(&format!("{two},k1:{SEED}"));
        let new = ring(&two);
        let (before, after) = (old.sign(&claims()), both.sign(&claims()));
        assert!(both.verify(&before, ISSUER, at(0)).is_ok());
        assert!(both.verify(&after, ISSUER, at(0)).is_ok());
        assert_eq!(new.verify(&before, ISSUER, at(0)), Err(Invalid::Unknown));
        assert!(new.verify(&after, ISSUER, at(0)).is_ok());
        let published = both.public();
        let kids: Vec<_> = published
            .keys
            .iter()
            .map(|key| key.common.key_id.as_deref())
            .collect();
        assert_eq!(kids, [Some("k2"), Some("k1")]);
    }

    #[test]
    fn only_eddsa_with_a_known_kid_is_taken() {
        let ring = ring(&format!("k1:{SEED}"));
        let secret =
            EncodingKey::from_secret(b"a secret of more than 32 bytes, to be sure").expect("a key");
        let other = Header {
            kid: Some("k1".to_owned()),
            ..Header::new(Algorithm::HS256)
        };
        let forged = jsonwebtoken::encode(&other, &claims(), &secret).expect("signed");
        let stranger = TokenKeys::parse(&TokenKeys::generate("k1")).expect("a ring");
        let renamed = TokenKeys::parse(&format!("k9:{SEED}")).expect("a ring");
        let good = ring.sign(&claims());
        let (head, rest) = good.split_once('.').expect("parts");
        let none = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"k1"}"#);
        for token in [
            forged,
            stranger.sign(&claims()),
            renamed.sign(&claims()),
            format!("{none}.{rest}"),
            format!("{head}.{}", rest.replace('.', "")),
            String::new(),
            "a.b.c".to_owned(),
        ] {
            assert_eq!(
                ring.verify(&token, ISSUER, at(0)),
                Err(Invalid::Unknown),
                "{token}"
            );
        }
    }

    #[test]
    fn a_key_may_be_a_seed_or_a_document() {
        let document = BASE64_STANDARD.encode(
            [
                &PKCS8_HEAD,
                &BASE64_STANDARD.decode(SEED).expect("base64")[..],
            ]
            .concat(),
        );
        let seed = ring(&format!("k1:{SEED}"));
        // RFC 8037, appendix A.2.
        let public = serde_json::to_value(seed.public()).expect("JSON");
        assert_eq!(
            public["keys"][0]["x"],
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        );
        assert_eq!(public["keys"][0]["kty"], "OKP");
        for other in [format!("k1:{document}"), format!("k1:{PEM}")] {
            assert_eq!(ring(&other).public(), seed.public());
        }
        for bad in [
            "",
            "k1",
            "k1:",
            "k1:AAAA",
            "k 1:x",
            &format!("k1:{SEED},k1:{SEED}"),
        ] {
            let told = TokenKeys::parse(bad).expect_err("refused").to_string();
            assert!(!told.contains("nWGx"), "{told}");
        }
    }
}
