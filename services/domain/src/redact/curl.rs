//! Commands that take a password beside a user's name: `curl -u user:password`.

use super::Secret;
use super::header::{COOKIE, is_cookie};
use super::runs::count;

/// Bytes of a command that are looked at.
const COMMAND: usize = 4 * 1024;

/// What the walk remembers between commands.
#[derive(Default)]
pub(super) struct Seen {
    /// How far was looked.
    end: usize,
}

impl Seen {
    /// The secrets among the arguments of a command whose name ends at `from`.
    pub(super) fn find(&mut self, text: &str, from: usize, found: &mut Vec<Secret>) {
        let from = from.max(self.end);
        let rest = text.get(from..).unwrap_or_default();
        let limit = rest.floor_char_boundary(COMMAND);
        let length = command_length(&rest[..limit]);
        count(length);
        self.end = from + length;
        let mut at = from;
        let mut flag = "";
        for word in rest[..length].split_inclusive([' ', '\t', '\n']) {
            let bare = word.trim_end();
            match flag {
                "-u" | "--user" | "--proxy-user" | "-U" => found.extend(user(at, bare)),
                "-b" => found.extend(cookie(at, &rest[at - from..length])),
                _ => {}
            }
            let joined = bare.strip_prefix("-u").filter(|rest| rest.contains(':'));
            if let Some(joined) = joined {
                found.extend(user(at + bare.len() - joined.len(), joined));
            }
            flag = bare;
            at += word.len();
        }
    }
}

/// To the end of the line that no backslash continues.
fn command_length(rest: &str) -> usize {
    let mut from = 0;
    while let Some(end) = rest[from..].find('\n') {
        if !rest[..from + end].ends_with('\\') {
            return from + end;
        }
        from += end + 1;
    }
    rest.len()
}

fn user(at: usize, word: &str) -> Option<Secret> {
    let bare = word.trim_start_matches(['"', '\'', '\\']);
    let start = at + word.len() - bare.len();
    let bare = bare.trim_end_matches(['"', '\'', '\\', ';', ')']);
    let (name, password) = bare.split_once(':')?;
    let is_place = password.starts_with(['$', '{', '<', '[', '%']) || password.len() < 4;
    (!name.contains("//") && !is_place).then_some(Secret {
        span: start + name.len() + 1..start + bare.len(),
        kind: "password",
        rank: 130,
    })
}

fn cookie(at: usize, rest: &str) -> Option<Secret> {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let from = quote.map_or(0, char::len_utf8);
    let end = match quote {
        Some(quote) => rest[from..].find(quote)? + from,
        None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
    };
    is_cookie(&rest[from..end]).then_some(Secret {
        span: at + from..at + end,
        kind: COOKIE,
        rank: 130,
    })
}
