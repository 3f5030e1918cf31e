//! What was found, for people and for programs, and which goals it misses.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::ask::{Asked, Cost};
use super::baselines::{Baselines, Known};
use super::score::{METRICS, Scores, mean, percentile, score};
use super::sets::Set;

/// What came of a set.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its name.
    pub set: String,
    /// How many queries it has.
    pub queries: usize,
    /// The means of all queries.
    pub scores: Scores,
    /// Milliseconds of the index step: the median, and what 95 of 100 stay within.
    pub p50: f64,
    pub p95: f64,
    /// Queries with evidence in the index.
    pub found: usize,
    /// Their mean costs.
    pub steps: f64,
    pub dump: f64,
}

impl Outcome {
    /// The outcome of a set's queries.
    pub fn of((set, asked): (&Set, &Vec<Asked>)) -> Self {
        let pairs = set.queries.iter().zip(asked);
        let scores: Vec<Scores> = pairs
            .map(|(query, asked)| score(&asked.ids, &query.relevant))
            .collect();
        let costs: Vec<Cost> = asked.iter().filter_map(|asked| asked.cost).collect();
        let share = |tokens: fn(&Cost) -> usize| {
            let sum: usize = costs.iter().map(tokens).sum();
            sum as f64 / costs.len().max(1) as f64
        };
        let latencies = || asked.iter().map(|asked| asked.ms);
        Self {
            set: set.name.clone(),
            queries: set.queries.len(),
            scores: mean(&scores),
            p50: percentile(latencies(), 0.50),
            p95: percentile(latencies(), 0.95),
            found: costs.len(),
            steps: share(|cost| cost.steps),
            dump: share(|cost| cost.dump),
        }
    }

    fn known(&self) -> Known {
        let [_, _, recall, _, ndcg] = self.scores;
        Known { ndcg, recall }
    }
}

/// The mean of sets, whatever their size.
fn mean_of(outcomes: &[Outcome]) -> Scores {
    let scores: Vec<Scores> = outcomes.iter().map(|outcome| outcome.scores).collect();
    mean(&scores)
}

/// Writes `retrieval.json`: of each set its metrics, their means under `mean`.
///
/// # Errors
/// If it cannot be written.
pub fn write_figures(out: &Path, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let metrics = |scores: Scores| -> Map<String, Value> {
        let names = METRICS.iter().map(|name| (*name).to_owned());
        names.zip(scores.map(|value| json!(value))).collect()
    };
    let mut figures = Map::new();
    for outcome in outcomes {
        let mut set = metrics(outcome.scores);
        for (name, value) in [
            ("p50_ms", outcome.p50),
            ("p95_ms", outcome.p95),
            ("steps_tokens", outcome.steps),
            ("dump_tokens", outcome.dump),
        ] {
            set.insert(name.to_owned(), json!((value * 10.0).round() / 10.0));
        }
        set.insert("n".to_owned(), json!(outcome.queries));
        set.insert("n_found".to_owned(), json!(outcome.found));
        figures.insert(outcome.set.clone(), Value::Object(set));
    }
    figures.insert("mean".to_owned(), Value::Object(metrics(mean_of(outcomes))));
    crate::bench::report::write_figures(out, "retrieval", figures)
}

/// Scores beside the reference line, then the means of other systems.
pub fn table(outcomes: &[Outcome], baselines: &Baselines) -> String {
    let mut table = format!("{:<20} {:>6}", "", "n");
    for name in METRICS {
        let _ = write!(table, " {name:>9}");
    }
    table.push_str("   reference line      p50 ms  p95 ms\n");
    for outcome in outcomes {
        let _ = write!(table, "{:<20} {:>6}", outcome.set, outcome.queries);
        push_scores(&mut table, outcome.scores);
        match baselines.reference.get(&outcome.set) {
            Some(known) => push_known(&mut table, *known, outcome.known(), baselines.within),
            None => table.push_str("   -                 "),
        }
        let _ = writeln!(table, "  {:>6.1}  {:>6.1}", outcome.p50, outcome.p95);
    }
    let queries: usize = outcomes.iter().map(|outcome| outcome.queries).sum();
    let _ = write!(table, "{:<20} {queries:>6}", "mean of sets");
    push_scores(&mut table, mean_of(outcomes));
    table.push('\n');
    if known_outcomes(outcomes, baselines).is_some() {
        table.push_str("\nOver the same sets, others reach (recall@20, nDCG@10):\n");
        for system in &baselines.systems {
            let Known { ndcg, recall } = system.mean;
            let _ = writeln!(table, "{:<38} {recall:>6.3} {ndcg:>6.3}", system.name);
        }
    }
    table
}

