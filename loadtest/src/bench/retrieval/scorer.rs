//! The yardstick's own scorer, where the folder brings one and the machine can run it: it must
//! come to the same figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::report::Outcome;
use super::score::METRICS;
use crate::output::complain;
use crate::process::output_of;

/// How far two sums of the same numbers may lie apart.
const TOLERANCE: f64 = 1e-9;

/// Runs the scorer over a run and compares.
///
/// # Errors
/// If it fails, or comes to other figures.
pub fn agree(folder: &Path, sets: &Path, run: &Path, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let scorer = folder.join("score.py");
    if !scorer.is_file() {
        return Ok(());
    }
    if Command::new("python3").arg("--version").output().is_err() {
        complain("python3 is not on this machine; the scores were not computed twice");
        return Ok(());
    }
    let figures = run.with_file_name("retrieval.score.json");
    let mut command = Command::new("python3");
    command
        .arg(&scorer)
        .arg(sets)
        .arg(run)
        .arg("--json")
        .arg(&figures);
    output_of(&mut command)?;
    let theirs: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(&figures)?)?;
    compare(&theirs, outcomes)
}

fn compare(theirs: &BTreeMap<String, Value>, outcomes: &[Outcome]) -> anyhow::Result<()> {
    for outcome in outcomes {
        let set = theirs.get(&outcome.set);
        let set = set.with_context(|| format!("score.py knows nothing of {}", outcome.set))?;
        for (metric, ours) in METRICS.iter().zip(outcome.scores) {
            let value = set[metric].as_f64();
            if !value.is_some_and(|value| (value - ours).abs() < TOLERANCE) {
                bail!(
                    "{} {metric}: {ours} here, {value:?} by score.py",
                    outcome.set
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_named() {
        let outcome = Outcome {
            set: "a".to_owned(),
            scores: [0.5; 5],
            ..Outcome::default()
        };
        let mut theirs = json!({"a": {"recall@5": 0.5, "recall@10": 0.5, "recall@20": 0.5,
            "mrr@10": 0.5, "ndcg@10": 0.5}});
        let check = |theirs: &Value| {
            let theirs = serde_json::from_value(theirs.clone()).expect("an object");
            compare(&theirs, std::slice::from_ref(&outcome))
        };
        check(&theirs).expect("agrees");
        theirs["a"]["mrr@10"] = json!(0.500_001);
        let error = check(&theirs).expect_err("differs");
        assert!(error.to_string().starts_with("a mrr@10"), "{error}");
        assert!(check(&json!({})).is_err(), "the set is missing");
    }
}
