//! Words as titles are compared by: no stems and no index, only what a reader would call the same
//! word (contract 7.7).

use unicode_normalization::UnicodeNormalization;

use super::scan::{is_unspaced, is_word};
use super::stop::is_stop;

/// Words of so many characters are the same if they begin with the same so many.
const PREFIX: usize = 5;

/// The words of a query, to be looked for in titles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleWords(Vec<String>);

impl TitleWords {
    /// The words of a query without its stop words; with them if it has no others.
    #[must_use]
    pub fn of(query: &str) -> Self {
        let mut words = words(query);
        if words.iter().any(|word| !is_stop(word)) {
            words.retain(|word| !is_stop(word));
        }
        Self(words)
    }

    /// How many of them a title holds.
    #[must_use]
    pub fn held_by(&self, title: &str) -> usize {
        let title = words(title);
        let held = |word: &&String| title.iter().any(|other| is_same(word, other));
        self.0.iter().filter(held).count()
    }
}

/// The query without its stop words, if it has some and others.
#[must_use]
pub fn without_stop_words(query: &str) -> Option<String> {
    let trimmed = |word: &str| word.trim_matches(|c| !is_word(c)).to_lowercase();
    let all: Vec<&str> = query.split_whitespace().collect();
    let kept: Vec<&str> = all
        .iter()
        .copied()
        .filter(|word| !is_stop(&trimmed(word)))
        .collect();
    (!kept.is_empty() && kept.len() < all.len()).then(|| kept.join(" "))
}

fn is_same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let head = |word: &str| -> Option<String> {
        let head: String = word.chars().take(PREFIX).collect();
        (head.chars().count() == PREFIX).then_some(head)
    };
    head(one).is_some_and(|head_of_one| head(other) == Some(head_of_one))
}

/// Lower-cased runs of letters and digits, and the pairs of runs without spaces; each once.
fn words(text: &str) -> Vec<String> {
    let text: Vec<char> = text.nfkc().flat_map(char::to_lowercase).collect();
    let mut found: Vec<String> = Vec::new();
    for run in text.chunk_by(|one, other| class(*one) == class(*other)) {
        match class(run[0]) {
            Class::Sign => {}
            Class::Spaced => found.push(run.iter().collect()),
            Class::Unspaced if run.len() == 1 => found.push(run.iter().collect()),
            Class::Unspaced => found.extend(run.windows(2).map(|pair| pair.iter().collect())),
        }
    }
    let mut unique: Vec<String> = Vec::new();
    for word in found {
        if !unique.contains(&word) {
            unique.push(word);
        }
    }
    unique
}

#[derive(PartialEq)]
enum Class {
    Spaced,
    Unspaced,
    Sign,
}

fn class(c: char) -> Class {
    if is_unspaced(c) {
        Class::Unspaced
    } else if is_word(c) {
        Class::Spaced
    } else {
        Class::Sign
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::equal("pool leak", "Pool: a LEAK", 2)]
    #[case::the_same_head("connections", "connect the pool", 1)]
    #[case::too_short_for_a_head("pools", "pool", 0)]
    #[case::stop_words_do_not_count("the pool of it", "the state of it", 0)]
    #[case::nothing_but_stop_words("the of", "the state of it", 2)]
    #[case::pairs_of_a_run("连接池泄漏", "修复连接池", 2)]
    #[case::a_lone_character("池", "池", 1)]
    #[case::a_word_once("pool pool", "pool", 1)]
    #[case::wide_letters("ＰＯＯＬ", "pool", 1)]
    #[case::parts_of_a_name("retry_count", "count the retry", 2)]
    fn a_title_holds_words(#[case] query: &str, #[case] title: &str, #[case] held: usize) {
        assert_eq!(TitleWords::of(query).held_by(title), held);
    }

    #[rstest]
    #[case("what is the pool?", Some("pool?"))]
    #[case("pool leak", None)]
    #[case("what is the", None)]
    fn stop_words_are_left_out(#[case] query: &str, #[case] rest: Option<&str>) {
        assert_eq!(without_stop_words(query).as_deref(), rest);
    }
}
