//! JSON: each string is looked at decoded, with the names around it: its member's, the ones of a
//! pair `{"name": …, "value": …}`, the flag before it in a list of arguments. Text inside a string
//! that is JSON itself is walked the same way.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::names::{Field, Name};
use super::value::{Form, is_random, is_secret};
use super::{Secret, find, header, mark, pem, replaced};
use crate::wrapper_tags::strip;

/// Levels of JSON inside strings of JSON; what lies deeper is read as plain text.
const LEVELS: usize = 8;

/// Members that hold the name of what another member of the object holds.
const NAMES: &[&str] = &[
    "name",
    "key",
    "variable",
    "var",
    "header",
    "field",
    "parameter",
    "parametername",
    "envname",
    "parameterkey",
];
/// Members that hold it.
const VALUES: &[&str] = &[
    "value",
    "val",
    "values",
    "content",
    "data",
    "text",
    "parametervalue",
    "defaultvalue",
    "default",
    "raw",
    "plain",
    "plaintext",
    "current",
    "new",
    "old",
    "secretvalue",
    "stringvalue",
];

/// Whether a text is JSON, or a JSON text that was cut off: nothing but structure, numbers and
/// the three words stands between its strings.
pub(super) fn is_json(text: &str) -> bool {
    let text = without_cut_mark(text).trim();
    if !text.starts_with(['{', '[', '"']) {
        return false;
    }
    let mut at = 0;
    while let Some(literal) = next_literal(text, at) {
        if !is_structure(&text[at..literal.span.start]) {
            return false;
        }
        at = literal.span.end;
    }
    is_structure(&text[at..])
}

fn without_cut_mark(text: &str) -> &str {
    let cut = text.strip_suffix(" bytes]").and_then(|head| {
        let head = head.trim_end_matches(|c: char| c.is_ascii_digit());
        head.strip_suffix("…[cut ")
    });
    cut.unwrap_or(text)
}

fn is_structure(gap: &str) -> bool {
    let bytes = gap.as_bytes();
    let mut at = 0;
    while let Some(b) = bytes.get(at) {
        at += match *b {
            b'{' | b'}' | b'[' | b']' | b':' | b',' | b' ' | b'\t' | b'\r' | b'\n' => 1,
            b'0'..=b'9' | b'+' | b'-' | b'.' => 1,
            b'e' | b'E' if at > 0 && bytes[at - 1].is_ascii_digit() => 1,
            b't' if bytes[at..].starts_with(b"true") => 4,
            b'f' if bytes[at..].starts_with(b"false") => 5,
            b'n' if bytes[at..].starts_with(b"null") => 4,
            // One that a cut has shortened.
            b't' | b'f' | b'n' if bytes.len() - at < 5 => bytes.len() - at,
            _ => return false,
        };
    }
    true
}

/// A string of a JSON text, quotes included; the last one may lack its end.
struct Literal {
    span: Range<usize>,
    is_open: bool,
}

fn next_literal(json: &str, from: usize) -> Option<Literal> {
    let start = from + json[from..].find('"')?;
    Some(match crate::json_text::next_string(json, start) {
        Some(span) => Literal {
            span,
            is_open: false,
        },
        None => Literal {
            span: start..json.len(),
            is_open: true,
        },
    })
}

/// A JSON text without secrets and, if `tags` says so, without wrapper tags; `None` if it holds
/// neither.
pub(super) fn redacted(json: &str, tags: bool) -> Option<String> {
    if !may_hold_any(json, tags) {
        return None;
    }
    walked(json, tags, 0)
}

/// Whether anything in it is worth the walk. Escapes may hide what begins a secret.
fn may_hold_any(json: &str, tags: bool) -> bool {
    json.contains("\\u")
        || json.contains("\\/")
        || tags && json.contains('<')
        || find::may_hold_any(json)
}

fn walked(json: &str, tags: bool, level: usize) -> Option<String> {
    let mut walk = Walk {
        json,
        tags,
        level,
        frames: vec![Frame::default()],
        changes: BTreeMap::new(),
    };
    walk.over();
    if walk.changes.is_empty() {
        return None;
    }
    let mut kept = String::with_capacity(json.len());
    let mut copied = 0;
    for (start, (end, text)) in walk.changes {
        kept.push_str(&json[copied..start]);
        kept.push_str(&text);
        copied = end;
    }
    kept.push_str(&json[copied..]);
    Some(kept)
}

