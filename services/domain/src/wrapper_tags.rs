//! Wrapper tags: what hosts and people wrap around text that memory must not keep (contract 4.4).
//!
//! Each tag goes with its content. Client and server both pass every captured text through here;
//! secrets without a tag are not this module's business.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// The tag whose content goes even when nobody closed it.
pub(crate) const PRIVATE: &[&str] = &["private"];

/// Tags that hosts and memory products write around text of their own.
pub(crate) const HOSTS: &[&str] = &[
    "cairn-context",
    "claude-mem-context",
    "memory-context",
    "system-reminder",
    "system_instruction",
    "system-instruction",
    "persisted-output",
];

/// The text without wrapper tags and their content. Time grows linearly with the text; a text
/// without tags is not copied.
#[must_use]
pub fn strip(text: &str) -> Cow<'_, str> {
    // Private first: another wrapper that closes inside it must not give its content back.
    match strip_names(text, PRIVATE) {
        Cow::Borrowed(text) => strip_names(text, HOSTS),
        Cow::Owned(text) => Cow::Owned(strip_names(&text, HOSTS).into_owned()),
    }
}

/// [`strip`] for every string of a JSON text, keys included. Strings that hold no tag stay as
/// they were written; a string that cannot be decoded stays too.
#[must_use]
pub fn strip_json(json: &str) -> Cow<'_, str> {
    crate::json_text::map_strings(json, |literal| {
        if !may_hold_tag(literal) {
            return None;
        }
        let text: String = serde_json::from_str(literal).ok()?;
        match strip(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(kept) => serde_json::to_string(&kept).ok(),
        }
    })
}

/// Whether a string literal can hold a `<`, plain or escaped.
fn may_hold_tag(literal: &str) -> bool {
    literal.contains('<') || literal.contains("\\u003c") || literal.contains("\\u003C")
}

/// One opening or closing tag.
struct Tag {
    span: Range<usize>,
    name: &'static str,
    closes: bool,
}

fn strip_names<'a>(text: &'a str, names: &[&'static str]) -> Cow<'a, str> {
    let tags = find_tags(text, names);
    let partners = pair(&tags);
    let mut kept = String::new();
    let mut copied = 0;
    for (index, tag) in tags.iter().enumerate() {
        // Inside what was just removed, or a closing tag that nothing opened.
        if tag.span.start < copied || tag.closes {
            continue;
        }
        kept.push_str(&text[copied..tag.span.start]);
        copied = match partners.get(&index) {
            Some(end) => *end,
            None if tag.name == "private" => text.len(),
            None => tag.span.end,
        };
    }
    if copied == 0 && kept.is_empty() {
        return Cow::Borrowed(text);
    }
    kept.push_str(&text[copied..]);
    Cow::Owned(kept)
}

/// For each opening tag that is closed, where its closing tag ends.
fn pair(tags: &[Tag]) -> HashMap<usize, usize> {
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut partners = HashMap::new();
    for (index, tag) in tags.iter().enumerate() {
        let stack = open.entry(tag.name).or_default();
        if !tag.closes {
            stack.push(index);
        } else if let Some(opened) = stack.pop() {
            partners.insert(opened, tag.span.end);
        }
    }
    partners
}

fn find_tags(text: &str, names: &[&'static str]) -> Vec<Tag> {
    let starts = text.match_indices('<').map(|(at, _)| at);
    starts.filter_map(|at| tag_at(text, at, names)).collect()
}

/// The tag that starts with the `<` at `at`. It ends at the first `>`; another `<` before that
/// means that this one was none, which also keeps the search linear.
fn tag_at(text: &str, at: usize, names: &[&'static str]) -> Option<Tag> {
    let after = &text[at + 1..];
    let closes = after.starts_with('/');
    let from = at + 1 + usize::from(closes);
    let name = names.iter().copied().find(|name| {
        let word = text.as_bytes().get(from..from + name.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    })?;
    let inner = &text[from + name.len()..];
    let end = inner.find(['<', '>'])?;
    let attributes = &inner[..end];
    let begins_well = attributes.is_empty() || attributes.starts_with([' ', '\t', '\n', '\r', '/']);
    (inner.as_bytes()[end] == b'>' && begins_well).then_some(Tag {
        span: at..from + name.len() + end + 1,
        name,
        closes,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::unclosed("key <private>S", "key ")]
    #[case::unclosed_alone("<private>S", "")]
    #[case::nested("<private>a <private>b</private> S</private>", "")]
    #[case::spaces("<private >S</private >", "")]
    #[case::case("<PRIVATE>S</Private>", "")]
    #[case::line_end("<private\n>S</private>", "")]
    #[case::stray_close("x </private> S stays", "x </private> S stays")]
    #[case::attribute("a <private why=\"x\">S</private> b", "a  b")]
    #[case::other_wrapper_closes_inside(
        "<memory-context><private></memory-context>S</private> b",
        " b"
    )]
    #[case::longer_name("<privateer>S</privateer>", "<privateer>S</privateer>")]
    fn c064_private_marks_that_are_not_well_formed(#[case] given: &str, #[case] want: &str) {
        assert_eq!(strip(given), want);
    }

    #[rstest]
    #[case(
        "before <memory-context>41 old title</memory-context> \
         <persisted-output>saved</persisted-output> after",
        "before   after"
    )]
    #[case("a <system-reminder>b c", "a b c")]
    #[case(
        "<system_instruction>x</system-instruction> y",
        "x</system-instruction> y"
    )]
    fn c003_wrapped_text_goes_and_what_surrounds_it_stays(#[case] given: &str, #[case] want: &str) {
        assert_eq!(strip(given), want);
    }

    #[rstest]
    #[case::plain(r#"{"a":"x <private>S</private>","n":1.50}"#, r#"{"a":"x ","n":1.50}"#)]
    #[case::escaped(r#"["\u003cprivate>S\u003c/private>","\u00e9"]"#, r#"["","\u00e9"]"#)]
    #[case::none(r#"{"a": "1 < 2"}"#, r#"{"a": "1 < 2"}"#)]
    fn c064_only_strings_that_change_are_written_again(#[case] given: &str, #[case] want: &str) {
        assert_eq!(strip_json(given), want);
    }

    #[test]
    fn a_long_row_of_opening_tags_takes_linear_time() {
        let text = "<memory-context>".repeat(20_000) + &"<private ".repeat(20_000);
        let kept = strip(&text);
        assert!(!kept.contains("memory-context") && kept.ends_with("<private "));
    }

    proptest! {
        #[test]
        fn text_without_tags_is_untouched(text in "[^<]*") {
            prop_assert!(matches!(strip(&text), Cow::Borrowed(same) if same == text));
        }

        #[test]
        fn what_a_closed_mark_holds_is_gone(
            before in "[a-z <>/]{0,12}", secret in "[<>/a-z ]{0,6}SECRET", after in "[a-z ]{0,12}",
        ) {
            let text = format!("{before}\n<private>{secret}</private>{after}");
            prop_assert!(!strip(&text).contains("SECRET"));
        }
    }
}
