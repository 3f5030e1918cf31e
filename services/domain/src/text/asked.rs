//! The terms that a query scores records by: all that indexing would make of it, with their
//! places, so that neighbours in the query are known.

use super::Weight;
use super::profile::hash;
use super::scan::{Piece, is_unspaced};
use super::stop::is_stop;
use super::vector::{Builder, Entry};
use crate::limits;

/// Terms that only add to a score; as many as may lead.
const BESIDE: usize = limits::QUERY_TERMS;

/// A term of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedTerm {
    /// As it is indexed.
    pub term: String,
    /// By what profiles know it.
    pub(super) hash: u32,
    /// Where it stands in the query, stop words left out; ascending.
    pub places: Vec<usize>,
    /// Whether holding it is reason enough to look at a record. Other terms only add to the score
    /// of records that are looked at: single characters beside their pairs, parts of numbers.
    pub leads: bool,
    /// Whether it can be a neighbour. Pairs of a run are neighbours by their making.
    pub is_spaced: bool,
}

/// The scored terms of a query's pieces, in the order of their bytes.
pub(super) fn asked_terms(
    pieces: impl Iterator<Item = Piece>,
    leads: impl Fn(&str) -> bool,
) -> Vec<AskedTerm> {
    let mut builder = Builder::default();
    for piece in pieces {
        builder.piece(Weight::A, &piece);
    }
    let mut room = BESIDE;
    let entries = builder.entries.into_iter();
    let asked = entries.map(|entry| asked_term(entry, &leads));
    let mut asked: Vec<AskedTerm> = asked
        .filter(|asked| asked.leads || !is_stop(&asked.term))
        .filter(|asked| {
            let fits = asked.leads || room > 0;
            room -= usize::from(fits && !asked.leads);
            fits
        })
        .collect();
    asked.sort_unstable_by(|one, other| one.term.cmp(&other.term));
    asked
}

fn asked_term(entry: Entry, leads: impl Fn(&str) -> bool) -> AskedTerm {
    AskedTerm {
        leads: leads(&entry.term),
        hash: hash(&entry.term),
        is_spaced: !entry.term.chars().all(is_unspaced),
        places: entry.places.into_iter().map(|(place, _)| place).collect(),
        term: entry.term,
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms;

    fn shown(query: &str) -> String {
        let show = |asked: &super::AskedTerm| {
            let sign = if asked.leads { "+" } else { "" };
            format!("{sign}{}@{:?}", asked.term, asked.places)
        };
        let shown: Vec<String> = terms(query).asked().iter().map(show).collect();
        shown.join(" ")
    }

    #[test]
    fn stop_words_leave_no_gap_between_neighbours() {
        assert_eq!(
            shown("the leak of the pool, a pool"),
            "+leak@[0] +pool@[1, 2]"
        );
        assert_eq!(shown("the"), "+the@[0]");
    }

    #[test]
    fn single_characters_and_parts_of_numbers_only_score() {
        assert_eq!(shown("连接"), "接@[1] 连@[0] +连接@[0]");
        assert_eq!(shown("池"), "+池@[0]");
        assert_eq!(
            shown("v3.14"),
            "14@[2] 3@[1] 3.14@[0] v@[0] v3@[0] +v3.14@[0]"
        );
    }

    #[test]
    fn a_flag_leads_as_it_is_written() {
        assert_eq!(
            shown("--no-verify"),
            "+--no-verify@[0] noverifi@[0] verifi@[1]"
        );
    }

    #[test]
    fn a_long_query_is_bounded() {
        let words: String = (0..400).map(|n| format!("w{n}x ")).collect();
        assert!(terms(&words).asked().len() <= 2 * super::BESIDE);
        let run: String = ('\u{4e00}'..='\u{4fff}').collect();
        assert!(terms(&run).asked().len() <= 2 * super::BESIDE);
    }
}
