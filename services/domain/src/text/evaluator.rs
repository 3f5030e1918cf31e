//! Evaluates the literals of this module as Postgres would, so that what finds what can be tested
//! without a database. It reads the same text that Postgres is given.

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Chars;

use rstest::rstest;

use super::{Held, Weight, terms, vector};

type Text<'a> = Peekable<Chars<'a>>;

fn lexemes(literal: &str) -> HashSet<String> {
    let mut text = literal.chars().peekable();
    let mut found = HashSet::new();
    while text.peek().is_some() {
        found.insert(lexeme(&mut text));
        while text.next_if(|c| *c != '\'').is_some() {}
    }
    found
}

/// Terms and their places, as the literal has them.
pub(super) fn entries(literal: &str) -> Vec<(String, Vec<(u16, u8)>)> {
    let mut text = literal.chars().peekable();
    let mut found = Vec::new();
    while text.peek().is_some() {
        let term = lexeme(&mut text);
        let mut places = Vec::new();
        while text.next_if(|c| matches!(c, ':' | ',')).is_some() {
            let mut place = String::new();
            place.extend(std::iter::from_fn(|| text.next_if(char::is_ascii_digit)));
            let letter = text.next().expect("a place has its letter");
            let letter = u8::try_from(letter).expect("a letter");
            places.push((place.parse().expect("a place"), letter));
        }
        text.next_if_eq(&' ');
        found.push((term, places));
    }
    found
}

fn lexeme(text: &mut Text) -> String {
    assert_eq!(text.next(), Some('\''), "a lexeme opens");
    let mut out = String::new();
    loop {
        match text.next().expect("a lexeme closes") {
            '\\' => out.extend(text.next()),
            '\'' if text.next_if_eq(&'\'').is_none() => return out,
            c => out.push(c),
        }
    }
}

fn any(text: &mut Text, held: &HashSet<String>) -> bool {
    let mut matched = all(text, held);
    while text.next_if_eq(&'|').is_some() {
        text.next();
        matched |= all(text, held);
    }
    matched
}

fn all(text: &mut Text, held: &HashSet<String>) -> bool {
    let mut matched = one(text, held);
    while text.next_if_eq(&'&').is_some() {
        text.next();
        matched &= one(text, held);
    }
    matched
}

fn one(text: &mut Text, held: &HashSet<String>) -> bool {
    let matched = if text.next_if_eq(&'(').is_some() {
        let matched = any(text, held);
        assert_eq!(text.next(), Some(')'));
        matched
    } else {
        held.contains(&lexeme(text))
    };
    text.next_if_eq(&' ');
    matched
}

/// Places of the texts a query finds: those that match all of it, else those that match any.
fn found(texts: &[&str], query: &str) -> Vec<usize> {
    let terms = terms(query);
    let matching = |literal: &str| -> Vec<usize> {
        if terms.is_empty() {
            return Vec::new();
        }
        let matches = |text: &str| {
            let held = lexemes(&vector(&[(Weight::A, text)]).literal);
            let mut query = literal.chars().peekable();
            let matched = any(&mut query, &held);
            assert_eq!(query.next(), None, "{literal} is read to its end");
            matched
        };
        (0..texts.len()).filter(|at| matches(texts[*at])).collect()
    };
    for (at, text) in texts.iter().enumerate() {
        // What is matched without Postgres is matched alike.
        let held = terms.held_by([*text]);
        let all = matching(&terms.all()).contains(&at);
        let any = matching(&terms.any()).contains(&at);
        assert_eq!(
            (held == Held::All, held >= Held::Any),
            (all, all || any),
            "{query}: {text}"
        );
    }
    let strict = matching(&terms.all());
    if strict.is_empty() {
        matching(&terms.any())
    } else {
        strict
    }
}

