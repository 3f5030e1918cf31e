//! What other ways to search reach on the public sets, as data; and the goals.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Known figures: those of known sets, and those of whole systems.
#[derive(Debug, Deserialize)]
pub struct Baselines {
    /// How far below its reference a set may stay.
    pub within: f64,
    /// What the mean of the known sets must reach.
    pub mean_goal: Known,
    /// The reference line, by set.
    pub reference: BTreeMap<String, Known>,
    /// The means of other systems over the known sets.
    pub systems: Vec<System>,
}

/// The two figures that goals are about.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Known {
    /// nDCG@10.
    #[serde(rename = "ndcg@10")]
    pub ndcg: f64,
    /// recall@20.
    #[serde(rename = "recall@20")]
    pub recall: f64,
}

/// A way to search.
#[derive(Debug, Deserialize)]
pub struct System {
    /// What it is.
    pub name: String,
    /// What it reaches.
    #[serde(flatten)]
    pub mean: Known,
}

impl Baselines {
    /// The figures that come with this program.
    ///
    /// # Errors
    /// If its data are broken.
    pub fn read() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("baselines.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_means_are_those_of_the_sets() {
        let baselines = Baselines::read().expect("read");
        let sets = baselines.reference.len() as f64;
        assert!((sets - 12.0).abs() < 1e-9);
        let mean = |figure: fn(&Known) -> f64| {
            baselines.reference.values().map(figure).sum::<f64>() / sets
        };
        let line = baselines.systems.iter().rev().nth(1).expect("the line");
        assert!((mean(|known| known.ndcg) - line.mean.ndcg).abs() < 0.001);
        assert!((mean(|known| known.recall) - line.mean.recall).abs() < 0.001);
        let built = baselines.systems.last().expect("the design");
        assert_eq!(built.mean, baselines.mean_goal);
    }
}
