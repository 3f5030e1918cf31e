//! The scenarios: which operations each one mixes, and what its goal is.

use super::corpus::Corpus;
use super::load::project_key;
use super::operation::{Call, Operation, item_rest};

/// Operations of a scenario: few, because each connection of pgbench prepares each by itself in
/// each round, which the service does once for all.
pub const OPERATIONS: usize = 16;
/// Items of a batch in the ingest scenario.
pub const BATCH: usize = 100;
/// What a session asks for.
pub const CONTEXT: &str = "/v1/context?tz=UTC";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Batches of 100 observations.
    Ingest,
    /// The context of a session start.
    Context,
}

impl Scenario {
    /// Its name in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Context => "context",
        }
    }

    /// The least share of the raw limit's rate that the service must reach.
    #[must_use]
    pub const fn goal(self) -> f64 {
        match self {
            Self::Ingest | Self::Context => 0.60,
        }
    }

    /// What one operation is, for people.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Ingest => "batches of 100 observations",
            Self::Context => "contexts",
        }
    }

    /// The operations to call, in every run the same.
    #[must_use]
    pub fn operations(self, keys: &[String], corpus: &mut Corpus) -> Vec<Operation> {
        (0..OPERATIONS).map(|_| self.one(keys, corpus)).collect()
    }

    fn one(self, keys: &[String], corpus: &mut Corpus) -> Operation {
        let tenant = corpus.tenant();
        let project = corpus.project(tenant);
        let call = match self {
            Self::Ingest => Call::Batch(
                (0..BATCH)
                    .map(|_| item_rest("observation", None, &corpus.observation()))
                    .collect(),
            ),
            Self::Context => Call::GetAnew(CONTEXT.to_owned()),
        };
        Operation {
            key: keys[tenant].clone(),
            project: project_key(project),
            call,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_the_same_every_time() {
        let keys: Vec<String> = (0..super::super::corpus::TENANTS)
            .map(|n| n.to_string())
            .collect();
        let mix = |scenario: Scenario| {
            let operations = scenario.operations(&keys, &mut Corpus::new(5));
            format!("{operations:?}")
        };
        for scenario in [Scenario::Ingest, Scenario::Context] {
            assert_eq!(mix(scenario), mix(scenario));
        }
    }
}
