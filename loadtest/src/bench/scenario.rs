//! The scenarios: which operations each one mixes, and what its goal is.

use clap::ValueEnum;
use serde_json::json;

use super::corpus::{Class, Corpus};
use super::load::project_key;
use super::operation::{Call, Operation, item_rest};

/// Operations of a scenario: few, because each connection of pgbench prepares each by itself in
/// each round, which the service does once for all.
pub const OPERATIONS: usize = 16;
/// Items of a batch in the ingest scenario.
pub const BATCH: usize = 100;
/// What a session asks for.
pub const CONTEXT: &str = "/v1/context?tz=UTC";
/// Of a hundred searches, those in the largest tenant.
const LARGEST: usize = 30;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Batches of 100 observations.
    Ingest,
    /// The index step of a search.
    Search,
    /// The context of a session start.
    Context,
}

impl Scenario {
    /// Its name in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Search => "search",
            Self::Context => "context",
        }
    }

    /// The least share of the raw limit's rate that the service must reach.
    #[must_use]
    pub const fn goal(self) -> f64 {
        match self {
            Self::Search => 0.80,
            Self::Ingest | Self::Context => 0.60,
        }
    }

    /// What one operation is, for people.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Ingest => "batches of 100 observations",
            Self::Search => "index steps",
            Self::Context => "contexts",
        }
    }

    /// The operations to call, in every run the same.
    #[must_use]
    pub fn operations(self, keys: &[String], corpus: &mut Corpus) -> Vec<Operation> {
        (0..OPERATIONS)
            .map(|index| self.one(index, keys, corpus))
            .collect()
    }

    fn one(self, index: usize, keys: &[String], corpus: &mut Corpus) -> Operation {
        let tenant = match self {
            // Evenly spread over the list, so that the share is exact.
            Self::Search if (index * LARGEST) % 100 < LARGEST => 0,
            Self::Search => 1 + corpus.below(keys.len() - 1),
            Self::Ingest | Self::Context => corpus.tenant(),
        };
        let project = corpus.project(tenant);
        let call = match self {
            Self::Ingest => Call::Batch(
                (0..BATCH)
                    .map(|_| item_rest("observation", None, &corpus.observation()))
                    .collect(),
            ),
            Self::Search => Call::Post(
                "/v1/mem-search",
                json!({"query": query(index, corpus)}).to_string(),
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

/// A rare word, a word of middling frequency, a common one, and a common and a middling one.
fn query(index: usize, corpus: &mut Corpus) -> String {
    match index % 4 {
        0 => corpus.word_of(Class::Rare),
        1 => corpus.word_of(Class::Mid),
        2 => corpus.word_of(Class::Common),
        _ => format!(
            "{} {}",
            corpus.word_of(Class::Common),
            corpus.word_of(Class::Mid)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_the_same_every_time_and_favours_the_largest_tenant() {
        let keys: Vec<String> = (0..super::super::corpus::TENANTS)
            .map(|n| n.to_string())
            .collect();
        let mix = || Scenario::Search.operations(&keys, &mut Corpus::new(5));
        let text = |operations: Vec<Operation>| format!("{operations:?}");
        assert_eq!(text(mix()), text(mix()));
        let largest = mix()
            .iter()
            .filter(|operation| operation.key == "0")
            .count();
        assert_eq!(largest, 5, "of {OPERATIONS}");
    }
}
