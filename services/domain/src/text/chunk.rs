//! The inner structure of a chunk: flags, names of languages, paths, dotted names, words. What
//! is indexed of it and what is asked of it both read this one structure.

use super::scan::is_word;
use super::word::Word;

/// A chunk taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// `--no-verify`, `-wall`: the flag as written, if the chunk is one.
    pub flag: Option<String>,
    /// What `:`, `@`, `#` and `+` separate.
    pub names: Vec<Name>,
}

/// One name of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A language whose name ends in a sign: `c++`, `c#`. Its letters alone are another language.
    Exact(String),
    /// A path; a single segment is a plain word or a dotted name.
    Path(Vec<Segment>),
}

/// What stands between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Whether a dot leads it: `.net`, `.env`.
    pub dotted: bool,
    /// What its dots separate. At least one word.
    pub words: Vec<Word>,
}

impl Chunk {
    /// Takes a chunk apart; signs alone leave neither flag nor names.
    pub(super) fn of(text: &str) -> Self {
        let text = lead_trimmed(text);
        let joined = text
            .replace("::", ".")
            .replace("->", ".")
            .replace('\\', "/");
        Self {
            flag: flag(text),
            names: names(&joined),
        }
    }

    /// All of a chunk of several names, as one term: `key:value`.
    pub(super) fn whole(&self) -> Option<String> {
        let wholes: Vec<String> = self.names.iter().map(Name::whole).collect();
        (wholes.len() > 1).then(|| wholes.join(":"))
    }
}

impl Name {
    /// The name as one term.
    pub(super) fn whole(&self) -> String {
        match self {
            Self::Exact(name) => name.clone(),
            Self::Path(segments) => join(segments),
        }
    }

    /// The last two and three segments of a path, and all of it, shortest first.
    pub(super) fn tails(&self) -> Vec<String> {
        let Self::Path(segments) = self else {
            return Vec::new();
        };
        let count = segments.len();
        let mut lengths = vec![2, 3, count];
        lengths.retain(|length| (2..=count).contains(length));
        lengths.sort_unstable();
        lengths.dedup();
        lengths
            .into_iter()
            .map(|length| join(&segments[count - length..]))
            .collect()
    }
}

impl Segment {
    fn of(text: &str) -> Option<Self> {
        let text = text.trim_end_matches(|c| !is_word(c));
        let bare = text.trim_start_matches(|c| !is_word(c));
        let words: Vec<Word> = bare.split('.').filter_map(Word::of).collect();
        let dotted = text.strip_prefix('.') == Some(bare);
        (!words.is_empty()).then_some(Self { dotted, words })
    }

    /// The segment as one term: `retry.ts`, `.env`, `retrycount`.
    pub(super) fn whole(&self) -> String {
        let wholes: Vec<&str> = self.words.iter().map(|w| w.whole.as_str()).collect();
        let dot = if self.dotted { "." } else { "" };
        format!("{dot}{}", wholes.join("."))
    }

    /// The whole, its last two words, and a version without its `v`: what is kept beside the
    /// words of a segment that is more than one plain word.
    pub(super) fn compounds(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.dotted || self.words.len() > 1 {
            found.push(self.whole());
        }
        let wholes: Vec<&str> = self.words.iter().map(|w| w.whole.as_str()).collect();
        if let [.., before, last] = wholes.as_slice()
            && wholes.len() > 2
        {
            found.push(format!("{before}.{last}"));
        }
        if let [first, rest @ ..] = wholes.as_slice()
            && !rest.is_empty()
            && let Some(number) = first.strip_prefix('v')
            && number.chars().all(char::is_numeric)
        {
            found.push(format!("{number}.{}", rest.join(".")));
        }
        found
    }

    /// Whether it is a version or another number with dots, whose words alone mean nothing.
    pub(super) fn is_numeric(&self) -> bool {
        self.words.len() > 1 && self.words.iter().all(Word::is_numeric)
    }
}

fn join(segments: &[Segment]) -> String {
    let wholes: Vec<String> = segments.iter().map(Segment::whole).collect();
    wholes.join("/")
}

/// Without signs in front that name nothing; a dot, hyphens and `@` may belong to a name.
fn lead_trimmed(text: &str) -> &str {
    let mut text = text.trim_start_matches([':', '\'', '#', '+']);
    while let Some(rest) = text.strip_prefix("->") {
        text = rest.trim_start_matches([':', '\'', '#', '+']);
    }
    text
}

