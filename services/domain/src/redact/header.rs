//! Header fields whose values are secrets: `Authorization`, `Cookie` and their kin, on lines of
//! their own, in commands, in code and in JSON.

use std::ops::Range;

use super::Secret;
use super::runs::{Class, Runs, count};
use super::value;

/// Bytes of a field's value that are looked at.
const VALUE: usize = 8 * 1024;
const RANK: usize = 150;

pub(super) const AUTHORIZATION: &str = "authorization";
pub(super) const COOKIE: &str = "cookie";

/// Schemes that stay before what they announce.
const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "token",
    "apikey",
    "api-key",
    "digest",
    "negotiate",
    "ntlm",
    "hawk",
    "oauth",
    "ssws",
    "geniekey",
    "splunk",
    "aws4-hmac-sha256",
    "key",
    "bot",
    "klaviyo-api-key",
];

/// The value of an `Authorization` field.
pub(super) fn authorization(runs: &mut Runs<'_>, word: Range<usize>) -> Option<Secret> {
    let value = value_after(runs, &word)?;
    let text = &runs.text[value.clone()];
    let secret = authorization_in(text)?;
    Some(Secret {
        span: value.start + secret.start..value.start + secret.end,
        kind: AUTHORIZATION,
        rank: RANK,
    })
}

/// The part of an authorization that is secret.
pub(super) fn authorization_in(text: &str) -> Option<Range<usize>> {
    let lead = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    let scheme = trimmed.split([' ', '\t']).next().unwrap_or_default();
    let rest = trimmed[scheme.len()..].trim_start();
    let is_scheme = SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    let (from, credential) = if is_scheme && !rest.is_empty() {
        (trimmed.len() - rest.len(), rest)
    } else {
        (0, trimmed)
    };
    let single = credential.split([' ', '\t']).next().unwrap_or_default();
    let is_several = credential.len() > single.len();
    let counts = if is_scheme {
        // `Digest username="…", response="…"` goes as a whole.
        is_credential(single) || is_several && single.contains('=') && is_credential(credential)
    } else {
        !is_several && value::is_random(credential, 16)
    };
    let taken = match is_scheme && is_several && !single.ends_with(',') && !single.contains("=\"") {
        true => single.trim_end_matches([',', ';', ')', '}']).len(),
        false => credential.len(),
    };
    counts.then_some(lead + from..lead + from + taken)
}

/// Whether a word after a scheme is no placeholder and no word of a sentence.
fn is_credential(word: &str) -> bool {
    let bare = word.trim_matches(['"', '\'', ',', ';', '.', ')', '(']);
    let is_place = word.starts_with(['$', '{', '<', '%', '[', '#', '*', '.', '('])
        || word.contains("${")
        || word.contains("{{")
        || word.contains("...");
    let letters = bare
        .bytes()
        .all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.'));
    let least = if letters { 20 } else { 8 };
    let is_named = bare.contains('(') || bare.to_ascii_lowercase().starts_with("your");
    bare.len() >= least && !is_place && !is_named
}

/// A bearer's token without the field's name.
pub(super) fn bearer(runs: &mut Runs<'_>, word: Range<usize>) -> Option<Secret> {
    if !runs.is_border(word.start) {
        return None;
    }
    let end = runs.end(Class::Base64, word.end);
    let end = if runs.byte(end) == Some(b'.') {
        runs.end(Class::Dotted, word.end).max(end)
    } else {
        end
    };
    let token = &runs.text[word.end..end];
    value::is_random(token, 16).then_some(Secret {
        span: word.end..end,
        kind: AUTHORIZATION,
        rank: RANK,
    })
}

/// The value of a `Cookie` or `Set-Cookie` field: pairs of names and values.
pub(super) fn cookie(runs: &mut Runs<'_>, word: Range<usize>) -> Option<Secret> {
    let value = value_after(runs, &word)?;
    let text = &runs.text[value.clone()];
    is_cookie(text).then_some(Secret {
        span: value,
        kind: COOKIE,
        rank: RANK,
    })
}