/// What the names around a string say of it.
#[derive(Clone, Copy)]
enum Said {
    Secret(Name),
    Field(Field),
}

impl Said {
    fn by(name: &str) -> Option<Self> {
        match Field::of(name) {
            Some(field) => Some(Self::Field(field)),
            None => Name::of(name).map(Self::Secret),
        }
    }
}

/// An object or a list that is open.
#[derive(Default)]
struct Frame {
    is_object: bool,
    /// The key whose value comes next.
    key: Option<String>,
    /// What the member says in which it stands.
    around: Option<Said>,
    /// What a member such as `name` says of one such as `value`.
    named: Option<Said>,
    values: Vec<(Range<usize>, bool)>,
    /// What the string before says of the next one, in a list.
    before: Option<Said>,
    /// How many strings of a list there were.
    count: usize,
    /// Whether a private key began in a line before.
    in_key: bool,
}

struct Walk<'a> {
    json: &'a str,
    tags: bool,
    level: usize,
    frames: Vec<Frame>,
    /// By its place, where a string ends and what stands there instead.
    changes: BTreeMap<usize, (usize, String)>,
}

impl Walk<'_> {
    fn over(&mut self) {
        let bytes = self.json.as_bytes();
        let mut at = 0;
        while let Some(b) = bytes.get(at) {
            match b {
                b'"' => {
                    let Some(literal) = next_literal(self.json, at) else {
                        break;
                    };
                    at = literal.span.end;
                    self.literal(&literal);
                    continue;
                }
                b'{' | b'[' => self.open(*b == b'{'),
                b'}' | b']' => self.close(),
                b',' => {
                    let frame = self.frames.last_mut().expect("the outermost stays");
                    frame.key = None;
                }
                _ => {}
            }
            at += 1;
        }
        while self.frames.len() > 1 {
            self.close();
        }
    }

    fn open(&mut self, is_object: bool) {
        let around = self.said_of_next();
        self.frames.push(Frame {
            is_object,
            around,
            ..Frame::default()
        });
    }

    fn close(&mut self) {
        if self.frames.len() == 1 {
            return;
        }
        let Some(frame) = self.frames.pop() else {
            return;
        };
        if let Some(named) = frame.named {
            for (span, is_open) in frame.values {
                self.judge(&span, is_open, Some(named));
            }
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.before = None;
        }
    }

    /// What is said of the value that comes next.
    fn said_of_next(&self) -> Option<Said> {
        let frame = self.frames.last()?;
        if !frame.is_object {
            return frame.before.or(frame.around);
        }
        let key = frame.key.as_deref()?;
        let is_value = || VALUES.contains(&key.to_ascii_lowercase().as_str());
        Said::by(key).or_else(|| frame.around.filter(|_| is_value()))
    }

    fn literal(&mut self, literal: &Literal) {
        let text = decoded(&self.json[literal.span.clone()], literal.is_open).into_owned();
        let frame = self.frames.last().expect("the outermost stays");
        if frame.is_object && frame.key.is_none() {
            self.judge(&literal.span, literal.is_open, None);
            let frame = self.frames.last_mut().expect("the outermost stays");
            frame.key = Some(text);
            return;
        }
        let said = self.said_of_next();
        let is_line = self.key_line(&text);
        if is_line {
            self.put(&literal.span, literal.is_open, &mark(pem::KIND));
        } else {
            self.judge(&literal.span, literal.is_open, said);
        }
        let frame = self.frames.last_mut().expect("the outermost stays");
        if frame.is_object {
            let key = frame
                .key
                .as_deref()
                .unwrap_or_default()
                .to_ascii_lowercase();
            if NAMES.contains(&key.as_str()) {
                frame.named = Said::by(&text).or(frame.named);
            }
            if VALUES.contains(&key.as_str()) {
                frame.values.push((literal.span.clone(), literal.is_open));
            }
        } else {
            let may_name = text.starts_with('-') && !text.contains(['=', ' ']) || frame.count == 0;
            frame.before = Said::by(&text).filter(|_| may_name && text.len() <= 128);
            frame.count += 1;
        }
    }

    /// Whether a line of a list belongs to a private key that began in one before.
    fn key_line(&mut self, text: &str) -> bool {
        let frame = self.frames.last_mut().expect("the outermost stays");
        if frame.in_key {
            if text.contains("-----END") {
                frame.in_key = false;
                return false;
            }
            return text.len() >= 16
                && text
                    .trim()
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        }
        frame.in_key = text.contains("-----BEGIN")
            && text.contains("PRIVATE KEY")
            && !text.contains("-----END");
        false
    }

    /// Looks at a string, and notes what is to stand in its place.
    fn judge(&mut self, span: &Range<usize>, is_open: bool, said: Option<Said>) {
        let literal = &self.json[span.clone()];
        let text = decoded(literal, is_open);
        let kept = self.kept(&text, said);
        if let Some(kept) = kept {
            self.put(span, is_open, &kept);
        }
    }

    fn put(&mut self, span: &Range<usize>, is_open: bool, text: &str) {
        let mut literal = serde_json::Value::from(text).to_string();
        if is_open {
            literal.pop();
        }
        self.changes.insert(span.start, (span.end, literal));
    }

    /// What may be kept of a text, if not all of it.
    fn kept(&self, text: &str, said: Option<Said>) -> Option<String> {
        let inner = self.inner(text);
        let text = inner.as_deref().unwrap_or(text);
        let stripped = if self.tags {
            strip(text)
        } else {
            Cow::Borrowed(text)
        };
        let changed = inner.is_some() || matches!(stripped, Cow::Owned(_));
        let found = find::secrets(&stripped);
        let whole = said.and_then(|said| by_name(&stripped, said, &found));
        let kept = match whole {
            Some(whole) => Some(replaced(&stripped, &[whole])),
            None if found.is_empty() => None,
            None => Some(replaced(&stripped, &found)),
        };
        kept.or_else(|| changed.then(|| stripped.clone().into_owned()))
    }

    /// The same for a string that is JSON itself.
    fn inner(&self, text: &str) -> Option<String> {
        let begins = text.trim_start().starts_with(['{', '[']);
        let is_inner = begins && text.contains('"') && self.level < LEVELS && is_json(text);
        is_inner
            .then(|| walked(text, self.tags, self.level + 1))
            .flatten()
    }
}