/// One or two hyphens, then a letter: kept as written, in lower case.
fn flag(text: &str) -> Option<String> {
    let bare = text.trim_start_matches('-');
    let hyphens = text.len() - bare.len();
    if !(1..=2).contains(&hyphens) || !bare.starts_with(char::is_alphabetic) {
        return None;
    }
    let end = bare
        .find(|c| !is_word(c) && c != '-' && c != '_')
        .unwrap_or(bare.len());
    let name = bare[..end].trim_end_matches(['-', '_']);
    Some(format!("{}{}", &text[..hyphens], name.to_lowercase()))
}

fn names(text: &str) -> Vec<Name> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([':', '@', '#', '+']).unwrap_or(rest.len());
        let (name, signs) = rest.split_at(end);
        let (folders, base) = name.rsplit_once('/').unwrap_or(("", name));
        let sign = language_sign(base, signs);
        if sign.is_empty() {
            found.extend(path(name));
            rest = signs.get(1..).unwrap_or_default();
        } else {
            found.extend(path(folders));
            found.push(Name::Exact(format!("{}{sign}", base.to_lowercase())));
            rest = signs[sign.len()..].trim_start_matches('/');
        }
    }
    found
}

/// `++` or `#` if, after this name, it ends the name of a language; else nothing. What follows
/// it may be a version, never a word: `file#anchor` and `a++b` are two names each.
fn language_sign(name: &str, signs: &str) -> &'static str {
    let Some(sign) = ["++", "#"].into_iter().find(|sign| signs.starts_with(sign)) else {
        return "";
    };
    let named = name.starts_with(char::is_alphabetic) && name.chars().all(is_word);
    let followed = signs[sign.len()..].starts_with(char::is_alphabetic);
    if named && !followed { sign } else { "" }
}

fn path(text: &str) -> Option<Name> {
    let segments: Vec<Segment> = text.split('/').filter_map(Segment::of).collect();
    (!segments.is_empty()).then_some(Name::Path(segments))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("C++", "c++")]
    #[case("C#,", "c#")]
    #[case("C++20", "c++ 20")]
    #[case("C#/F#", "c# f#")]
    #[case("lang/g++", "lang g++")]
    #[case("file#anchor", "file anchor")]
    #[case(".NET", ".net")]
    #[case("Node.js.", "node.js")]
    #[case("std::vec::Vec", "std.vec.vec")]
    #[case("ptr->field", "ptr.field")]
    #[case("::global", "global")]
    #[case("D:\\svc\\api\\server.py", "d svc/api/server.py")]
    #[case("@acme/kit", "acme/kit")]
    #[case("../src/retry.ts:42", "src/retry.ts 42")]
    #[case("'key':'value'", "key value")]
    #[case("C", "c")]
    #[case("-", "")]
    fn a_chunk_is_a_list_of_names(#[case] text: &str, #[case] names: &str) {
        let wholes: Vec<String> = Chunk::of(text).names.iter().map(Name::whole).collect();
        assert_eq!(wholes.join(" "), names);
    }

    #[rstest]
    #[case("--no-verify", Some("--no-verify"))]
    #[case("-Wall", Some("-wall"))]
    #[case("--depth:", Some("--depth"))]
    #[case("---x", None)]
    #[case("-5", None)]
    #[case("->x", None)]
    #[case("no-verify", None)]
    fn a_flag_is_kept_as_written(#[case] text: &str, #[case] flag: Option<&str>) {
        assert_eq!(Chunk::of(text).flag.as_deref(), flag);
    }

    #[test]
    fn a_path_is_found_by_its_tails() {
        let chunk = Chunk::of("a/src/auth/jwt.rs");
        assert_eq!(
            chunk.names[0].tails(),
            ["auth/jwt.rs", "src/auth/jwt.rs", "a/src/auth/jwt.rs"]
        );
    }

    #[test]
    fn a_dotted_name_is_found_by_its_last_two_words_and_a_version_without_its_v() {
        let Name::Path(segments) = &Chunk::of("v3.14.2").names[0] else {
            panic!("a version is a path of one segment");
        };
        assert_eq!(segments[0].compounds(), ["v3.14.2", "14.2", "3.14.2"]);
        assert!(segments[0].is_numeric());
    }
}
