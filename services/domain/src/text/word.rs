//! A word of an identifier or of prose: its split into parts, and the form in which a term is
//! kept.

use rust_stemmers::{Algorithm, Stemmer};

use crate::limits;

/// One word: `retry`, `retry_count`, `parseHTTPRequest2`, `don't`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its parts in lower case: `parse`, `http`, `request`, `2`. At least one.
    pub parts: Vec<String>,
    /// All of it in lower case, without the signs that joined the parts.
    pub whole: String,
}

impl Word {
    /// Splits a text without dots and slashes; `None` if it holds no letter or digit.
    pub(super) fn of(text: &str) -> Option<Self> {
        let pieces = text.split(['-', '_', '\'']).filter(|p| !p.is_empty());
        let parts: Vec<String> = pieces.flat_map(humps).map(|p| p.to_lowercase()).collect();
        if parts.is_empty() {
            return None;
        }
        let whole = if text.chars().any(char::is_alphabetic) {
            parts.concat()
        } else {
            // `1-2` is not the number twelve.
            parts.join("-")
        };
        Some(Self { parts, whole })
    }

    /// Whether it has more than one part.
    pub(super) fn is_compound(&self) -> bool {
        self.parts.len() > 1
    }

    /// Whether every part is a number or a single letter, so that the parts alone mean nothing.
    pub(super) fn is_numeric(&self) -> bool {
        self.parts.iter().all(|p| says_little(p))
    }
}

/// Whether a part says nothing by itself: a number, or a single letter.
pub(super) fn says_little(part: &str) -> bool {
    part.chars().all(char::is_numeric) || part.chars().count() == 1
}

/// The form in which a word or a compound is kept: stemmed if it is an ASCII word of more than
/// two letters, as it stands otherwise. `None` if it is too long to be a term.
pub(super) fn term(text: &str) -> Option<String> {
    if text.is_empty() || text.chars().count() > limits::TERM_CHARS {
        return None;
    }
    if text.len() > 2 && text.bytes().all(|b| b.is_ascii_lowercase()) {
        return Some(Stemmer::create(Algorithm::English).stem(text).into_owned());
    }
    Some(text.to_owned())
}

/// The parts of a camelCase word: `parse`, `HTTP`, `Request`, `2`.
fn humps(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for at in 1..chars.len() {
        if is_border(&chars, at) {
            parts.push(&word[from..chars[at].0]);
            from = chars[at].0;
        }
    }
    parts.push(&word[from..]);
    parts
}

fn is_border(chars: &[(usize, char)], at: usize) -> bool {
    let (before, here) = (chars[at - 1].1, chars[at].1);
    if before.is_numeric() != here.is_numeric() {
        return true;
    }
    if !here.is_uppercase() {
        return false;
    }
    let next = chars.get(at + 1).map(|(_, c)| *c);
    let next_is_lower = next.is_some_and(char::is_lowercase);
    // The `s` of `URLs` is a plural, not the head of a word.
    let plural = next == Some('s') && !chars.get(at + 2).is_some_and(|(_, c)| c.is_alphabetic());
    before.is_lowercase() || (before.is_uppercase() && next_is_lower && !plural)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("parseHTTPRequest2", "parse http request 2", "parsehttprequest2")]
    #[case("retry_count", "retry count", "retrycount")]
    #[case("retry-count", "retry count", "retrycount")]
    #[case("RETRY_COUNT", "retry count", "retrycount")]
    #[case("URLs", "urls", "urls")]
    #[case("don't", "don t", "dont")]
    #[case("5xx", "5 xx", "5xx")]
    #[case("2026-10-12", "2026 10 12", "2026-10-12")]
    #[case("ÉcoleÉté", "école été", "écoleété")]
    fn a_word_is_split_and_kept_joined(
        #[case] text: &str,
        #[case] parts: &str,
        #[case] whole: &str,
    ) {
        let word = Word::of(text).expect("a word");
        assert_eq!(
            (word.parts.join(" "), word.whole.as_str()),
            (parts.to_owned(), whole)
        );
    }

    #[test]
    fn signs_alone_are_no_word() {
        assert_eq!(Word::of("-_'"), None);
    }

    #[test]
    fn english_words_are_stemmed_and_nothing_else() {
        assert_eq!(term("workers").as_deref(), Some("worker"));
        assert_eq!(term("is").as_deref(), Some("is"));
        assert_eq!(term("utf8s").as_deref(), Some("utf8s"));
        assert_eq!(term("a/workers").as_deref(), Some("a/workers"));
    }

    #[test]
    fn terms_over_120_characters_are_dropped() {
        assert_eq!(term(&"é".repeat(120)), Some("é".repeat(120)));
        assert_eq!(term(&"é".repeat(121)), None);
    }
}
