//! Addresses: passwords of their users, signatures, and hooks whose path is the secret.

use std::ops::Range;

use super::Secret;
use super::runs::{Class, Runs};
use super::value;

const RANK: usize = 120;

/// The password in `scheme://user:password@host`, or the token in its user's place; `sign` is
/// where the `://` stands.
pub(super) fn password(runs: &mut Runs<'_>, sign: Range<usize>) -> Option<Secret> {
    let text = runs.text;
    let before = text.as_bytes()[..sign.start].last()?;
    if !before.is_ascii_alphanumeric() && *before != b'+' {
        return None;
    }
    let run = runs.end(Class::Address, sign.end);
    // Another address cannot be part of a password.
    let end = text[sign.end..run]
        .find("://")
        .map_or(run, |at| sign.end + at);
    let whole = &text[sign.end..end];
    let host = whole.find(['/', '?', '#']).unwrap_or(whole.len());
    let user = match whole[..host].rfind('@') {
        Some(at) => &whole[..at],
        None => {
            // A slash may stand in a password that nobody encoded, but not behind a port.
            let colon = whole[..host].find(':')?;
            let port = &whole[colon + 1..host];
            if port.is_empty() || port.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            &whole[..whole.find('@')?]
        }
    };
    let span = match user.find(':') {
        Some(colon) => sign.end + colon + 1..sign.end + user.len(),
        None if value::is_random(user, 20) => sign.end..sign.end + user.len(),
        None => return None,
    };
    let secret = &text[span.clone()];
    (!secret.is_empty() && !is_place(secret)).then_some(Secret {
        span,
        kind: "password",
        rank: RANK,
    })
}

/// Whether something will be put there.
fn is_place(secret: &str) -> bool {
    let bytes = secret.as_bytes();
    let is_encoded = |at: usize| {
        bytes
            .get(at..at + 2)
            .is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    };
    match bytes[0] {
        b'$' | b'{' | b'[' => true,
        b'%' => !is_encoded(1),
        _ => {
            secret.contains("${")
                || secret.contains("{{")
                || secret
                    .bytes()
                    .all(|b| matches!(b, b'*' | b'.' | b'x' | b'X'))
        }
    }
}

/// The value of `sig=` in a signed address.
pub(super) fn signature(runs: &mut Runs<'_>, hit: Range<usize>) -> Option<Secret> {
    let before = hit.start.checked_sub(1).and_then(|at| runs.byte(at));
    if !matches!(before, Some(b'?' | b'&' | b';')) {
        return None;
    }
    let run = runs.end(Class::Address, hit.end);
    let rest = &runs.text[hit.end..run];
    let length = rest
        .find(['&', ',', ';', ')', ']', '}'])
        .unwrap_or(rest.len());
    let value = &rest[..length];
    (value.len() >= 20 && value.bytes().any(|b| b.is_ascii_digit())).then_some(Secret {
        span: hit.end..hit.end + length,
        kind: "signature",
        rank: RANK,
    })
}

/// What follows the address of a hook: whoever knows it may post there.
pub(super) fn webhook(runs: &mut Runs<'_>, hit: Range<usize>) -> Option<Secret> {
    let run = runs.end(Class::Address, hit.end);
    let rest = &runs.text[hit.end..run];
    let rest = rest.trim_end_matches(['.', ',', ';', ')', ']', '}', '!']);
    let last = rest.rsplit('/').find(|part| !part.is_empty())?;
    let is_secret = rest.matches('/').count() >= 1
        && last.len() >= 16
        && last.bytes().all(|b| Class::Url.holds(b) || b == b'.');
    is_secret.then(|| Secret {
        span: hit.end..hit.end + rest.len(),
        kind: "webhook",
        rank: RANK,
    })
}
