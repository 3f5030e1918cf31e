//! What the best candidates have in common finds others like them: the tail is ordered again
//! by the words that the head shares, beside the words of the query.

use std::cmp::Ordering;

use super::asked::AskedTerm;
use super::profile::Held;
use super::rank::{Candidate, Ranked, Scale, held, rarity, sort};

/// Places that stay as they are: without them, identifiers would lose theirs.
const HEAD: usize = 5;
/// The best candidates, whose words are looked at.
const BEST: usize = 10;
/// Words that are taken from them.
const WORDS: usize = 10;
/// Of how many of the best a word must be.
const SHARED: usize = 2;
/// What such a word counts beside one of the query.
const WEIGHT: f64 = 0.3;
/// How rare such a word may count, in terms of the query's mean.
const RARITY_CAP: f64 = 2.0;

/// Orders the places behind the head again. `mean` is the mean rarity of the query's terms.
pub(super) fn reorder_tail(
    ranked: &mut [Ranked],
    asked: &[AskedTerm],
    scale: &Scale,
    candidates: &[Candidate<'_>],
    mean: f64,
) {
    if ranked.len() <= HEAD {
        return;
    }
    let mut shared = shared_words(ranked, asked, candidates);
    let count = ranked.len() as f64;
    for found in &*ranked {
        each_held(&mut shared, &candidates[found.at], |word, _| {
            word.holding += 1.0
        });
    }
    for word in &mut shared {
        word.rarity = rarity(word.holding, count).min(RARITY_CAP * mean);
    }
    shared.sort_by(|one, other| {
        let (one_worth, other_worth) = (one.share * one.rarity, other.share * other.rarity);
        other_worth
            .total_cmp(&one_worth)
            .then(one.hash.cmp(&other.hash))
    });
    shared.truncate(WORDS);
    shared.sort_unstable_by_key(|word| word.hash);
    let tail = &mut ranked[HEAD..];
    for found in &mut *tail {
        let candidate = &candidates[found.at];
        let each = scale.each(&candidate.profile);
        let mut gain = 0.0;
        each_held(&mut shared, candidate, |word, stored| {
            gain += word.rarity * held(stored, &each);
        });
        found.score += WEIGHT * gain * candidate.share;
    }
    sort(tail);
}

/// A word that several of the best hold.
struct Shared {
    hash: u32,
    /// The part of the best's scores that those have which hold it.
    share: f64,
    /// How many of the candidates hold it.
    holding: f64,
    rarity: f64,
}

/// The words that the best share, that say something, and that the query does not ask for, by
/// their hashes.
fn shared_words(
    ranked: &[Ranked],
    asked: &[AskedTerm],
    candidates: &[Candidate<'_>],
) -> Vec<Shared> {
    let best = &ranked[..BEST.min(ranked.len())];
    let all: f64 = best.iter().map(|found| found.score).sum();
    let mut held: Vec<(u32, f64)> = Vec::new();
    for found in best {
        let terms = candidates[found.at].profile.terms();
        let telling = terms.filter(|(_, stored)| stored.is_telling());
        held.extend(telling.map(|(hash, _)| (hash, found.score / all)));
    }
    held.sort_unstable_by_key(|(hash, _)| *hash);
    let is_asked = |hash: u32| asked.iter().any(|asked| asked.hash == hash);
    let groups = held.chunk_by(|(one, _), (other, _)| one == other);
    let shared = groups.filter(|group| group.len() >= SHARED && !is_asked(group[0].0));
    shared
        .map(|group| Shared {
            hash: group[0].0,
            share: group.iter().map(|(_, share)| share).sum(),
            holding: 0.0,
            rarity: 0.0,
        })
        .collect()
}

/// Calls `see` for each of the words, in the order of their hashes, that a candidate holds.
fn each_held<'a>(
    words: &mut [Shared],
    candidate: &Candidate<'a>,
    mut see: impl FnMut(&mut Shared, &Held<'a>),
) {
    let mut words = words.iter_mut().peekable();
    for (hash, stored) in candidate.profile.terms() {
        while let Some(word) = words.peek_mut() {
            match word.hash.cmp(&hash) {
                Ordering::Less => drop(words.next()),
                Ordering::Equal => {
                    see(word, &stored);
                    break;
                }
                Ordering::Greater => break,
            }
        }
        if words.peek().is_none() {
            return;
        }
    }
}
