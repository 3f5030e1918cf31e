//! What was changed in a tool use before it was stored, as far as the stored text tells.

use super::{Evidence, ToolUseDraft};

/// Something that was done to the text of a tool use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alteration {
    /// Secrets were replaced: the text holds a mark `[redacted:<kind>]`.
    Redacted,
    /// It was longer than what is kept.
    Cut,
    /// A picture or other bytes were replaced: the text holds a mark
    /// `[<kind> <media type> <bytes> bytes sha256:<16 hex>]`.
    Blob,
}

impl Alteration {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redacted => "redacted",
            Self::Cut => "cut",
            Self::Blob => "blob",
        }
    }
}

impl ToolUseDraft {
    /// What was done to either side, each once. A tool's own text that reads like a mark counts
    /// as one: nothing else tells them apart.
    #[must_use]
    pub fn alterations(&self) -> Vec<Alteration> {
        let sides = [&self.input, &self.output];
        let mut found = Vec::new();
        let mut note = |alteration, is_there: fn(&Evidence) -> bool| {
            if sides.into_iter().any(is_there) {
                found.push(alteration);
            }
        };
        note(Alteration::Redacted, |side| {
            holds_mark(&side.text, is_redaction)
        });
        note(Alteration::Cut, Evidence::is_cut);
        note(Alteration::Blob, |side| holds_mark(&side.text, is_blob));
        found
    }
}

/// Whether some `[…]` without brackets inside is such a mark.
fn holds_mark(text: &str, is_mark: fn(&str) -> bool) -> bool {
    let inner = |after: &'_ str| -> bool {
        let end = after.find([']', '[', '"']);
        end.is_some_and(|end| after[end..].starts_with(']') && is_mark(&after[..end]))
    };
    text.match_indices('[')
        .any(|(at, _)| inner(&text[at + 1..]))
}

fn is_redaction(inner: &str) -> bool {
    let kind = inner.strip_prefix("redacted:");
    kind.is_some_and(|kind| !kind.is_empty() && kind.bytes().all(is_word))
}

fn is_blob(inner: &str) -> bool {
    let words: Vec<&str> = inner.split(' ').collect();
    let [kind, media, bytes, "bytes", digest] = words.as_slice() else {
        return false;
    };
    let is_digest = |hex: &str| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    !kind.is_empty()
        && kind.bytes().all(is_word)
        && media.contains('/')
        && !bytes.is_empty()
        && bytes.bytes().all(|b| b.is_ascii_digit())
        && digest.strip_prefix("sha256:").is_some_and(is_digest)
}

const fn is_word(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(r#"{"a":["x"],"b":[]}"#, "")]
    #[case::redacted(r#"["key=[redacted:aws-key] rest"]"#, "redacted")]
    #[case::blob(
        r#"["see [image image/png 1200 bytes sha256:0123456789abcdef]"]"#,
        "blob"
    )]
    #[case::both(
        r#"[[["[redacted:jwt]","[blob application/pdf 9 bytes sha256:0123456789abcdef]"]]]"#,
        "redacted blob"
    )]
    #[case::no_kind("[redacted:]", "")]
    #[case::prose("[redacted: see above] [image of 3 bytes]", "")]
    #[case::short_digest("[image image/png 12 bytes sha256:01234]", "")]
    #[case::not_closed("[redacted:jwt [image image/png 12 bytes sha256:0123456789abcdef", "")]
    fn marks_tell_what_was_done(#[case] text: &str, #[case] says: &str) {
        let names = |input: Evidence, output: Evidence| {
            let draft = ToolUseDraft {
                input,
                output,
                ..ToolUseDraft::default()
            };
            let names: Vec<_> = draft.alterations().iter().map(|a| a.name()).collect();
            names.join(" ")
        };
        assert_eq!(names(Evidence::of(text), Evidence::of("")), says);
        assert_eq!(names(Evidence::of("1"), Evidence::of(text)), says);
        let cut = Evidence::of("x…[cut 9 bytes]").cut_from(10_000, [1; 32]);
        assert_eq!(names(cut, Evidence::of("")), "cut");
    }
}
