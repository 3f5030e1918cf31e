//! Holding texts to their limits: cutting what capture may cut, refusing the rest.
//!
//! Every cut falls on a character border, leaves a mark that says how much is missing, and stays
//! within the limit with the mark included.

use crate::Rejection;
use crate::limits;
use crate::redact::safe;

/// What happens to a text over its limit (contract 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// Capture, observers and import: shortened, with a mark.
    Cut,
    /// API and tools: `invalid_field`, naming the field and the limit.
    Refuse,
}

/// A limit and what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// UTF-16 code units.
    Units(usize),
    /// Bytes of UTF-8.
    Bytes(usize),
}

impl Bound {
    /// Whether `text` is within the limit.
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        match self {
            Self::Units(limit) => units(text) <= limit,
            Self::Bytes(limit) => text.len() <= limit,
        }
    }

    fn says(self) -> String {
        match self {
            Self::Units(limit) => format!("at most {limit} UTF-16 code units"),
            Self::Bytes(limit) => format!("at most {limit} bytes"),
        }
    }
}

/// Length in UTF-16 code units.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The estimate of a text's tokens that budgets use: a quarter of its ASCII units plus all others,
/// rounded up (contract, "Units").
#[must_use]
pub fn est_tokens(text: &str) -> usize {
    crate::room::Size::of(text).tokens()
}

/// A text that capture may cut, without NUL and without what must never be kept: private passages,
/// what hosts and Cairn itself put into a conversation, secrets. Clients take those out before; not
/// every client is ours. A text that is within its limit stays so: marks in it may be cut.
///
/// # Errors
/// `invalid_field` at `pointer` if it is too long and may not be cut.
pub fn text(
    pointer: &str,
    value: String,
    bound: Bound,
    oversize: Oversize,
) -> Result<String, Rejection> {
    let fitted = bound.holds(&value);
    let value = clean(safe(&value).into_owned());
    if bound.holds(&value) {
        return Ok(value);
    }
    match oversize {
        Oversize::Refuse if !fitted => Err(Rejection::invalid_field(pointer, bound.says())),
        Oversize::Cut | Oversize::Refuse => Ok(cut(&value, bound)),
    }
}

/// A name or an id: never cut, never empty, without secrets.
///
/// # Errors
/// `invalid_field` at `pointer` if it is empty or over `limit` bytes.
pub fn word(pointer: &str, value: String, limit: usize) -> Result<String, Rejection> {
    let value = clean(value);
    if value.trim().is_empty() {
        return Err(Rejection::invalid_field(pointer, "must not be empty"));
    }
    if value.len() > limit {
        return Err(Rejection::invalid_field(
            pointer,
            Bound::Bytes(limit).says(),
        ));
    }
    let kept = safe(&value);
    if kept.trim().is_empty() {
        return Err(Rejection::invalid_field(
            pointer,
            "must not be wholly private",
        ));
    }
    // Marks may be longer than what they stand for.
    Ok(head_bytes(&kept, limit).to_owned())
}

/// [`word`] for a field that may be absent; an empty one counts as absent.
///
/// # Errors
/// As [`word`].
pub fn optional_word(
    pointer: &str,
    value: Option<String>,
    limit: usize,
) -> Result<Option<String>, Rejection> {
    value
        .filter(|v| !v.trim().is_empty())
        .map(|v| word(pointer, v, limit))
        .transpose()
}

/// A file path: a longer one is cut in its middle, so that the file name stays.
///
/// # Errors
/// `invalid_field` at `pointer` if it is too long and may not be cut.
pub fn path(pointer: &str, value: String, oversize: Oversize) -> Result<String, Rejection> {
    let bound = Bound::Bytes(limits::PATH_BYTES);
    let fitted = bound.holds(&value);
    let value = clean(safe(&value).into_owned());
    if bound.holds(&value) {
        return Ok(value);
    }
    match oversize {
        Oversize::Refuse if !fitted => Err(Rejection::invalid_field(pointer, bound.says())),
        Oversize::Cut | Oversize::Refuse => Ok(cut_middle(&value, limits::PATH_BYTES)),
    }
}

