//! Words that stand side by side in the query are worth more where they do so in a record.

use super::asked::AskedTerm;
use super::rank::{Match, Matches};

/// How far apart two neighbours may stand in a record.
const NEAR: u16 = 3;
/// What a pair is worth, times the logarithm of how few records hold both.
const WEIGHT: f64 = 0.3;

/// The neighbours of a query with what each pair is worth.
pub(super) struct Neighbours {
    pairs: Vec<Pair>,
}

struct Pair {
    first: usize,
    second: usize,
    worth: f64,
}

impl Neighbours {
    /// The pairs that some candidate holds.
    pub(super) fn of(asked: &[AskedTerm], matches: &Matches<'_>, records: f64) -> Self {
        let mut pairs = Vec::new();
        for (first, one) in asked.iter().enumerate() {
            for (second, other) in asked.iter().enumerate() {
                if !follow(one, other) {
                    continue;
                }
                let both = |found: &&[Match<'_>]| {
                    place_of(found, first).is_some() && place_of(found, second).is_some()
                };
                let holding = matches.each().filter(both).count();
                if holding > 0 {
                    pairs.push(Pair {
                        first,
                        second,
                        worth: WEIGHT * (1.0 + records / holding as f64).ln(),
                    });
                }
            }
        }
        Self { pairs }
    }

    /// What a record gains by its neighbours.
    pub(super) fn bonus(&self, matches: &[Match<'_>]) -> f64 {
        let near = |pair: &&Pair| {
            let first = place_of(matches, pair.first);
            let second = place_of(matches, pair.second);
            first.zip(second).is_some_and(|(first, second)| {
                let follows = |one: u16| {
                    let mut places = matches[second].stored.places();
                    places.any(|(other, _)| other > one && other - one <= NEAR)
                };
                matches[first].stored.places().any(|(one, _)| follows(one))
            })
        };
        self.pairs.iter().filter(near).map(|pair| pair.worth).sum()
    }
}

/// Whether the second stands right behind the first in the query. Two terms of runs do not
/// count: a pair of characters is a term by itself.
fn follow(one: &AskedTerm, other: &AskedTerm) -> bool {
    (one.is_spaced || other.is_spaced)
        && one
            .places
            .iter()
            .any(|place| other.places.contains(&(place + 1)))
}

/// Where the matches, in the order of terms, have this term.
fn place_of(matches: &[Match<'_>], asked: usize) -> Option<usize> {
    matches
        .binary_search_by_key(&asked, |found| found.asked)
        .ok()
}
