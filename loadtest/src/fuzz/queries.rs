//! Queries that nobody would write, and the records that they are looked for in.

use serde_json::{Value, json};

use crate::bench::corpus::Rng;

/// What records and sensible queries are made of.
const WORDS: &[&str] = &[
    "pool",
    "leak",
    "the",
    "of",
    "a",
    "connection",
    "retry_count",
    "parseHTTPRequest2",
    "don't",
    "src/net/retry.ts",
    "D:\\svc\\api\\server.py",
    "--no-verify",
    "-Wall",
    "C++",
    "C#",
    ".NET",
    "C",
    "v3.14.2",
    "3",
    "@acme/kit",
    "a::b::c",
    "foo->bar",
    "E0599",
    "连接池",
    "泄漏",
    "修复",
    "的",
    "データベース",
    "연결",
    "café",
    "cafe\u{301}",
    "ＡＰＩ",
    "naïve",
    "ß",
    "İ",
    "ǅ",
    "ﬁ",
    "x",
];

/// Pieces of languages that a query is not.
const SNIPPETS: &[&str] = &[
    "' or 1=1 --",
    "'; drop table records; --",
    "$1",
    "%s",
    "%",
    "_",
    "\\",
    "\\'",
    "''",
    "\"",
    "\"\"",
    "&",
    "|",
    "!",
    "!!",
    "<->",
    "<2>",
    ":*",
    ":A",
    ":ABCD",
    "(",
    ")",
    "((",
    "AND",
    "OR",
    "NOT",
    "NEAR/3",
    "*",
    "?",
    "[a-z]",
    "{",
    "}",
    "~",
    "^2",
    "+",
    "-",
    "--",
    "title:",
    "key:value",
    "^",
    "$",
    "/",
    "//",
    "..",
    "./",
    ".",
    ",",
    ";",
    "`",
    "\t",
    "\n",
    "\r\n",
    "\u{0}",
    "\u{b}",
    "\u{1b}[31m",
    "<private>",
    "</private>",
    "<|end|>",
    "{{x}}",
    "${x}",
    "null",
    "undefined",
    "NaN",
    "-0",
    "1e999",
];

/// First and last of ranges of characters, each as likely as another.
const RANGES: &[(u32, u32)] = &[
    (0x0, 0x1f),
    (0x20, 0x7e),
    (0x80, 0xff),
    (0x100, 0x24f),
    (0x300, 0x36f),
    (0x370, 0x52f),
    (0x590, 0x6ff),
    (0x900, 0xdff),
    (0xe00, 0xeff),
    (0x1100, 0x11ff),
    (0x1e00, 0x1fff),
    (0x2000, 0x206f),
    (0x2070, 0x22ff),
    (0x2e80, 0x30ff),
    (0x3100, 0x33ff),
    (0x4e00, 0x9fff),
    (0xac00, 0xd7a3),
    (0xe000, 0xf8ff),
    (0xf900, 0xfdff),
    (0xfe00, 0xffff),
    (0x1_0000, 0x1_0fff),
    (0x1_f300, 0x1_faff),
    (0x2_0000, 0x2_a6df),
    (0xe_0000, 0xe_01ef),
    (0x10_fff0, 0x10_ffff),
];

/// Queries that remember the last ones, to be bent further.
#[derive(Default)]
pub struct Queries {
    last: Vec<String>,
}

impl Queries {
    /// One more.
    pub fn next(&mut self, chance: &mut Rng) -> String {
        let query = match chance.below(8) {
            0 => words(chance, 8),
            1 => snippets(chance),
            2 => characters(chance, 40),
            3 => characters(chance, 600),
            4 => repeated(chance),
            _ => match self.last.is_empty() {
                true => words(chance, 3),
                false => {
                    let at = chance.below(self.last.len());
                    bent(self.last[at].clone(), chance)
                }
            },
        };
        if self.last.len() < 64 {
            self.last.push(query.clone());
        } else {
            let at = chance.below(self.last.len());
            self.last[at].clone_from(&query);
        }
        query
    }
}

