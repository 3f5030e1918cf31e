//! A record's vector as Postgres sends it: the binary form of a `tsvector`. Read once, to make the
//! profile of a row that has none yet.

use super::Weight;
use super::profile::profile;

/// Bits of a place that say where it is; the two above them say in which field.
const PLACE: u16 = 0x3fff;

/// The profile of what `tsvectorsend` made of a vector. Bytes of another form read as fewer terms.
#[must_use]
pub fn profile_of_sent(sent: &[u8], lengths: [i32; 4]) -> Vec<u8> {
    // The count of terms in front adds nothing: the bytes end with the last of them.
    let terms = Terms {
        rest: sent.get(4..).unwrap_or_default(),
    };
    let terms: Vec<(&str, Vec<(usize, Weight)>)> = terms.collect();
    let terms = terms
        .iter()
        .map(|(term, places)| (*term, places.as_slice()));
    profile(terms, lengths)
}

/// The terms of a sent vector, each with its places.
struct Terms<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Terms<'a> {
    type Item = (&'a str, Vec<(usize, Weight)>);

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let (term, rest) = self.rest.split_at(end);
        let [_, high, low, rest @ ..] = rest else {
            return None;
        };
        let count = usize::from(u16::from_be_bytes([*high, *low]));
        let (places, rest) = rest.split_at_checked(2 * count)?;
        self.rest = rest;
        let (pairs, _) = places.as_chunks::<2>();
        let place = |pair: &[u8; 2]| {
            let place = u16::from_be_bytes(*pair);
            let field = match place >> 14 {
                3 => Weight::A,
                2 => Weight::B,
                1 => Weight::C,
                _ => Weight::D,
            };
            (usize::from(place & PLACE), field)
        };
        // Postgres sends what we stored, which is UTF-8.
        let term = std::str::from_utf8(term).unwrap_or_default();
        Some((term, pairs.iter().map(place).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Vector, vector};
    use super::*;

    /// The binary form of a vector, as Postgres would send it.
    fn sent(vector: &Vector) -> Vec<u8> {
        let mut terms = super::super::evaluator::entries(&vector.literal);
        terms.sort();
        let mut out = u32::try_from(terms.len())
            .expect("few terms")
            .to_be_bytes()
            .to_vec();
        for (term, places) in terms {
            out.extend(term.as_bytes());
            out.push(0);
            out.extend(u16::try_from(places.len()).expect("few").to_be_bytes());
            for (place, letter) in places {
                let field = u16::from(b'D' - letter) << 14;
                out.extend((field | place).to_be_bytes());
            }
        }
        out
    }

    #[test]
    fn a_sent_vector_has_the_terms_of_its_profile() {
        let vector = vector(&[(Weight::A, "pool leak"), (Weight::D, "pool")]);
        let made = profile_of_sent(&sent(&vector), vector.lengths);
        let (made, _) = super::super::Profile::read(&made).expect("a profile");
        let (stored, _) = super::super::Profile::read(&vector.profile).expect("a profile");
        let terms = |profile: super::super::Profile<'_>| -> Vec<_> {
            let terms = profile.terms();
            terms
                .map(|(hash, held)| (hash, held.places().collect::<Vec<_>>()))
                .collect()
        };
        assert_eq!(terms(made), terms(stored));
    }

    #[test]
    fn bytes_of_another_form_end_early() {
        let sent = sent(&vector(&[(Weight::A, "pool leak")]));
        for end in 0..sent.len() {
            let made = profile_of_sent(&sent[..end], [0; 4]);
            let (profile, _) = super::super::Profile::read(&made).expect("a profile");
            assert!(profile.terms().count() < 2);
        }
    }
}
