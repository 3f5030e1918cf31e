//! Assignments: what a name of a secret is given, in shells, settings, code, markup, addresses
//! and commands.

use std::ops::Range;

use super::Secret;
use super::names::{Field, Name};
use super::runs::{Runs, count};
use super::value::{Form, is_secret};

/// Bytes of a name on each side of the word in it.
const NAME: usize = 96;
/// White space between a name and its value.
const GAP: usize = 64;
/// Bytes of a value between quotes; what is longer ends there for us.
const QUOTED: usize = 8 * 1024;
/// Names that are looked at inside of one value: each may reach to its end.
const INSIDE: usize = 32;
/// Rank of a secret that only its name gives away.
const RANK: usize = 200;

/// What the walk remembers between names.
#[derive(Default)]
pub(super) struct Seen {
    /// Where the last name ended: several words of one name are one name.
    end: usize,
    /// Where the value ends that was looked at last, and how many names in it have been.
    value: usize,
    inside: usize,
}

impl Seen {
    /// The secret that the name around a word is given.
    pub(super) fn find(&mut self, runs: &Runs<'_>, word: Range<usize>) -> Option<Secret> {
        if word.end <= self.end {
            return None;
        }
        let span = name_around(runs, &word);
        self.end = span.end;
        self.inside = if span.start < self.value {
            self.inside + 1
        } else {
            0
        };
        if self.inside > INSIDE {
            return None;
        }
        let text = &runs.text[span.clone()];
        let name = Name::of(text)?;
        if Field::of(text).is_some() {
            return None;
        }
        let (value, form) = value_of(runs, &span)?;
        self.value = self.value.max(value.end);
        let given = &runs.text[value.clone()];
        is_secret(given, name, form).then_some(Secret {
            span: value,
            kind: name.kind,
            rank: RANK,
        })
    }
}

const fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

fn name_around(runs: &Runs<'_>, word: &Range<usize>) -> Range<usize> {
    let bytes = runs.text.as_bytes();
    let before = bytes[..word.start].iter().rev().take(NAME);
    let mut start = word.start - before.take_while(|b| is_name(**b)).count();
    let after = bytes[word.end..].iter().take(NAME);
    let mut end = word.end + after.take_while(|b| is_name(**b)).count();
    // Escapes such as `\n` before a name are not its letters.
    if start > 0 && bytes[start - 1] == b'\\' && matches!(bytes[start], b'n' | b't' | b'r') {
        start += 1;
    }
    while end > word.end && matches!(bytes[end - 1], b'.' | b'-') {
        end -= 1;
    }
    start.min(word.start)..end
}

/// Reads on in a text.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes bytes of a kind, at most [`GAP`]; how many there were.
    fn skip(&mut self, is: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at.min(self.text.len())..];
        let count = rest.iter().take(GAP).take_while(|b| is(**b)).count();
        self.at += count;
        count
    }

    fn spaces(&mut self) -> usize {
        self.skip(|b| matches!(b, b' ' | b'\t'))
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    /// A quote, with the backslashes before it: `"`, `'`, `` ` ``, `\"`, `\\\"`.
    fn quote(&mut self) -> Option<&'a str> {
        let start = self.at;
        let slashes = self.skip(|b| b == b'\\');
        match self.byte() {
            Some(b'"' | b'\'' | b'`') if slashes < GAP => {
                self.at += 1;
                Some(&self.text[start..self.at])
            }
            _ => {
                self.at = start;
                None
            }
        }
    }
}