/// The secret that a string is by what its name says. One that is known by itself as well keeps
/// its own kind.
fn by_name(text: &str, said: Said, found: &[Secret]) -> Option<Secret> {
    let trimmed = text.trim();
    let lead = text.len() - text.trim_start().len();
    let whole = lead..lead + trimmed.len();
    let secret = |span: Range<usize>, kind| match found {
        [known] if known.span == span => known.clone(),
        _ => Secret {
            span,
            kind,
            rank: 0,
        },
    };
    match said {
        Said::Secret(name) => {
            let form = Form {
                quoted: true,
                ..Form::default()
            };
            is_secret(trimmed, name, form).then(|| secret(whole, name.kind))
        }
        Said::Field(Field::Authorization) => {
            let span = header::authorization_in(text)?;
            Some(secret(span, header::AUTHORIZATION))
        }
        Said::Field(Field::Cookie) => {
            let is_one = header::is_cookie(trimmed) || is_random(trimmed, 16);
            is_one.then(|| secret(whole, header::COOKIE))
        }
    }
}

/// The text of a literal. What is no escape stays as it is written: a text that a strict parser
/// would refuse is looked at all the same.
fn decoded(literal: &str, is_open: bool) -> Cow<'_, str> {
    let body = literal.strip_prefix('"').unwrap_or(literal);
    let body = if is_open {
        body
    } else {
        body.strip_suffix('"').unwrap_or(body)
    };
    if !body.contains('\\') {
        return Cow::Borrowed(body);
    }
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (c, length) = escape(&rest[at..]);
        text.push(c);
        rest = &rest[at + length..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character of the escape with which a text begins, and its length.
fn escape(text: &str) -> (char, usize) {
    let plain = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(sign @ (b'"' | b'\\' | b'/')) => char::from(*sign),
        Some(b'u') => return code(text),
        _ => return ('\\', 1),
    };
    (plain, 2)
}

fn code(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
            let joined = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(joined).unwrap_or('\u{fffd}'), 12)
        }
        (Some(unit), _) => (char::from_u32(unit).unwrap_or('\u{fffd}'), 6),
        (None, _) => ('\\', 1),
    }
}
