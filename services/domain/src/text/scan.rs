//! The first cut of a text: NFKC, then runs of characters written without spaces (Han, kana,
//! Hangul) and chunks of everything else that holds together. What a chunk means is not decided
//! here.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What stands between two gaps of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Characters of a script without spaces between words.
    Run(Vec<char>),
    /// Letters and digits of other scripts, with the signs that join them.
    Chunk(String),
}

/// The pieces of a text, in order.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let chars: Vec<char> = text.nfkc().map(straight_quote).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let end = end_of(&chars, at, |_, c| is_unspaced(c));
        if end > at {
            found.push(Piece::Run(chars[at..end].to_vec()));
            at = end;
            continue;
        }
        let end = end_of(&chars, at, in_chunk);
        if end > at {
            found.push(Piece::Chunk(chars[at..end].iter().collect()));
        }
        at = end.max(at + 1);
    }
    found
}

/// Whether a letter or digit of any script, with its marks.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// The first place from `at` on whose character, seen with the one before it, does not belong.
fn end_of(chars: &[char], at: usize, belongs: impl Fn(Option<char>, char) -> bool) -> usize {
    let mut before = None;
    for (offset, &c) in chars[at..].iter().enumerate() {
        if !belongs(before, c) {
            return at + offset;
        }
        before = Some(c);
    }
    chars.len()
}

fn in_chunk(before: Option<char>, c: char) -> bool {
    match c {
        '.' | '_' | '/' | '\\' | '-' | '@' | ':' | '#' | '+' | '\'' => true,
        // Only as the head of an arrow; a lone `>` compares or quotes.
        '>' => before == Some('-'),
        _ => is_word(c) && !is_unspaced(c),
    }
}

fn straight_quote(c: char) -> char {
    if c == '\u{2019}' { '\'' } else { c }
}

/// Han, kana and Hangul, with the marks that repeat or lengthen them.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}'
        | '\u{309D}'..='\u{309F}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        | '\u{3105}'..='\u{312F}'
        | '\u{31A0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{1100}'..='\u{11FF}'
        | '\u{AC00}'..='\u{D7FF}'
        | '\u{1B000}'..='\u{1B16F}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let show = |piece| match piece {
            Piece::Run(run) => format!("run {}", run.into_iter().collect::<String>()),
            Piece::Chunk(chunk) => format!("chunk {chunk}"),
        };
        pieces(text).into_iter().map(show).collect()
    }

    #[test]
    fn a_text_falls_into_runs_and_chunks() {
        assert_eq!(
            shown("修复pool泄漏 in src/net/retry.ts"),
            [
                "run 修复",
                "chunk pool",
                "run 泄漏",
                "chunk in",
                "chunk src/net/retry.ts"
            ]
        );
    }

    #[test]
    fn wide_and_composed_forms_are_folded() {
        assert_eq!(shown("ＡＰＩ　ｶﾞ"), ["chunk API", "run ガ"]);
        assert_eq!(shown("cafe\u{301}"), ["chunk café"]);
    }

    #[test]
    fn an_arrow_joins_and_a_comparison_parts() {
        assert_eq!(
            shown("a->b x>y <-> don’t"),
            [
                "chunk a->b",
                "chunk x",
                "chunk y",
                "chunk ->",
                "chunk don't"
            ]
        );
    }
}