/// The value that a name is given, and how.
fn value_of(runs: &Runs<'_>, name: &Range<usize>) -> Option<(Range<usize>, Form)> {
    let text = runs.text;
    let before = text[..name.start].bytes().next_back();
    let mut cursor = Cursor { text, at: name.end };
    if before == Some(b'<') && cursor.take(">") {
        return element(&mut cursor);
    }
    let closing = cursor.quote();
    if closing.is_none() && cursor.byte() == Some(b'\\') {
        return None;
    }
    cursor.skip(|b| matches!(b, b']' | b')' | b'?' | b'!'));
    let spaces = cursor.spaces();
    let mut form = Form::default();
    let is_exact = || {
        matches!(
            text[name.clone()].to_ascii_lowercase().as_str(),
            "password" | "passwd" | "passphrase" | "secret"
        )
    };
    match cursor.byte()? {
        b':' | b'=' => {
            let sign = cursor.at;
            cursor.skip(|b| matches!(b, b':' | b'=' | b'~'));
            cursor.take(">");
            let signs = &text[sign..cursor.at];
            let gap = cursor.spaces();
            form.tight = spaces == 0 && gap == 0 && signs == "=";
            if signs.starts_with("::") {
                return None;
            }
            return assigned(cursor, form, signs.starts_with(':'));
        }
        b',' | b';' if closing.is_some() || is_value_next(&cursor) => {
            if let Some(found) = under_value(&mut cursor) {
                return Some(found);
            }
            cursor.take(",");
            cursor.skip(|b| b.is_ascii_whitespace());
            form.call = true;
            return quoted(&mut cursor, form);
        }
        b'(' if closing.is_none() && spaces == 0 => {
            cursor.at += 1;
            form.call = true;
            return quoted(&mut cursor, form);
        }
        _ => {}
    }
    if let Some(found) = under_value(&mut cursor) {
        return Some(found);
    }
    let is_flag = text[name.start..].starts_with('-') || before == Some(b'-');
    if is_flag && (spaces > 0 || closing.is_some()) {
        form.tight = true;
        cursor.skip(|b| matches!(b, b' ' | b'\t' | b',' | b'\n'));
        if cursor.byte() == Some(b'-') {
            return None;
        }
        return assigned(cursor, form, false);
    }
    // `PASSWORD 'x'` of SQL, and the lines of a `.netrc`.
    if is_exact() && spaces > 0 {
        let line = &text[floor(text, name.start.saturating_sub(160))..name.start];
        if line.contains("login ") || line.contains("machine ") {
            form.tight = true;
            return assigned(cursor, form, false);
        }
        form.call = true;
        return quoted(&mut cursor, form);
    }
    None
}

fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// What stands after the sign: between quotes, on the next line of a block, or plain.
fn assigned(mut cursor: Cursor<'_>, form: Form, is_typed: bool) -> Option<(Range<usize>, Form)> {
    if cursor.rest().starts_with(['|', '>']) {
        // A block of YAML: its first line.
        let line = cursor.at;
        cursor.skip(|b| matches!(b, b'|' | b'>' | b'-' | b'+'));
        if cursor.byte() != Some(b'\n') {
            cursor.at = line;
        } else {
            cursor.skip(|b| b.is_ascii_whitespace());
            return plain(
                &cursor,
                Form {
                    tight: true,
                    ..form
                },
            );
        }
    }
    let start = cursor.at;
    if let Some(found) = quoted(&mut cursor, form) {
        return Some(found);
    }
    cursor.at = start;
    if is_typed && let Some(found) = after_type(&cursor, form) {
        return Some(found);
    }
    plain(&cursor, form)
}

/// `: &str = "x"`: what follows a type on the same line.
fn after_type(cursor: &Cursor<'_>, form: Form) -> Option<(Range<usize>, Form)> {
    let rest = cursor.rest();
    let is_type = |b: &u8| b.is_ascii_alphanumeric() || b"_&'<>[]|:., ?".contains(b);
    let length = rest.bytes().take(GAP).take_while(|b| is_type(b)).count();
    let mut cursor = Cursor {
        text: cursor.text,
        at: cursor.at + length,
    };
    if !cursor.take("=") || cursor.byte() == Some(b'>') {
        return None;
    }
    cursor.spaces();
    quoted(&mut cursor, form)
}

/// A value between quotes, with the letters that some languages put before them.
fn quoted(cursor: &mut Cursor<'_>, form: Form) -> Option<(Range<usize>, Form)> {
    let start = cursor.at;
    cursor.skip(|b| b"bfruBFRU@$".contains(&b));
    if cursor.at - start > 2 {
        return None;
    }
    let quote = cursor.quote()?;
    let from = cursor.at;
    let rest = cursor.rest();
    let limit = rest.floor_char_boundary(QUOTED);
    let close = closing(&rest[..limit], quote);
    count(close.unwrap_or(limit));
    let close = close.unwrap_or(if limit == rest.len() { limit } else { 0 });
    let form = Form {
        quoted: true,
        ..form
    };
    (close > 0).then_some((from..from + close, form))
}

