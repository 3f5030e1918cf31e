//! Scores: recall, reciprocal rank and discounted gain of a list of ids against the known answers,
//! by the definitions of the yardstick's own scorer.

use std::collections::HashSet;

/// The names of what is scored, in the order of [`Scores`].
pub const METRICS: [&str; 5] = ["recall@5", "recall@10", "recall@20", "mrr@10", "ndcg@10"];
/// Ids that count.
pub const DEPTH: usize = 20;

/// One value a metric, from 0 to 1.
pub type Scores = [f64; METRICS.len()];

/// Scores the answer to one query. Repeats of an id count once, at their first place.
#[must_use]
pub fn score(ids: &[String], relevant: &[String]) -> Scores {
    let relevant: HashSet<&str> = relevant.iter().map(String::as_str).collect();
    let mut seen = HashSet::new();
    let ids = ids.iter().map(String::as_str).filter(|id| seen.insert(*id));
    let hits: Vec<bool> = ids.take(DEPTH).map(|id| relevant.contains(id)).collect();
    let recall = |depth: usize| {
        let found = hits.iter().take(depth).filter(|hit| **hit).count();
        found as f64 / relevant.len() as f64
    };
    let first = hits.iter().take(10).position(|hit| *hit);
    let reciprocal = first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0));
    let places = hits.iter().take(10).enumerate().filter(|(_, hit)| **hit);
    let gain: f64 = places.map(|(place, _)| gain_at(place)).sum();
    let best: f64 = (0..relevant.len().min(10)).map(gain_at).sum();
    [recall(5), recall(10), recall(20), reciprocal, gain / best]
}

/// What a hit is worth at a place, counted from 0.
fn gain_at(place: usize) -> f64 {
    1.0 / (place as f64 + 2.0).log2()
}

/// The mean of each metric.
#[must_use]
pub fn mean(scores: &[Scores]) -> Scores {
    let mut mean = Scores::default();
    for one in scores {
        for (sum, value) in mean.iter_mut().zip(one) {
            *sum += value / scores.len() as f64;
        }
    }
    mean
}

/// The value that a share of all values stays below; 0 of none.
#[must_use]
pub fn percentile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let place = (share * values.len() as f64) as usize;
    let last = values.len().saturating_sub(1);
    values.get(place.min(last)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn assert_scores(list: &str, relevant: &str, expected: Scores) {
        let got = score(&ids(list), &ids(relevant));
        for (metric, (got, expected)) in METRICS.iter().zip(got.iter().zip(expected)) {
            assert!(
                (got - expected).abs() < 1e-6,
                "{metric}: {got}, not {expected}"
            );
        }
    }

    #[test]
    fn values_are_those_computed_by_hand() {
        assert_scores("a b c", "a", [1.0; 5]);
        assert_scores("", "a", [0.0; 5]);
        // Hits at places 2 and 6 of 3 answers: 1/log2(3) + 1/log2(7) over 1 + 1/log2(3) + 1/2.
        let gain = (0.630_929_753_6 + 0.356_207_187_1) / 2.130_929_753_6;
        let third = 1.0 / 3.0;
        let expected = [third, 2.0 * third, 2.0 * third, 0.5, gain];
        assert_scores("x a y z u b", "a b c", expected);
        // A hit at place 11 counts for recall@20 alone.
        let late = "1 2 3 4 5 6 7 8 9 10 a";
        assert_scores(late, "a", [0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn repeats_count_once_and_what_comes_after_twenty_not_at_all() {
        assert_scores("x x a", "a", [1.0, 1.0, 1.0, 0.5, 0.630_929_753_6]);
        let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let late = format!("{} a", many.join(" "));
        assert_scores(&late, "a", [0.0; 5]);
    }

    #[test]
    fn more_answers_than_ten_can_still_be_perfect() {
        let twelve = "a b c d e f g h i j k l";
        let expected = [5.0 / 12.0, 10.0 / 12.0, 1.0, 1.0, 1.0];
        assert_scores(twelve, twelve, expected);
    }

    #[test]
    fn means_and_percentiles_are_of_all() {
        let means = mean(&[[0.0; 5], [1.0; 5]]);
        assert!(means.iter().all(|value| (value - 0.5).abs() < 1e-9));
        let values = || (1..=20).map(f64::from);
        assert!((percentile(values(), 0.5) - 11.0).abs() < 1e-9);
        assert!((percentile(values(), 1.0) - 20.0).abs() < 1e-9);
        assert!(percentile(std::iter::empty(), 0.5).abs() < 1e-9);
    }
}