/// Items of events: observations for the most part, of the same words.
pub fn records(seed: u64, count: usize) -> Vec<Value> {
    let mut chance = Rng::new(seed);
    let record = |nth: usize| {
        let mut text = |most| words(&mut chance, most);
        let body = json!({"title": text(6), "narrative": text(40), "facts": [text(8)],
            "files_modified": ["src/net/retry.ts"], "concepts": ["gotcha"]});
        let (kind, body) = match nth % 10 {
            8 => ("summary", json!({"request": text(6), "learned": text(30)})),
            9 => ("prompt", json!({"text": text(20)})),
            _ => ("observation", body),
        };
        json!({"event_id": uuid::Uuid::now_v7(), "kind": kind, "body": body,
            "at": format!("2026-10-{:02}T08:{:02}:00Z", 1 + nth % 28, nth % 60),
            "session": {"host": "fuzz", "id": format!("s-{}", nth % 5)}})
    };
    (0..count).map(record).collect()
}

fn one<'a>(of: &[&'a str], chance: &mut Rng) -> &'a str {
    of[chance.below(of.len())]
}

fn words(chance: &mut Rng, most: usize) -> String {
    let count = 1 + chance.below(most);
    let words: Vec<&str> = (0..count).map(|_| one(WORDS, chance)).collect();
    words.join(" ")
}

fn snippets(chance: &mut Rng) -> String {
    let mut query = String::new();
    for _ in 0..1 + chance.below(10) {
        let of = if chance.below(3) == 0 {
            WORDS
        } else {
            SNIPPETS
        };
        query.push_str(one(of, chance));
        if chance.below(2) == 0 {
            query.push(' ');
        }
    }
    query
}

fn character(chance: &mut Rng) -> char {
    let (first, last) = RANGES[chance.below(RANGES.len())];
    let code = first + chance.below((last - first + 1) as usize) as u32;
    char::from_u32(code).unwrap_or('\u{fffd}')
}

fn characters(chance: &mut Rng, most: usize) -> String {
    let count = 1 + chance.below(most);
    match chance.below(2) {
        // All of one script, as a text is.
        0 => {
            let (first, last) = RANGES[chance.below(RANGES.len())];
            let of = |chance: &mut Rng| first + chance.below((last - first + 1) as usize) as u32;
            (0..count)
                .filter_map(|_| char::from_u32(of(chance)))
                .collect()
        }
        _ => (0..count).map(|_| character(chance)).collect(),
    }
}

fn repeated(chance: &mut Rng) -> String {
    let piece = match chance.below(3) {
        0 => one(WORDS, chance).to_owned(),
        1 => one(SNIPPETS, chance).to_owned(),
        _ => character(chance).to_string(),
    };
    piece.repeat(1 + chance.below(1_100 / piece.len().max(1)))
}

/// A query with a piece cut out, doubled, put in, or put elsewhere.
fn bent(query: String, chance: &mut Rng) -> String {
    let mut characters: Vec<char> = query.chars().collect();
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(characters.len() + 1);
        let end = at + chance.below(characters.len() - at + 1);
        match chance.below(5) {
            0 => drop(characters.drain(at..end)),
            1 => {
                let piece = characters[at..end].to_vec();
                characters.splice(at..at, piece);
            }
            2 => {
                let piece = one(SNIPPETS, chance).chars();
                characters.splice(at..at, piece);
            }
            3 => characters.insert(at, character(chance)),
            _ => characters[at..end].reverse(),
        }
        characters.truncate(1_200);
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_finds_the_same_queries_again() {
        let all = |seed| {
            let (mut chance, mut queries) = (Rng::new(seed), Queries::default());
            (0..200)
                .map(|_| queries.next(&mut chance))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        let seven = all(7).concat();
        assert!(seven.contains('\u{0}') && seven.chars().any(|c| c > '\u{4e00}'));
    }
}