/// A list of paths without empty ones, at most [`limits::FILES`] long, and how many were left
/// out.
///
/// # Errors
/// As [`path`], with the item's index in the pointer.
pub fn paths(
    pointer: &str,
    values: Vec<String>,
    oversize: Oversize,
) -> Result<(Vec<String>, u32), Rejection> {
    let left_out = values.len().saturating_sub(limits::FILES);
    if left_out > 0 && oversize == Oversize::Refuse {
        return Err(Rejection::invalid_field(
            pointer,
            format!("at most {} files", limits::FILES),
        ));
    }
    let kept = values
        .into_iter()
        .take(limits::FILES)
        .enumerate()
        .filter(|(_, value)| !value.trim().is_empty())
        .map(|(index, value)| path(&format!("{pointer}/{index}"), value, oversize))
        .collect::<Result<_, _>>()?;
    Ok((kept, u32::try_from(left_out).unwrap_or(u32::MAX)))
}

/// NUL becomes U+FFFD: Postgres keeps no NUL, and a reader should see that something was there.
#[must_use]
pub fn clean(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// Shortens `text` to `bound`, its mark included. A text within the bound comes back unchanged.
#[must_use]
pub fn cut(text: &str, bound: Bound) -> String {
    if bound.holds(text) {
        return text.to_owned();
    }
    // The mark's length depends on the count it prints; its longest form is reserved.
    let widest = mark(text.len());
    let kept = match bound {
        Bound::Units(limit) => head_units(text, limit.saturating_sub(units(&widest))),
        Bound::Bytes(limit) => head_bytes(text, limit.saturating_sub(widest.len())),
    };
    format!("{kept}{}", mark(text.len() - kept.len()))
}

/// The longest head of `text` of at most `limit` bytes that ends on a character border.
#[must_use]
pub fn head_bytes(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// The longest head of `text` of at most `limit` units that ends on a character border.
#[must_use]
pub fn head_units(text: &str, limit: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > limit {
            return &text[..at];
        }
    }
    text
}

fn cut_middle(text: &str, limit: usize) -> String {
    let name_at = text.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
    let widest = mark(text.len());
    let room = limit - widest.len();
    let tail_at = text.ceil_char_boundary(text.len() - (text.len() - name_at).min(room / 2));
    let head = head_bytes(text, room - (text.len() - tail_at));
    format!("{head}{}{}", mark(tail_at - head.len()), &text[tail_at..])
}

fn mark(bytes: usize) -> String {
    format!("…[cut {bytes} bytes]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_is_left_alone() {
        assert_eq!(cut("修复", Bound::Units(2)), "修复");
    }

    #[test]
    fn a_cut_says_how_much_is_missing() {
        let text = "x".repeat(100);
        assert_eq!(
            cut(&text, Bound::Bytes(40)),
            format!("{}…[cut 78 bytes]", "x".repeat(22))
        );
    }

    #[test]
    fn tokens_are_estimated_by_script() {
        assert_eq!(est_tokens("修复 pool"), 4);
        assert_eq!(est_tokens(""), 0);
    }

    #[test]
    fn a_cut_path_keeps_its_file_name() {
        let long = format!("src/{}/pool.rs", "d".repeat(3_000));
        let kept = path("/p", long, Oversize::Cut).expect("cut");
        assert!(
            kept.len() <= limits::PATH_BYTES && kept.ends_with("pool.rs"),
            "{kept}"
        );
    }

    #[test]
    fn names_are_refused_never_cut() {
        assert!(word("/list", "x".repeat(300), 256).is_err());
        assert!(word("/list", "  ".to_owned(), 256).is_err());
    }

    proptest! {
        #[test]
        fn every_cut_stays_within_its_limit(text in "\\PC{0,400}", limit in 30_usize..300) {
            prop_assert!(Bound::Bytes(limit).holds(&cut(&text, Bound::Bytes(limit))));
            prop_assert!(Bound::Units(limit).holds(&cut(&text, Bound::Units(limit))));
        }

        #[test]
        fn every_path_fits(text in "\\PC{0,3000}") {
            let kept = path("/p", text, Oversize::Cut).expect("cut");
            prop_assert!(kept.len() <= limits::PATH_BYTES);
        }
    }
}
