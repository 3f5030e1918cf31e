use proptest::prelude::*;
use rstest::rstest;

use super::super::{Vector, Weight, terms, vector};
use super::*;

fn candidate(vector: &Vector) -> Candidate<'_> {
    let (profile, _) = Profile::read(&vector.profile).expect("a profile");
    Candidate {
        profile,
        share: 1.0,
    }
}

/// Places of the texts (title, prose) in the order in which a query ranks them.
fn order(texts: &[(&str, &str)], query: &str) -> Vec<usize> {
    let vectors: Vec<Vector> = texts
        .iter()
        .map(|(title, prose)| vector(&[(Weight::A, title), (Weight::B, prose)]))
        .collect();
    let candidates: Vec<Candidate<'_>> = vectors.iter().map(candidate).collect();
    let ranked = rank(&terms(query), &Statistics::default(), &candidates);
    ranked.into_iter().map(|found| found.at).collect()
}

#[rstest]
#[case::a_title_counts_more("pool", &[("", "pool here"), ("pool", "")], &[1, 0])]
#[case::a_rare_word_counts_more("pool leak", &[("pool", ""), ("pool", ""), ("leak", "")], &[2, 0, 1])]
#[case::both_words_count_more("pool leak", &[("pool pool", ""), ("the pool of a leak", "")], &[1, 0])]
#[case::neighbours_count_more(
    "pool leak", &[("leak by night in any pool", ""), ("big pool leak by night", "")], &[1, 0])]
#[case::a_long_text_counts_less("pool", &[("", "pool in a much longer text than that"), ("", "pool")], &[1, 0])]
#[case::the_first_of_equals("pool", &[("pool", ""), ("pool", "")], &[0, 1])]
#[case::no_word_no_place("pool", &[("leak", ""), ("pool", "")], &[1])]
#[case::a_pair_of_characters_counts_more("连接", &[("接连", ""), ("连接", "")], &[1, 0])]
fn candidates_are_ranked(
    #[case] query: &str,
    #[case] texts: &[(&str, &str)],
    #[case] places: &[usize],
) {
    assert_eq!(order(texts, query), places);
}

#[test]
fn c037_c_plus_plus_stands_above_c_sharp() {
    let texts = [
        ("C# bindings added", ""),
        ("plain C header", ""),
        ("ported the C++ parser", ""),
    ];
    assert_eq!(order(&texts, "C++")[0], 2);
    assert_eq!(order(&texts, "C#")[0], 0);
}

#[test]
fn what_the_best_share_orders_the_tail_and_leaves_the_head() {
    let mut texts = vec![("pool leak in checkout", "billing retries"); 5];
    texts.push(("pool of unrelated things", "gardening at home"));
    texts.push(("pool of unrelated things", "billing retries"));
    let order = order(&texts, "pool leak");
    assert_eq!(order[..5], [0, 1, 2, 3, 4]);
    assert_eq!(order[5..], [6, 5]);
}

#[test]
fn an_old_candidate_of_a_cut_list_counts_less() {
    let vector = vector(&[(Weight::A, "pool")]);
    let candidate = |share| Candidate {
        share,
        ..candidate(&vector)
    };
    let ranked = rank(
        &terms("pool"),
        &Statistics::default(),
        &[candidate(0.5), candidate(1.0)],
    );
    assert_eq!(ranked[0].at, 1);
}

proptest! {
    /// No input makes a score that cannot be ordered, and nothing is lost or doubled.
    #[test]
    fn every_candidate_with_a_word_has_one_place(
        query in "\\PC{0,60}",
        texts in prop::collection::vec(("\\PC{0,40}", "(pool|leak|池|连| ){0,12}"), 0..12),
        records in prop_oneof![Just(0.0), Just(1.0), Just(1e9)],
        count in prop::option::of(0.0..1e9),
    ) {
        let query = format!("{query} pool 连接池");
        let vectors: Vec<_> = texts.iter()
            .map(|(title, prose)| vector(&[(Weight::A, title), (Weight::B, prose)]))
            .collect();
        let candidates: Vec<_> = vectors.iter().map(candidate).collect();
        let terms = terms(&query);
        let statistics = Statistics {
            records, counts: vec![count; terms.asked().len()], lengths: None,
        };
        let ranked = rank(&terms, &statistics, &candidates);
        let mut places: Vec<_> = ranked.iter().map(|found| found.at).collect();
        places.sort_unstable();
        places.dedup();
        prop_assert_eq!(places.len(), ranked.len());
        prop_assert!(ranked.iter().all(|found| found.score.is_finite() && found.score >= 0.0));
    }
}