#[rstest]
#[case("连接池", true)]
#[case("泄漏", true)]
#[case("连接池 错误", true)]
#[case("漏", true)]
#[case("数据库", false)]
fn c033_chinese_phrase_inside_a_sentence(#[case] query: &str, #[case] finds: bool) {
    assert_eq!(
        !found(&["修复连接池泄漏导致的错误"], query).is_empty(),
        finds
    );
}

#[rstest]
#[case("don't restart workers", true)]
#[case("don’t restart workers", true)]
#[case("\"unterminated", false)]
#[case("a\"b", false)]
#[case("(max=5)", true)]
#[case("key:value", true)]
#[case("key & | ! value", true)]
#[case("workers:*", true)]
#[case("restart <-> workers", true)]
#[case("'\":*", false)]
#[case("\\", false)]
#[case("%", false)]
#[case("workers'; drop table x; --", true)]
#[case("blue-green AND workers", true)]
fn c034_quotes_operators_and_punctuation(#[case] query: &str, #[case] finds: bool) {
    let text = "don't restart workers (max=5) with key:value";
    assert_eq!(!found(&[text], query).is_empty(), finds);
}

#[rstest]
#[case("--no-verify", &[0])]
#[case("\"--no-verify\"", &[0])]
#[case("git commit --no-verify", &[0])]
#[case("-Wall", &[])]
fn c035_a_leading_hyphen_is_no_negation(#[case] query: &str, #[case] places: &[usize]) {
    let mut texts = vec!["commit with --no-verify skipped the hook"];
    texts.resize(100, "unrelated note, no wall to verify");
    assert_eq!(found(&texts, query), places);
}

#[rstest]
#[case("retry.ts", 0)]
#[case("net/retry.ts", 0)]
#[case("src/net/retry.ts", 0)]
#[case("backoff retry.ts", 0)]
#[case("/home/me/app/src/net/retry.ts", 0)]
#[case("server.py", 1)]
#[case("api\\server.py", 1)]
#[case("D:\\svc\\api\\server.py", 1)]
#[case("@acme/kit", 2)]
#[case("3.14.2", 2)]
fn c036_a_file_name_finds_its_path(#[case] query: &str, #[case] place: usize) {
    let texts = [
        "backoff lives in src/net/retry.ts now",
        "edited D:\\svc\\api\\server.py",
        "package @acme/kit, version 3.14.2",
    ];
    assert_eq!(found(&texts, query), [place]);
}

#[rstest]
#[case("C++", 0)]
#[case("c++ parser", 0)]
#[case("C#", 1)]
#[case("C", 2)]
#[case(".NET", 3)]
fn c037_c_and_its_namesakes_are_four_languages(#[case] query: &str, #[case] place: usize) {
    let texts = [
        "ported the C++ parser",
        "C# bindings added",
        "plain C header",
        "moved to .NET 9",
    ];
    assert_eq!(found(&texts, query), [place]);
}

#[test]
fn a_compound_beside_a_word_widens_nothing() {
    let texts = [
        "backoff of the pool",
        "retry the count",
        "backoff of retryCount",
    ];
    assert_eq!(found(&texts, "backoff retry_count"), [2]);
    assert_eq!(found(&texts, "retry_count backoff"), [2]);
}

#[rstest]
#[case("retryCount", "set retry_count to 3")]
#[case("retry_count", "set retryCount to 3")]
#[case("retry-count", "set RETRY_COUNT to 3")]
#[case("retrycounts", "set retryCount to 3")]
#[case("http request", "parseHTTPRequest2 fails")]
#[case("Vec::push", "std::vec::Vec->push grows")]
#[case("pool.rs", "src/db/pool.rs:42 panics")]
#[case("5xx", "checkout returns 5xx")]
#[case("1.2.3", "released v1.2.3")]
#[case("连", "用pool连接数据库")]
#[case("ポート", "Worker のポートを変更")]
#[case("what is the pool size", "pool size is 20")]
fn a_respelled_name_finds_the_original(#[case] query: &str, #[case] text: &str) {
    assert_eq!(found(&[text, "something else entirely"], query), [0]);
}
