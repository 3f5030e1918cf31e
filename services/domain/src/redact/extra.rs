//! The extension: patterns that an installation adds (`CAIRN_REDACT_EXTRA`). They count for the
//! whole process from the moment they are given, so that no way in can do without them.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use super::{MARK, Secret};
use crate::limits;

const KIND: &str = "extra";

static EXTRA: OnceLock<Vec<Regex>> = OnceLock::new();

/// Adds the patterns of a setting: regular expressions with white space between them, a space in
/// one written `\x20`. To be called once, before any text is read; later calls change nothing.
/// Gives a line for each pattern that is left out; the pattern itself is not repeated, for it may
/// be a secret in the wrong place.
pub fn extend(setting: &str) -> Vec<String> {
    let (patterns, warnings) = read(setting);
    // Whoever comes second has the same setting.
    drop(EXTRA.set(patterns));
    warnings
}

fn read(setting: &str) -> (Vec<Regex>, Vec<String>) {
    let (mut patterns, mut warnings) = (Vec::new(), Vec::new());
    let mut leave_out = |nth: usize, why: &str| {
        warnings.push(format!(
            "CAIRN_REDACT_EXTRA: pattern {nth} {why}; it is left out"
        ));
    };
    for (nth, pattern) in (1..).zip(setting.split_whitespace()) {
        if nth > limits::EXTRA_PATTERNS {
            leave_out(nth, &format!("is one more than {}", limits::EXTRA_PATTERNS));
            break;
        }
        if pattern.len() > limits::EXTRA_PATTERN_BYTES {
            leave_out(
                nth,
                &format!("is longer than {} bytes", limits::EXTRA_PATTERN_BYTES),
            );
            continue;
        }
        let compiled = RegexBuilder::new(pattern)
            .size_limit(limits::EXTRA_COMPILED_BYTES)
            .dfa_size_limit(limits::EXTRA_COMPILED_BYTES)
            .build();
        match compiled {
            Ok(compiled) if compiled.is_match("") => leave_out(nth, "fits nothing at all"),
            Ok(compiled) => patterns.push(compiled),
            Err(regex::Error::CompiledTooBig(_)) => leave_out(nth, "is too large"),
            Err(_) => leave_out(nth, "is no regular expression"),
        }
    }
    (patterns, warnings)
}

/// What the extension finds in a text.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    for pattern in EXTRA.get().into_iter().flatten() {
        find_one(pattern, text, found);
    }
}

fn find_one(pattern: &Regex, text: &str, found: &mut Vec<Secret>) {
    for hit in pattern.find_iter(text).filter(|hit| !hit.is_empty()) {
        // What was replaced before is not replaced again, or a mark would stand in a mark.
        let is_mark = hit.as_str().contains(MARK) || is_inside_mark(text, hit.start());
        if !is_mark {
            found.push(Secret {
                span: hit.range(),
                kind: KIND,
                rank: 300,
            });
        }
    }
}

/// Bytes of a mark, at most.
const MARK_BYTES: usize = 40;

fn is_inside_mark(text: &str, at: usize) -> bool {
    let from = text.floor_char_boundary(at.saturating_sub(MARK_BYTES));
    let before = &text[from..at];
    before.rfind('[').is_some_and(|open| {
        let rest = &text[from + open..];
        let close = rest.find(']').map_or(0, |close| from + open + close);
        rest.starts_with(MARK) && close >= at
            || MARK.starts_with(&before[open..]) && rest.starts_with(MARK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_patterns_are_left_out_and_the_others_count() {
        let long = "a".repeat(limits::EXTRA_PATTERN_BYTES + 1);
        let setting = format!("corp-[0-9]{{6}} ( a* {long} [a-z]{{1000}}{{1000}} emp\\x20\\d+");
        let (patterns, warnings) = read(&setting);
        assert_eq!(patterns.len(), 2, "{warnings:?}");
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(warnings.iter().all(|line| !line.contains("aaaa")));
        let mut found = Vec::new();
        for pattern in &patterns {
            find_one(pattern, "corp-123456 and emp 77 and corp-12", &mut found);
        }
        let spans: Vec<_> = found.iter().map(|secret| secret.span.clone()).collect();
        assert_eq!(spans, [0..11, 16..22]);
    }

    #[test]
    fn there_are_only_so_many() {
        let setting = vec!["x1"; limits::EXTRA_PATTERNS + 5].join("\n");
        let (patterns, warnings) = read(&setting);
        assert_eq!(
            (patterns.len(), warnings.len()),
            (limits::EXTRA_PATTERNS, 1)
        );
    }

    #[test]
    fn a_mark_is_not_marked_again() {
        let pattern = Regex::new(r"\w+").expect("a pattern");
        let mut found = Vec::new();
        find_one(&pattern, "[redacted:extra] [redacted:aws-key]", &mut found);
        assert_eq!(found, []);
    }
}