/// Where the quote that opened with `quote` closes; at the end of the line for one that does not.
fn closing(rest: &str, quote: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let sign = *quote.as_bytes().last()?;
    let depth = quote.len() - 1;
    let mut slashes = 0;
    for (at, b) in bytes.iter().enumerate() {
        match *b {
            b'\\' => slashes += 1,
            b if b == sign && slashes <= depth => return Some(at - slashes),
            b'\n' => return Some(at),
            _ => slashes = 0,
        }
        if *b == sign {
            slashes = 0;
        }
    }
    None
}

/// A plain value: to white space, or to a sign after which something else begins.
fn plain(cursor: &Cursor<'_>, form: Form) -> Option<(Range<usize>, Form)> {
    let rest = cursor.rest();
    let bytes = rest.as_bytes();
    let mut open = 0_usize;
    let mut end = 0;
    for (at, b) in bytes.iter().enumerate().take(QUOTED) {
        let next = bytes.get(at + 1).copied();
        let is_end = match *b {
            b'"' | b'\'' | b'`' | b'\\' => true,
            b' ' | b'\t' | b'\n' | b'\r' => true,
            b'(' | b'[' | b'{' => {
                open += 1;
                false
            }
            b')' | b']' | b'}' => {
                let is_outer = open == 0;
                open = open.saturating_sub(1);
                is_outer
            }
            b'<' | b'>' => {
                at > 0 && open == 0 && next.is_none_or(|b| !b.is_ascii_alphanumeric())
                    || rest[at..].starts_with("</")
            }
            b',' | b';' | b'|' | b'&' => open == 0 && starts_anew(&rest[at + 1..]),
            _ => false,
        };
        if is_end {
            break;
        }
        end = at + 1;
    }
    count(end);
    let end = rest.floor_char_boundary(end);
    let value = rest[..end].trim_end_matches(['.', ',', ';', '!', '?']);
    let from = cursor.at;
    (!value.is_empty()).then_some((from..from + value.len(), form))
}

/// Whether after a sign something other than the rest of a value begins.
fn starts_anew(rest: &str) -> bool {
    let name = rest.bytes().take(GAP).take_while(|b| is_name(*b)).count();
    let after = rest.as_bytes().get(name).copied();
    match rest.bytes().next() {
        None => true,
        Some(b) if b.is_ascii_whitespace() => true,
        Some(b'"' | b'\'' | b'`' | b'&' | b'|' | b')' | b'}' | b']' | b'\\') => true,
        _ => name > 0 && matches!(after, Some(b'=' | b':')),
    }
}

/// `<password>x</password>`.
fn element(cursor: &mut Cursor<'_>) -> Option<(Range<usize>, Form)> {
    let rest = cursor.rest();
    let limit = rest.floor_char_boundary(QUOTED);
    let close = rest[..limit].find(['<', '\n'])?;
    let form = Form {
        quoted: true,
        ..Form::default()
    };
    rest[close..]
        .starts_with("</")
        .then_some((cursor.at..cursor.at + close, form))
}

fn is_value_next(cursor: &Cursor<'_>) -> bool {
    let mut probe = Cursor {
        text: cursor.text,
        at: cursor.at,
    };
    under_value(&mut probe).is_some()
}

/// `name: API_KEY` with `value: x` after it, or `name="ApiKey" value="x"`.
fn under_value(cursor: &mut Cursor<'_>) -> Option<(Range<usize>, Form)> {
    let start = cursor.at;
    cursor.skip(|b| b.is_ascii_whitespace() || matches!(b, b',' | b';'));
    cursor.quote();
    let word = cursor.rest().get(..5);
    let found = if word.is_some_and(|word| word.eq_ignore_ascii_case("value")) {
        cursor.at += 5;
        cursor.quote();
        cursor.spaces();
        if cursor.skip(|b| matches!(b, b':' | b'=')) > 0 {
            cursor.spaces();
            let after = Cursor {
                text: cursor.text,
                at: cursor.at,
            };
            assigned(
                after,
                Form {
                    tight: true,
                    ..Form::default()
                },
                false,
            )
        } else {
            None
        }
    } else {
        None
    };
    if found.is_none() {
        cursor.at = start;
    }
    found
}
