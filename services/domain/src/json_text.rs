//! JSON as text: mending what a strict parser refuses, without touching anything else.
//!
//! Agents produce unpaired surrogate escapes (half an emoji at a cut) and NUL. Both become
//! U+FFFD in every decoded text (contract 3.4); all other bytes stay as they were written.

use std::borrow::Cow;

/// Replaces, in a JSON text, escapes of unpaired surrogates and of NUL by `\ufffd`. The length of
/// the text and everything else in it stay the same; text without such escapes is not copied.
#[must_use]
pub fn mend_escapes(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'\\') {
        at += found;
        let Some(code) = escape(bytes, at) else {
            // `\n`, `\\` and the like are two bytes; a malformed one is the parser's to refuse.
            at = (at + 2).min(bytes.len());
            continue;
        };
        let low = escape(bytes, at + 6).filter(|low| (0xDC00..0xE000).contains(low));
        match (code, low) {
            (0xD800..0xDC00, Some(_)) => at += 12,
            (0 | 0xD800..0xE000, _) => {
                let copy = mended.get_or_insert_with(|| bytes.to_vec());
                copy[at + 2..at + 6].copy_from_slice(b"fffd");
                at += 6;
            }
            _ => at += 6,
        }
    }
    match mended.map(String::from_utf8) {
        Some(Ok(text)) => Cow::Owned(text),
        // Only ASCII was replaced by ASCII, so the text is still UTF-8.
        Some(Err(_)) | None => Cow::Borrowed(json),
    }
}

/// The code unit of a `\uXXXX` escape at `at`.
fn escape(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Gives each string literal of a JSON text, quotes included, to `change`, and puts what it
/// returns in the literal's place. Everything else stays as it was written; a text in which
/// nothing changes is not copied. The text need not be valid: what follows an unclosed quote is
/// left alone.
#[must_use]
pub fn map_strings(json: &str, mut change: impl FnMut(&str) -> Option<String>) -> Cow<'_, str> {
    let mut changed: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(span) = next_string(json, at) {
        if let Some(new) = change(&json[span.clone()]) {
            let text = changed.get_or_insert_with(String::new);
            text.push_str(&json[copied..span.start]);
            text.push_str(&new);
            copied = span.end;
        }
        at = span.end;
    }
    match changed {
        Some(mut text) => {
            text.push_str(&json[copied..]);
            Cow::Owned(text)
        }
        None => Cow::Borrowed(json),
    }
}

/// Where the next string literal at or after `from` stands, quotes included.
#[must_use]
pub fn next_string(json: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let bytes = json.as_bytes();
    let start = from + bytes.get(from..)?.iter().position(|b| *b == b'"')?;
    let mut at = start + 1;
    loop {
        at += bytes
            .get(at..)?
            .iter()
            .position(|b| matches!(b, b'"' | b'\\'))?;
        if bytes[at] == b'"' {
            return Some(start..at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::half_an_emoji(r#""ok \ud83d done""#, r#""ok \ufffd done""#)]
    #[case::lone_low(r#""\ude00""#, r#""\ufffd""#)]
    #[case::in_a_key(r#"{"a\uD83D":1}"#, r#"{"a\ufffd":1}"#)]
    #[case::nul(r#""ELF\u0000x""#, r#""ELF\ufffdx""#)]
    #[case::two_highs(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#)]
    #[case::whole_pair(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#)]
    #[case::escaped_backslash(r#""\\ud83d""#, r#""\\ud83d""#)]
    #[case::after_escaped_backslash(r#""\\\ud83d""#, r#""\\\ufffd""#)]
    #[case::cut_off(r#""\ud83"#, r#""\ud83"#)]
    #[case::ends_in_backslash("\"\\", "\"\\")]
    fn c006_half_a_pair_becomes_the_replacement_character(#[case] given: &str, #[case] want: &str) {
        assert_eq!(mend_escapes(given), want);
    }

    proptest! {
        #[test]
        fn any_text_of_escapes_parses_afterwards(units in prop::collection::vec(any::<u16>(), 0..40)) {
            let json: String = units.iter().map(|u| format!("\\u{u:04x}")).collect();
            let mended = format!("\"{}\"", mend_escapes(&json));
            let text: String = serde_json::from_str(&mended).expect("parses");
            prop_assert!(!text.contains('\0'));
        }

        #[test]
        fn text_without_escapes_is_untouched(text in "[^\\\\]*") {
            prop_assert!(matches!(mend_escapes(&text), Cow::Borrowed(same) if same == text));
        }
    }
}