fn push_scores(table: &mut String, scores: Scores) {
    for value in scores {
        let _ = write!(table, " {value:>9.4}");
    }
}

fn push_known(table: &mut String, known: Known, ours: Known, within: f64) {
    let mark = if falls_short(ours, known, within).is_some() {
        "missed"
    } else {
        ""
    };
    let (recall, ndcg) = (known.recall, known.ndcg);
    let _ = write!(table, "   {recall:.3} {ndcg:.3} {mark:<6}");
}

/// Tokens to the evidence in steps, beside the ten best hits whole.
pub fn costs(outcomes: &[Outcome]) -> String {
    let mut table = format!(
        "Tokens to the evidence, where the index has it:\n{:<20} {:>6} {:>10} {:>14} {:>7}\n",
        "", "n", "three steps", "ten hits whole", "share"
    );
    for outcome in outcomes.iter().filter(|outcome| outcome.found > 0) {
        let share = 100.0 * outcome.steps / outcome.dump.max(1.0);
        let _ = writeln!(
            table,
            "{:<20} {:>6} {:>11.0} {:>14.0} {share:>5.0} %",
            outcome.set, outcome.found, outcome.steps, outcome.dump
        );
    }
    table.trim_end().to_owned()
}

/// The outcomes of the known sets, if all of them are there.
fn known_outcomes(outcomes: &[Outcome], baselines: &Baselines) -> Option<Vec<Outcome>> {
    let of = |name: &String| outcomes.iter().find(|outcome| outcome.set == *name);
    baselines
        .reference
        .keys()
        .map(|name| of(name).cloned())
        .collect()
}

/// How the goals that were not reached were missed.
pub fn missed(outcomes: &[Outcome], baselines: &Baselines) -> Vec<String> {
    let mut missed = Vec::new();
    for outcome in outcomes {
        let known = baselines.reference.get(&outcome.set);
        let short = known.and_then(|known| falls_short(outcome.known(), *known, baselines.within));
        missed.extend(short.map(|how| format!("{}: {how}", outcome.set)));
    }
    if let Some(known) = known_outcomes(outcomes, baselines) {
        let [_, _, recall, _, ndcg] = mean_of(&known);
        let short = falls_short(Known { ndcg, recall }, baselines.mean_goal, 0.0);
        missed.extend(short.map(|how| format!("mean: {how}")));
    }
    missed
}

/// How one pair of figures falls short of another, if it does by more than `within`.
fn falls_short(ours: Known, goal: Known, within: f64) -> Option<String> {
    // Goals have three digits.
    let least = |goal: f64| goal - within - 1e-9;
    let mut how = Vec::new();
    for (name, ours, goal) in [
        ("recall@20", ours.recall, goal.recall),
        ("ndcg@10", ours.ndcg, goal.ndcg),
    ] {
        if ours < least(goal) {
            how.push(format!("{name} {ours:.4}, goal {:.3}", goal - within));
        }
    }
    (!how.is_empty()).then(|| how.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(set: &str, recall: f64, ndcg: f64) -> Outcome {
        Outcome {
            set: set.to_owned(),
            scores: [0.0, 0.0, recall, 0.0, ndcg],
            ..Outcome::default()
        }
    }

    #[test]
    fn a_set_may_stay_a_hundredth_below_its_reference_and_others_have_none() {
        let baselines = Baselines::read().expect("read");
        let check = |recall, ndcg| missed(&[outcome("code-git", recall, ndcg)], &baselines);
        assert!(check(0.802, 0.666).is_empty());
        assert_eq!(
            check(0.802, 0.665),
            ["code-git: ndcg@10 0.6650, goal 0.666"]
        );
        assert_eq!(check(0.8, 0.666).len(), 1);
        assert!(missed(&[outcome("unknown", 0.0, 0.0)], &baselines).is_empty());
    }

    #[test]
    fn the_mean_counts_where_all_known_sets_are() {
        let baselines = Baselines::read().expect("read");
        let with = |more: f64| -> Vec<Outcome> {
            let sets = baselines.reference.iter();
            let mut outcomes: Vec<Outcome> = sets
                .map(|(set, known)| outcome(set, known.recall + more, known.ndcg + more))
                .collect();
            // A set that is not known does not count.
            outcomes.push(outcome("other", 0.0, 0.0));
            outcomes
        };
        assert!(missed(&with(0.02), &baselines).is_empty());
        let short = missed(&with(0.0), &baselines);
        assert!(
            short.len() == 1 && short[0].starts_with("mean: "),
            "{short:?}"
        );
        assert!(missed(&with(0.0)[1..], &baselines).is_empty());
    }
}
