//! Blocks of private keys: whole, cut off before their end, with line ends or with what stands
//! for them in code and JSON.

use super::Secret;
use super::runs::count;

pub(super) const KIND: &str = "private-key";

/// Bytes of a block's first line.
const HEAD: usize = 96;
/// Bytes of a whole block, if its lines are such that they cannot be told from others.
const BLOCK: usize = 16 * 1024;
/// What can be read as part of a key's body.
const LEAST: usize = 16;

/// The ends of blocks in a text, each looked for once.
#[derive(Default)]
pub(super) struct Ends {
    /// From where on was looked, and what was found.
    known: Option<(usize, Option<usize>)>,
}

impl Ends {
    /// The block that begins at `at`, if it is a private key with something in it.
    pub(super) fn block(&mut self, text: &str, at: usize) -> Option<Secret> {
        let head_end = ceil(text, (at + HEAD).min(text.len()));
        let head = &text[at..head_end];
        let body = at + after_head(head)?;
        let body_end = body + body_length(&text[body..]);
        if !has_body(&text[body..body_end]) {
            return None;
        }
        let end = match self.next(text, body) {
            // Another block's end is not this one's.
            Some(end) if end - body <= BLOCK && !text[body..end].contains("BEGIN ") => {
                end_line(text, end)
            }
            _ => body_end,
        };
        Some(Secret {
            span: at..end.max(body_end),
            kind: KIND,
            rank: 0,
        })
    }

    /// Where the next `-----END` stands.
    fn next(&mut self, text: &str, from: usize) -> Option<usize> {
        if let Some((asked, known)) = self.known
            && asked <= from
            && known.is_none_or(|end| end >= from)
        {
            return known;
        }
        let dashes = text[from..].find("-----END").map(|at| from + at);
        let spaced = || text[from..].find("---- END").map(|at| from + at);
        let found = dashes.or_else(spaced);
        count(found.unwrap_or(text.len()) - from);
        self.known = Some((from, found));
        found
    }
}

/// Where a private key's first line ends.
fn after_head(head: &str) -> Option<usize> {
    let words = head.get(5..)?;
    let close = words.find("----")?;
    let line = &words[..close];
    if !line.contains("PRIVATE KEY") || line.contains('\n') {
        return None;
    }
    let rest = &words[close..];
    let dashes = rest.bytes().take_while(|b| *b == b'-').count();
    Some(5 + close + dashes)
}

/// Where the line of an end that begins at `end` is over.
fn end_line(text: &str, end: usize) -> usize {
    let limit = ceil(text, (end + HEAD).min(text.len()));
    let line = &text[end..limit];
    let words = line.get(5..).unwrap_or_default();
    match words.find("----") {
        Some(close) => {
            let dashes = words[close..].bytes().take_while(|b| *b == b'-').count();
            end + 5 + close + dashes
        }
        // Cut off in its last line.
        None => end + line.find(['\n', '"', '\'']).unwrap_or(line.len()),
    }
}

fn ceil(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at)
}

/// How much of a text can be a key's body: lines of base64, each with what quotes, diffs, comments
/// and line numbers put before and after it.
fn body_length(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        // Line ends that are written out stand inside a line.
        for part in line.split_inclusive("\\n") {
            count(part.len());
            match kept(part) {
                Kept::All => at += part.len(),
                Kept::Head(length) => return at + length,
                Kept::Nothing => return at,
            }
        }
    }
    at
}

enum Kept {
    All,
    Head(usize),
    Nothing,
}

fn kept(part: &str) -> Kept {
    let line = part.trim_end_matches("\\n").trim_end_matches("\\r");
    let start = line.len() - undecorated(line).len();
    let core = &line[start..];
    let base64 = core.bytes().take_while(|b| is_base64(*b)).count();
    let rest = core[base64..]
        .trim_start_matches(['"', '\'', '`', '+', '.', ',', '\\', ' ', '\t', ';', ')']);
    let rest = rest.trim();
    if rest.is_empty() {
        return Kept::All;
    }
    // `Proc-Type: 4,ENCRYPTED` and the like.
    let is_field = core.split_once(": ").is_some_and(|(name, _)| {
        name.len() < 24 && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-')
    });
    if is_field && core.len() < HEAD && !core.starts_with("Private-") {
        return Kept::All;
    }
    if base64 >= LEAST {
        Kept::Head(start + base64)
    } else {
        Kept::Nothing
    }
}

/// A line without what stands before its content: white space, signs of a diff or a comment, a
/// line number with its tab or arrow, quotes.
fn undecorated(line: &str) -> &str {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = line[digits..].strip_prefix(['\t', '→', ':', '|']);
    let line = match numbered {
        Some(rest) if digits > 0 => rest,
        _ => line,
    };
    let signs = ['+', '-', '>', '|', '#', '*', '"', '\'', '`', ' ', '\t'];
    line.trim_start_matches(signs)
}

const fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

fn has_body(text: &str) -> bool {
    let mut run = 0;
    for b in text.bytes() {
        run = if is_base64(b) { run + 1 } else { 0 };
        if run >= LEAST {
            return true;
        }
    }
    false
}

/// What follows `Private-Lines:` in a key of PuTTY's form.
pub(super) fn putty(text: &str, after: usize) -> Option<Secret> {
    let rest = &text[after..];
    let count = rest.len()
        - rest
            .trim_start_matches([
                ' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '\r', '\n',
            ])
            .len();
    let body = after + count;
    let end = body + body_length(&text[body..]);
    has_body(&text[body..end]).then_some(Secret {
        span: body..end,
        kind: KIND,
        rank: 0,
    })
}
