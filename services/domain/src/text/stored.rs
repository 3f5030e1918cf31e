//! A record's vector as Postgres sends it, read in place: the binary form of a `tsvector`, whose
//! terms stand in the order of their bytes.

use super::Weight;

/// Bits of a place that say where it is; the two above them say in which field.
const PLACE: u16 = 0x3fff;

/// The vector of a candidate.
#[derive(Clone, Copy, Debug)]
pub struct StoredVector<'a> {
    bytes: &'a [u8],
}

/// One term of a stored vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredTerm<'a> {
    pub term: &'a [u8],
    places: &'a [u8],
}

impl<'a> StoredVector<'a> {
    /// What `tsvectorsend` made of a vector. Bytes of another form read as fewer terms.
    #[must_use]
    pub fn new(sent: &'a [u8]) -> Self {
        // The count of terms in front adds nothing: the bytes end with the last of them.
        Self {
            bytes: sent.get(4..).unwrap_or_default(),
        }
    }

    /// Its terms in the order of their bytes.
    pub(super) const fn terms(self) -> StoredTerms<'a> {
        StoredTerms { rest: self.bytes }
    }
}

/// The terms of a stored vector.
pub(super) struct StoredTerms<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for StoredTerms<'a> {
    type Item = StoredTerm<'a>;

    fn next(&mut self) -> Option<StoredTerm<'a>> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let (term, rest) = self.rest.split_at(end);
        let [_, high, low, rest @ ..] = rest else {
            return None;
        };
        let count = usize::from(u16::from_be_bytes([*high, *low]));
        let (places, rest) = rest.split_at_checked(2 * count)?;
        self.rest = rest;
        Some(StoredTerm { term, places })
    }
}

impl StoredTerm<'_> {
    /// Where it stands, ascending, and in which field.
    pub(super) fn places(&self) -> impl Iterator<Item = (u16, Weight)> {
        let (pairs, _) = self.places.as_chunks::<2>();
        pairs.iter().map(|pair| {
            let place = u16::from_be_bytes(*pair);
            let field = match place >> 14 {
                3 => Weight::A,
                2 => Weight::B,
                1 => Weight::C,
                _ => Weight::D,
            };
            (place & PLACE, field)
        })
    }
}

/// The binary form of a vector, as Postgres would send it.
#[cfg(test)]
pub(super) fn sent(vector: &super::Vector) -> Vec<u8> {
    let mut terms = super::evaluator::entries(&vector.literal);
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

#[cfg(test)]
mod tests {
    use super::super::vector;
    use super::*;

    #[test]
    fn a_sent_vector_reads_as_its_terms() {
        let sent = sent(&vector(&[(Weight::A, "pool leak"), (Weight::D, "pool")]));
        let terms: Vec<_> = StoredVector::new(&sent)
            .terms()
            .map(|term| {
                (
                    String::from_utf8_lossy(term.term).into_owned(),
                    term.places().collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(
            terms,
            [
                ("leak".to_owned(), vec![(2, Weight::A)]),
                ("pool".to_owned(), vec![(1, Weight::A), (103, Weight::D)]),
            ]
        );
    }

    #[test]
    fn bytes_of_another_form_end_early() {
        let sent = sent(&vector(&[(Weight::A, "pool leak")]));
        for end in 0..sent.len() {
            assert!(StoredVector::new(&sent[..end]).terms().count() < 2);
        }
    }
}
