//! The order of candidates: how much of the query a record holds, in which fields, how rare the
//! words are, whether neighbours stay neighbours, and then what the best have in common. Every
//! weight was chosen over labelled sets of questions; `./dev bench retrieval` measures the whole.

use super::asked::AskedTerm;
use super::feedback::reorder_tail;
use super::neighbours::Neighbours;
use super::profile::{Held, Profile};
use super::query::SearchTerms;

/// What a word of a title, of prose, of a fact and of a file counts.
const FIELD_WEIGHTS: [f64; 4] = [2.5, 1.0, 1.0, 0.7];
/// How soon more of the same word counts for less (BM25's k1).
const SATURATION: f64 = 1.2;
/// How much a long field takes off (BM25's b), the same for every field.
const LENGTH_SHARE: f64 = 0.5;
/// What a record gains by holding all that is asked for, as a part of its score.
const COVERAGE: f64 = 0.3;

/// What is known of the projects that are searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Their records.
    pub records: f64,
    /// For each term of [`SearchTerms::asked`], how many of the records hold it; `None` if it was
    /// not counted: then those of the candidates that hold it are counted.
    pub counts: Vec<Option<f64>>,
    /// The mean length of each field; that of the candidates if it is not known.
    pub lengths: Option<[f64; 4]>,
}

/// A record that the store proposes.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its terms.
    pub profile: Profile<'a>,
    /// A factor of its score: 1, or less for an old one where the newest alone were looked at.
    pub share: f64,
}

/// A candidate in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Its place among the candidates.
    pub at: usize,
    /// More is better; only comparable within one search.
    pub score: f64,
}

/// Orders candidates, the best first; of equals, the one that came first. Those that hold none of
/// the query's terms are left out.
#[must_use]
pub fn rank(
    terms: &SearchTerms,
    statistics: &Statistics,
    candidates: &[Candidate<'_>],
) -> Vec<Ranked> {
    let asked = terms.asked();
    let scale = Scale::of(statistics, candidates);
    let matches = Matches::of(asked, &scale, candidates);
    let rarities = rarities(statistics, &matches, asked.len());
    let all: f64 = rarities.iter().sum();
    let neighbours = Neighbours::of(asked, &matches, scale.records);
    let score = |(at, matches): (usize, &[Match<'_>])| {
        let held: f64 = matches.iter().map(|found| rarities[found.asked]).sum();
        let words: f64 = matches
            .iter()
            .map(|found| found.worth(&asked[found.asked], rarities[found.asked]))
            .sum();
        let score = words * (1.0 + COVERAGE * held / all) + neighbours.bonus(matches);
        Ranked {
            at,
            score: score * candidates[at].share,
        }
    };
    let found = matches.each().enumerate();
    let found = found.filter(|(_, found)| !found.is_empty());
    let mut ranked: Vec<Ranked> = found.map(score).collect();
    sort(&mut ranked);
    let mean = all / rarities.len().max(1) as f64;
    reorder_tail(&mut ranked, asked, &scale, candidates, mean);
    ranked
}

pub(super) fn sort(ranked: &mut [Ranked]) {
    ranked.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then(one.at.cmp(&other.at))
    });
}

/// How rare a term is that `count` of `records` hold.
pub(super) fn rarity(count: f64, records: f64) -> f64 {
    (1.0 + (records - count + 0.5).max(0.5) / (count + 0.5)).ln()
}

/// What fields and their lengths count in this search.
pub(super) struct Scale {
    /// The records that are searched; never fewer than the candidates.
    pub records: f64,
    lengths: [f64; 4],
}

impl Scale {
    fn of(statistics: &Statistics, candidates: &[Candidate<'_>]) -> Self {
        let count = candidates.len() as f64;
        let mean = |field: usize| {
            let lengths = candidates.iter().map(|c| c.profile.lengths()[field]);
            let all: f64 = lengths.map(f64::from).sum();
            all / count.max(1.0)
        };
        Self {
            records: statistics.records.max(count),
            lengths: statistics.lengths.unwrap_or_else(|| [0, 1, 2, 3].map(mean)),
        }
    }

    /// What one occurrence counts in each field of a record, by its weight and length.
    pub(super) fn each(&self, profile: &Profile<'_>) -> [f64; 4] {
        let lengths = profile.lengths();
        let each = |at: usize| {
            let length = f64::from(lengths[at]) / self.lengths[at].max(f64::MIN_POSITIVE);
            FIELD_WEIGHTS[at] / (1.0 - LENGTH_SHARE + LENGTH_SHARE * length)
        };
        [each(0), each(1), each(2), each(3)]
    }
}

/// How often a record holds a term, an occurrence in each field counting `each`; from 0 to 1 and
/// a little, whatever the number.
pub(super) fn held(term: &Held<'_>, each: &[f64; 4]) -> f64 {
    let held: f64 = term.places().map(|(_, field)| each[field]).sum();
    held * (SATURATION + 1.0) / (SATURATION + held)
}

/// A term of the query in a record.
pub(super) struct Match<'a> {
    /// Which term.
    pub asked: usize,
    /// Where it stands in the record.
    pub stored: Held<'a>,
    held: f64,
}

impl Match<'_> {
    fn worth(&self, asked: &AskedTerm, rarity: f64) -> f64 {
        self.held * rarity * asked.places.len() as f64
    }
}

/// What all candidates hold of the query, in the order of the candidates, of each in the order of
/// the query's terms.
pub(super) struct Matches<'a> {
    all: Vec<Match<'a>>,
    /// Where each candidate's end.
    ends: Vec<usize>,
}

impl<'a> Matches<'a> {
    fn of(asked: &[AskedTerm], scale: &Scale, candidates: &[Candidate<'a>]) -> Self {
        let mut all = Vec::with_capacity(candidates.len() * 2);
        let mut ends = Vec::with_capacity(candidates.len());
        for Candidate { profile, .. } in candidates {
            let each = scale.each(profile);
            let found = asked.iter().enumerate().filter_map(|(asked, term)| {
                let stored = profile.find(term.hash)?;
                let held = held(&stored, &each);
                Some(Match {
                    asked,
                    stored,
                    held,
                })
            });
            all.extend(found);
            ends.push(all.len());
        }
        Self { all, ends }
    }

    /// The matches of each candidate.
    pub(super) fn each(&self) -> impl Iterator<Item = &[Match<'a>]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.all[begin..*end])
    }
}

fn rarities(statistics: &Statistics, matches: &Matches<'_>, terms: usize) -> Vec<f64> {
    let mut seen = vec![0.0_f64; terms];
    for found in &matches.all {
        seen[found.asked] += 1.0;
    }
    let records = statistics.records.max(matches.ends.len() as f64);
    let counted = |at: usize| statistics.counts.get(at).copied().flatten();
    let rarity_of = |(at, seen): (usize, &f64)| match counted(at) {
        // A count is of a while ago: what is seen now is the least there is.
        Some(count) => rarity(count.max(*seen), records),
        // Nobody holds it: nothing is missing for lack of it.
        None if *seen == 0.0 => 0.0,
        None => rarity(*seen, records),
    };
    seen.iter().enumerate().map(rarity_of).collect()
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
