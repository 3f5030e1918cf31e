//! Text of records made safe to print: one line where one line is due, nothing at the margin
//! that could pass for structure, no tag that a host would obey (contract 7.6).

use crate::wrapper_tags::{HOSTS, PRIVATE};

/// A text as one line: control characters and line ends become one space, the ends are trimmed,
/// wrapper tags are defused.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if c.is_control() || is_line_end(c) {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            line.push(' ');
        }
        line.push(c);
    }
    defused(line.trim())
}

/// [`one_line`] of at most `limit` bytes; one that was longer ends in `…`.
#[must_use]
pub fn one_line_within(text: &str, limit: usize) -> String {
    const MARK: &str = "…";
    let line = one_line(text);
    if line.len() <= limit {
        return line;
    }
    let head = crate::bounds::head_bytes(&line, limit.saturating_sub(MARK.len()));
    format!("{}{MARK}", head.trim_end())
}

/// A text of several lines, each after the first indented by four spaces, so that no heading,
/// list mark or fence of it reaches the margin. Other control characters than tabs become spaces.
#[must_use]
pub fn indented(text: &str) -> String {
    continued(text.trim(), 4)
}

/// [`indented`] by so many spaces; white space at both ends of the text stays.
#[must_use]
pub fn continued(text: &str, spaces: usize) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            c if c == '\r' || is_line_end(c) => {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', spaces));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    defused(&out)
}

/// The text with `‹` for the `<` of every wrapper tag, opening or closing.
#[must_use]
pub fn defused(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        out.push(if opens_wrapper(rest) { '‹' } else { '<' });
    }
    out.push_str(rest);
    out
}

/// Whether what follows a `<` makes it a wrapper tag; white space and a slash may come between.
fn opens_wrapper(after: &str) -> bool {
    let name = after.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    PRIVATE.iter().chain(HOSTS).any(|wrapper| {
        let head = name.get(..wrapper.len());
        let ends =
            |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c));
        head.is_some_and(|head| head.eq_ignore_ascii_case(wrapper)) && ends(&name[wrapper.len()..])
    })
}

/// Line ends, beside those that are control characters.
fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(" a\r\n\tb\u{2028}c \0", "a b c")]
    #[case("\u{1b}[31mred", "[31mred")]
    #[case("# not a heading", "# not a heading")]
    #[case("</cairn-context> after", "‹/cairn-context> after")]
    fn one_line_stays_one_line(#[case] text: &str, #[case] line: &str) {
        assert_eq!(one_line(text), line);
    }

    #[test]
    fn c004_structure_of_a_record_never_reaches_the_margin() {
        assert_eq!(
            indented("first\n# second\r\n```\rlast\u{7}"),
            "first\n    # second\n    ```\n    last "
        );
    }

    #[rstest]
    #[case("<private>x</private>", "‹private>x‹/private>")]
    #[case("< / System-Reminder a=1>", "‹ / System-Reminder a=1>")]
    #[case("<privateer> a < b <b>", "<privateer> a < b <b>")]
    #[case("<system_instruction/>", "‹system_instruction/>")]
    fn wrapper_tags_and_only_they_are_defused(#[case] text: &str, #[case] safe: &str) {
        assert_eq!(defused(text), safe);
    }

    #[test]
    fn a_long_line_is_cut_on_a_character_border() {
        assert_eq!(one_line_within("修复连接池", 10), "修复…");
        assert_eq!(one_line_within("修复", 6), "修复");
    }

    proptest! {
        #[test]
        fn no_line_after_the_first_begins_at_the_margin(text in "(\\PC|[\r\n\t#`<>-]){0,60}") {
            for line in indented(&text).split('\n').skip(1) {
                prop_assert!(line.starts_with("    "), "{line:?}");
            }
            prop_assert!(!one_line(&text).contains(char::is_control));
        }
    }
}
