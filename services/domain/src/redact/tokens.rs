//! Tokens: keys that are known by their form alone.

use super::Secret;
use super::runs::{Class, Runs};
use super::shapes::Shape;

/// Rank of a reading that knows the service; names of any kind come after it.
fn rank(prefix: usize) -> usize {
    100 - prefix.min(100)
}

fn secret(span: std::ops::Range<usize>, kind: &'static str, prefix: usize) -> Secret {
    Secret {
        span,
        kind,
        rank: rank(prefix),
    }
}

/// A key that begins like a known one.
pub(super) fn shaped(runs: &mut Runs<'_>, at: usize, shape: &Shape) -> Option<Secret> {
    if !runs.has(at, shape.prefix) || !runs.is_border(at) {
        return None;
    }
    let from = at + shape.prefix.len();
    let mut end = runs.end(shape.class, from);
    // A full stop or a dash after it belongs to the sentence.
    while end > from && matches!(runs.byte(end - 1), Some(b'.' | b'-')) {
        end -= 1;
    }
    let body = &runs.text[from..end];
    let fits = body.len() >= shape.least
        && (!shape.digit || body.bytes().any(|b| b.is_ascii_digit()))
        && !is_spelled_out(body);
    fits.then(|| secret(at..end, shape.kind, shape.prefix.len()))
}

/// Whether a key's body is only drawn: `xxxx`, `....`, `----`.
fn is_spelled_out(body: &str) -> bool {
    let first = body.bytes().next();
    body.bytes().all(|b| Some(b) == first) && !first.is_some_and(|b| b.is_ascii_digit())
}

/// `sk-` and a long run, or one with digits in it.
pub(super) fn sk(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    if !runs.has(at, "sk-") || !runs.is_border(at) || at > 0 && runs.byte(at - 1) == Some(b'-') {
        return None;
    }
    let end = runs.end(Class::Url, at + 3);
    let body = &runs.text[at + 3..end];
    let first = body.split(['-', '_']).next().unwrap_or_default();
    let has_digit = body.bytes().any(|b| b.is_ascii_digit());
    let fits = first.len() >= 16 || (has_digit && body.len() >= 20);
    (fits && !is_spelled_out(body)).then(|| secret(at..end, "api-key", 3))
}

/// A key of this service: `cairn_<id>_<secret>`.
pub(super) fn cairn(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    if !runs.has(at, "cairn_") || !runs.is_border(at) {
        return None;
    }
    let id = at + 6;
    let end = runs.end(Class::Word, id);
    let body = &runs.text[id..end];
    let (id, rest) = body.split_once('_')?;
    let is_id = id.len() == 12
        && id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (is_id && rest.len() >= 20).then(|| secret(at..end, "cairn-key", 6))
}

/// Header, content and signature, or as much of them as there is of two.
pub(super) fn jwt(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    if !runs.has(at, "eyJ") || !runs.is_border(at) {
        return None;
    }
    let head = runs.end(Class::Url, at);
    let end = runs.end(Class::Dotted, at);
    if head - at < 12 || runs.byte(head) != Some(b'.') {
        return None;
    }
    let rest = &runs.text[head + 1..end];
    let parts: Vec<&str> = rest.splitn(5, '.').collect();
    // An encrypted one has an empty part where its key is agreed on.
    let long = parts.iter().filter(|part| part.len() >= 8).count();
    let is_one = long >= 2 || rest.starts_with("eyJ") && rest.len() >= 10;
    is_one.then(|| secret(at..end, "jwt", 3))
}

/// `SK` and 32 hexadecimal digits.
pub(super) fn twilio(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    if !runs.has(at, "SK") || !runs.is_border(at) {
        return None;
    }
    let end = runs.end(Class::Hex, at + 2);
    let is_whole = end - at == 34 && runs.end(Class::Word, at + 2) == end;
    is_whole.then(|| secret(at..end, "twilio-key", 2))
}

/// `<number>:AA…`; the trigger is the colon.
pub(super) fn telegram(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    let digits = runs.text[..at].bytes().rev().take(12);
    let digits = digits.take_while(u8::is_ascii_digit).count();
    let end = runs.end(Class::Url, at + 1);
    let fits = (8..=10).contains(&digits) && end - at >= 33 && runs.has(at, ":AA");
    let start = at - digits;
    (fits && (runs.is_border(start) || runs.text[..start].ends_with("bot")))
        .then(|| secret(start..end, "telegram-token", 4))
}

/// 32 hexadecimal digits, `-us` and a number; the trigger is the dash.
pub(super) fn mailchimp(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    let end = runs.end(Class::Digit, at + 3);
    let start = at.checked_sub(32)?;
    let body = runs.text.get(start..at)?;
    let fits = end > at + 3 && body.bytes().all(|b| b.is_ascii_hexdigit());
    (fits && runs.is_border(start)).then(|| secret(start..end, "mailchimp-key", 4))
}

/// A client secret of Azure: three characters before the trigger, some thirty after it.
pub(super) fn azure(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    let start = at.checked_sub(3)?;
    let end = runs.end(Class::Dotted, at + 3);
    let head = runs.text.get(start..at)?;
    let fits = end - at >= 30 && head.bytes().all(|b| Class::Dotted.holds(b) || b == b'~');
    fits.then(|| secret(start..end, "azure-secret", 4))
}

/// `pat`, 14 letters or digits, a dot and 64 hexadecimal digits.
pub(super) fn airtable(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    if runs.byte(at + 17) != Some(b'.') || !runs.has(at, "pat") || !runs.is_border(at) {
        return None;
    }
    let is_id = runs.end(Class::Alnum, at) == at + 17;
    let end = runs.end(Class::Hex, at + 18);
    (is_id && end - at >= 58).then(|| secret(at..end, "airtable-token", 3))
}

/// `<14 letters>.atlasv1.<some 60 more>`; the trigger is the dot.
pub(super) fn terraform(runs: &mut Runs<'_>, at: usize) -> Option<Secret> {
    let before = runs.text[..at].bytes().rev().take(20);
    let before = before.take_while(u8::is_ascii_alphanumeric).count();
    let end = runs.end(Class::Dotted, at + 9);
    (before >= 10 && end - at >= 40).then(|| secret(at - before..end, "terraform-token", 8))
}

/// Bots of Discord: three parts, the first of which is a number in base64. Nothing begins them
/// that would be worth a trigger, so that their dots are looked at.
pub(super) fn discord(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('.') {
        if bytes.get(at + 7) != Some(&b'.') {
            continue;
        }
        let part = |b: &&u8| Class::Url.holds(**b);
        let head = bytes[..at].iter().rev().take(32).take_while(part).count();
        let middle = bytes[at + 1..at + 7].iter().take_while(part).count();
        let tail = bytes[at + 8..].iter().take(64).take_while(part).count();
        let mut start = at - head;
        // The letter of an escape before it is none of its own.
        if start > 0 && bytes[start - 1] == b'\\' && head > 0 {
            start += 1;
        }
        let head = at - start;
        let is_number = (23..=28).contains(&head)
            && matches!(bytes[start], b'M' | b'N' | b'O')
            && matches!(bytes[start + 1], b'D' | b'T' | b'j' | b'z');
        if is_number && middle == 6 && (27..=48).contains(&tail) {
            found.push(secret(start..at + 8 + tail, "discord-token", 3));
        }
    }
}
