//! JSON text as a tree that can be read: strings decoded, entries in the order and numbers in the
//! spelling of the text. Nothing passes through a value type, so no nesting fails, no key that
//! stands twice is lost, and a text that was cut is shown as far as it goes.

use serde::de::IgnoredAny;

use crate::json_text::{mend_escapes, next_string};
use crate::limits;
use crate::plain::{continued, one_line, one_line_within};

/// Spaces of each level; the first level is indented too.
const INDENT: usize = 4;

/// A text in the form in which it is read. Every line of both parts is indented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// What there is: at most [`limits::TREE_LEVELS`] and [`limits::TREE_ENTRIES`] each.
    pub shown: String,
    /// What the tree has no room for, as the exact JSON; empty if it has room for all.
    pub left_out: String,
}

impl Tree {
    /// The tree of a text; one that is no JSON stands there as it is. `is_cut` says that the text
    /// is the head of a longer one, with or without the mark of a cut.
    pub fn of(text: &str, is_cut: bool) -> Self {
        let (json, mark) = match is_cut {
            true => split_mark(text),
            false => (text, ""),
        };
        let json = json.trim_start_matches('\u{feff}').trim_start();
        let mut walk = Walk::default();
        if is_json(json) || (is_cut && is_head_of_json(json)) {
            walk.root(json);
            if !mark.is_empty() {
                walk.line(1, mark);
            }
        } else if !text.trim().is_empty() {
            walk.text(text, (1, 1));
        }
        walk.done()
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a text could go on and be JSON.
fn is_head_of_json(text: &str) -> bool {
    // A number that breaks off is no error of its end alone, so one at the end is left out.
    let is_of_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let head = text.trim_end_matches(is_of_number);
    let read = serde_json::from_str::<IgnoredAny>(head);
    !text.is_empty() && read.is_err_and(|error| error.is_eof())
}

/// A text and the mark `…[cut N bytes]` at its end, if there is one.
fn split_mark(text: &str) -> (&str, &str) {
    let Some(at) = text.rfind("…[cut ") else {
        return (text, "");
    };
    let (head, mark) = text.split_at(at);
    let count = mark
        .strip_prefix("…[cut ")
        .and_then(|rest| rest.strip_suffix(" bytes]"));
    match count.is_some_and(|count| count.bytes().all(|b| b.is_ascii_digit())) {
        true => (head, mark),
        false => (text, ""),
    }
}

#[derive(Default)]
struct Walk {
    lines: Vec<String>,
    left_out: Vec<String>,
}

impl Walk {
    fn done(self) -> Tree {
        let mut left_out = self.left_out.join("\n");
        if !left_out.is_empty() {
            left_out.insert_str(0, "    Left out above, as JSON:\n");
        }
        Tree {
            shown: self.lines.join("\n"),
            left_out,
        }
    }

    fn line(&mut self, level: usize, text: &str) {
        self.lines.push(format!("{:1$}{text}", "", level * INDENT));
    }

    /// A text of several lines: the levels of its first line and of all others.
    fn text(&mut self, text: &str, (first, others): (usize, usize)) {
        let text = text.trim_end_matches(['\r', '\n']);
        self.line(first, &continued(text, others * INDENT));
    }

    fn root(&mut self, json: &str) {
        match json.as_bytes().first() {
            Some(b'"') => self.text(&decoded(json), (1, 1)),
            Some(b'{' | b'[') if Entries::of(json).next().is_some() => self.entries(json, 1, ""),
            _ => self.line(1, &one_line(json)),
        }
    }

    /// The entries of an object or a list, each on lines of this level.
    fn entries(&mut self, container: &str, level: usize, path: &str) {
        let mut entries = Entries::of(container);
        for nth in 0..limits::TREE_ENTRIES {
            let Some(entry) = entries.next() else {
                return;
            };
            self.entry(&entry, level, &entry.path(path, nth));
        }
        let from = entries.at;
        let more = entries.by_ref().count();
        if more > 0 {
            let rest = container[from..entries.at].trim_start_matches([',', ' ', '\t', '\r', '\n']);
            self.line(level, &format!("+{more} more"));
            let path = if path.is_empty() {
                ""
            } else {
                &format!("{path}, ")
            };
            self.leave_out(&format!("{path}{more} more"), rest);
        }
    }

    fn entry(&mut self, entry: &Entry<'_>, level: usize, path: &str) {
        let label = entry.label();
        let value = entry.value;
        match value.as_bytes().first() {
            Some(b'"') => match decoded(value) {
                // An empty text needs its quotes to be seen.
                text if text.trim().is_empty() => {
                    self.line(level, &format!("{label} {}", one_line(value)));
                }
                text => self.text(&format!("{label} {text}"), (level, level + 1)),
            },
            Some(b'{' | b'[') => match Entries::of(value).count() {
                0 => self.line(level, &format!("{label} {}", one_line(value))),
                _ if level < limits::TREE_LEVELS => {
                    self.line(level, &label);
                    self.entries(value, level + 1, path);
                }
                count => {
                    self.line(level, &format!("{label} {}", counted(value, count)));
                    self.leave_out(path, value);
                }
            },
            _ => self.line(level, format!("{label} {}", one_line(value)).trim_end()),
        }
    }

    fn leave_out(&mut self, path: &str, json: &str) {
        self.left_out
            .push(format!("    {path}: {}", one_line(json)));
    }
}

/// What stands for an object or a list that is left out.
fn counted(container: &str, count: usize) -> String {
    let word = if count == 1 { "entry" } else { "entries" };
    match container.starts_with('{') {
        true => format!("{{{count} {word}}}"),
        false => format!("[{count} {word}]"),
    }
}

/// An entry of an object or of a list.
struct Entry<'a> {
    /// The key as it is written, of an object.
    key: Option<&'a str>,
    /// The value as it is written; empty where the text ends before it.
    value: &'a str,
}

impl Entry<'_> {
    fn label(&self) -> String {
        let Some(literal) = self.key else {
            return "-".to_owned();
        };
        match one_line(&decoded(literal)) {
            key if key.is_empty() => format!("{}:", one_line(literal)),
            key => format!("{key}:"),
        }
    }

