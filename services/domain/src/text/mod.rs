//! The one analyser of search text: for indexing, querying and ranking, so that the three can
//! never disagree about what a term is.
//!
//! [`vector`] is what a record's row keeps: terms to be found by, and a [`Profile`] to be ranked
//! by. [`terms`] is what a query asks for; [`rank`] orders what the store finds by it. Finding
//! candidates is the store's.

mod asked;
mod chunk;
mod feedback;
mod fields;
mod neighbours;
mod profile;
mod query;
mod rank;
mod scan;
mod stop;
mod stored;
mod titles;
mod vector;
mod word;

#[cfg(test)]
mod evaluator;

pub use asked::AskedTerm;
pub use fields::{imported_text, observation_texts, record_texts, summary_texts};
pub use profile::Profile;
pub use query::{Held, SearchTerms, terms};
pub use rank::{Candidate, Ranked, Statistics, rank};
pub use stored::profile_of_sent;
pub use titles::{TitleWords, without_stop_words};
pub use vector::{Vector, vector};

/// The analyser's version, stored with every vector. Raise it whenever a text could give other
/// terms, or another profile, than before; rows of an older version are then due for new ones.
pub const ANALYSER: i16 = 2;

/// Which field of a record a text comes from; the letters are those of a `tsvector`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Weight {
    /// Title, or a summary's request.
    A,
    /// Narrative, or any other prose.
    B,
    /// Facts.
    C,
    /// Files and concepts.
    D,
}

impl Weight {
    const fn letter(self) -> char {
        match self {
            Self::A => 'A',
            Self::B => 'B',
            Self::C => 'C',
            Self::D => 'D',
        }
    }

    /// Its place in [`Vector::lengths`].
    const fn index(self) -> usize {
        self as usize
    }
}