/// Whether a text is what a `Cookie` field holds.
pub(super) fn is_cookie(text: &str) -> bool {
    let first = text.trim().split([';', ' ']).next().unwrap_or_default();
    let Some((name, value)) = first.split_once('=') else {
        return false;
    };
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.%!#~|*+^$".contains(&b));
    let is_place = value.starts_with(['$', '{', '<', '%', '=', '>', '[']) && !value.contains("%");
    is_name && !value.is_empty() && !is_place
}

/// The value that a field's name at `word` is followed by, without its quotes.
fn value_after(runs: &Runs<'_>, word: &Range<usize>) -> Option<Range<usize>> {
    let text = runs.text;
    let bytes = text.as_bytes();
    // `-` before it is `Proxy-` or the dashes of a flag.
    if word.start > 0
        && bytes[word.start - 1].is_ascii_alphanumeric()
        && !runs.is_border(word.start)
    {
        return None;
    }
    let mut at = word.end;
    let skip = |at: &mut usize, signs: &[u8]| {
        let rest = bytes.get(*at..).unwrap_or_default();
        let count = rest
            .iter()
            .take(64)
            .take_while(|b| signs.contains(b))
            .count();
        *at += count;
        count
    };
    if bytes.get(at) == Some(&b's') || bytes.get(at) == Some(&b'2') {
        at += 1;
    }
    let is_flag = text[..word.start].ends_with("--");
    let closing = skip(&mut at, b"\\\"'`]) \t");
    let sign = bytes.get(at).copied();
    let is_sign = match sign {
        Some(b':' | b'=') => true,
        Some(b',') => closing > 0,
        _ => is_flag && closing > 0,
    };
    if !is_sign {
        return None;
    }
    skip(&mut at, b":=>,");
    skip(&mut at, b" \t");
    if matches!(bytes.get(at), Some(b'[')) {
        skip(&mut at, b"[ \t\n\r");
    }
    let letters = bytes
        .get(at)
        .copied()
        .is_some_and(|b| b"bfruBFRU".contains(&b));
    if letters && matches!(bytes.get(at + 1), Some(b'"' | b'\'' | b'`')) {
        at += 1;
    }
    let slashes = bytes
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take(64)
        .take_while(|b| **b == b'\\')
        .count();
    let opened = match bytes.get(at + slashes) {
        Some(sign @ (b'"' | b'\'' | b'`')) => Some(*sign),
        _ => None,
    };
    if opened.is_some() {
        at += slashes + 1;
    }
    let rest = text.get(at..)?;
    let end = value_end(text, at, rest, opened, word.start);
    (end > at).then_some(at..end)
}

/// Where a value ends: with its quote, with the quote that the whole line stands in, or with its
/// line. A field that begins its line may hold quotes itself.
fn value_end(text: &str, at: usize, rest: &str, opened: Option<u8>, name: usize) -> usize {
    let before = &text[text.floor_char_boundary(name.saturating_sub(160))..name];
    let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
    let begins_line = line
        .trim_start_matches(['<', '>', '*', '|', '+', '-', ' ', '\t'])
        .is_empty()
        || line
            .trim_end_matches('-')
            .trim()
            .eq_ignore_ascii_case("proxy")
        || line
            .trim_end_matches('-')
            .trim()
            .eq_ignore_ascii_case("set");
    let limit = rest.floor_char_boundary(VALUE);
    let bytes = &rest.as_bytes()[..limit];
    let mut previous = 0;
    for (offset, b) in bytes.iter().enumerate() {
        let is_end = match *b {
            b'\n' | b'\r' => true,
            b'\\' => {
                let next = bytes.get(offset + 1);
                matches!(next, Some(b'n' | b'r' | b'"' | b'\'' | b'\\' | b'u'))
            }
            b @ (b'"' | b'\'' | b'`') => match opened {
                Some(sign) => b == sign,
                None => !begins_line && previous != b'=',
            },
            _ => false,
        };
        if is_end {
            count(offset);
            return at + offset;
        }
        previous = *b;
    }
    count(limit);
    at + limit
}