    /// Where it stands, from the top; keys are shortened.
    fn path(&self, parent: &str, nth: usize) -> String {
        let Some(literal) = self.key else {
            return format!("{parent}[{nth}]");
        };
        let key = one_line_within(&decoded(literal), limits::ROW_TYPE_BYTES);
        match parent {
            "" => key,
            _ => format!("{parent}.{key}"),
        }
    }
}

/// The entries of an object or a list, as far as its text goes.
struct Entries<'a> {
    json: &'a str,
    /// Where the next one is looked for.
    at: usize,
    is_object: bool,
}

impl<'a> Entries<'a> {
    /// `json` begins with the opening bracket.
    fn of(json: &'a str) -> Self {
        Self {
            json,
            at: 1,
            is_object: json.starts_with('{'),
        }
    }

    /// Goes on to the first byte that is neither white space nor this one.
    fn skip(&mut self, sign: u8) {
        let bytes = &self.json.as_bytes()[self.at..];
        let is_over = |b: &u8| !b.is_ascii_whitespace() && *b != sign;
        self.at += bytes.iter().position(is_over).unwrap_or(bytes.len());
    }

    /// The value that begins here; goes on to its end.
    fn value(&mut self) -> &'a str {
        let from = self.at;
        self.at = value_end(self.json, from);
        &self.json[from..self.at]
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let before = self.at;
        self.skip(b',');
        if matches!(self.json.as_bytes().get(self.at), None | Some(b'}' | b']')) {
            self.at = before;
            return None;
        }
        let key = self.is_object.then(|| self.value());
        if key.is_some() {
            self.skip(b':');
        }
        let value = self.value();
        Some(Entry { key, value })
    }
}

/// Where the value that begins at `from` ends: the end of the text if it is cut off there.
fn value_end(json: &str, from: usize) -> usize {
    let bytes = json.as_bytes();
    let string_end = |at| next_string(json, at).map_or(json.len(), |span| span.end);
    match bytes.get(from) {
        None => from,
        Some(b'"') => string_end(from),
        Some(b'{' | b'[') => {
            let (mut at, mut depth) = (from, 0_usize);
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            at
        }
        Some(_) => {
            let rest = &bytes[from..];
            let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b',' | b'}' | b']');
            from + rest.iter().position(ends).unwrap_or(rest.len())
        }
    }
}

/// The text of a string literal, perhaps of one that is cut off.
pub(super) fn decoded(literal: &str) -> String {
    let literal = mend_escapes(literal);
    if let Ok(text) = serde_json::from_str(&literal) {
        return text;
    }
    // What is left of an escape stays as it is written.
    let ends = [Some(literal.len()), literal.rfind('\\')];
    for end in ends.into_iter().flatten() {
        let closed = format!("{}\"", &literal[..end]);
        if let Ok(mut text) = serde_json::from_str::<String>(&closed) {
            text.push_str(&literal[end..]);
            return text;
        }
    }
    literal.into_owned()
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
