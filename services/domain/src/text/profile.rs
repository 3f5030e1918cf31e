//! A record's profile: what ranking reads of its vector, in a form that is found in and read in
//! place. Terms are known by a hash; only a record that the index proposes is looked at, so two
//! terms of one hash could misplace a record and never find a wrong one.
//!
//! ```text
//! form 1 | terms u16 | tail u16 pairs u32 | words of each field 4 x u16
//! hashes, ascending, u32 each | codes, u16 each | tail
//! ```
//! A code is `0 telling field(2) place(12)` for a term that stands once, and `1 telling at(14)`
//! for one that stands more often: its places are in the tail, their number first, each
//! `field(2) place(14)`. All numbers are little-endian.

use super::Weight;
use super::stop::is_stop;
use super::vector::Entry;

/// The form that stands first.
const FORM: u8 = 1;
/// Bytes before the hashes.
const HEAD: usize = 15;
const MANY: u16 = 1 << 15;
const TELLING: u16 = 1 << 14;
/// The last place that a code has room for; later ones count as this one.
const CODE_PLACE: u16 = (1 << 12) - 1;
/// The last pair of the tail that a code can name. A text that is longer keeps the first place
/// alone of terms that come later.
const LAST_PAIR: usize = (1 << 14) - 1;
/// Places of one term: more of the same counts for next to nothing.
const PLACES: usize = 31;
const PLACE: u16 = (1 << 14) - 1;

/// A profile as it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile<'a> {
    lengths: [u16; 4],
    hashes: &'a [[u8; 4]],
    codes: &'a [[u8; 2]],
    tail: &'a [[u8; 2]],
}

/// A term of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a> {
    code: u16,
    tail: &'a [[u8; 2]],
}

/// By what a term is known in profiles: FNV-1a of its bytes, folded.
pub(super) fn hash(term: &str) -> u32 {
    let hash = term.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

/// The profile of some terms, first ones first if there are more than it has room for.
pub(super) fn profile<'a>(
    terms: impl Iterator<Item = (&'a str, &'a [(usize, Weight)])>,
    lengths: [i32; 4],
) -> Vec<u8> {
    let mut tail: Vec<u16> = Vec::new();
    let mut coded: Vec<(u32, u16)> = Vec::new();
    for (term, places) in terms.take(usize::from(u16::MAX)) {
        let telling = if is_telling(term) { TELLING } else { 0 };
        coded.push((hash(term), telling | code(places, &mut tail)));
    }
    // Of two terms with one hash the first is kept.
    coded.sort_by_key(|(hash, _)| *hash);
    coded.dedup_by_key(|(hash, _)| *hash);
    let mut out = Vec::with_capacity(HEAD + 6 * coded.len() + 2 * tail.len());
    out.push(FORM);
    out.extend((coded.len() as u16).to_le_bytes());
    out.extend((tail.len() as u32).to_le_bytes());
    for length in lengths {
        out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    }
    out.extend(coded.iter().flat_map(|(hash, _)| hash.to_le_bytes()));
    out.extend(coded.iter().flat_map(|(_, code)| code.to_le_bytes()));
    out.extend(tail.iter().flat_map(|pair| pair.to_le_bytes()));
    out
}

/// The profile of a vector's entries.
pub(super) fn of_entries(entries: &[Entry], lengths: [i32; 4]) -> Vec<u8> {
    let terms = entries.iter();
    profile(
        terms.map(|entry| (entry.term.as_str(), entry.places.as_slice())),
        lengths,
    )
}

/// Where a term stands, in the code itself or at the end of the tail.
fn code(places: &[(usize, Weight)], tail: &mut Vec<u16>) -> u16 {
    let pair = |(place, field): &(usize, Weight)| {
        let place = u16::try_from(*place).unwrap_or(PLACE).min(PLACE);
        (field.index() as u16) << 14 | place
    };
    if places.len() > 1 && tail.len() <= LAST_PAIR {
        let at = tail.len() as u16;
        let kept = &places[..places.len().min(PLACES)];
        tail.push(kept.len() as u16);
        tail.extend(kept.iter().map(pair));
        return MANY | at;
    }
    let first = places.first().map_or(0, pair);
    (first >> 14) << 12 | (first & PLACE).min(CODE_PLACE)
}

/// Whether a term says what a record is about, by itself: no single character, no stop word.
fn is_telling(term: &str) -> bool {
    let mut characters = term.chars();
    let is_single = characters.next().is_some() && characters.next().is_none();
    !is_single && !is_stop(term)
}

impl<'a> Profile<'a> {
    /// The profile that the bytes begin with, and what follows it; `None` if they are no profile.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let [FORM, t0, t1, p0, p1, p2, p3, rest @ ..] = bytes else {
            return None;
        };
        let terms = usize::from(u16::from_le_bytes([*t0, *t1]));
        let pairs = usize::try_from(u32::from_le_bytes([*p0, *p1, *p2, *p3])).ok()?;
        let (lengths, rest) = rest.split_at_checked(8)?;
        let (hashes, rest) = rest.split_at_checked(4 * terms)?;
        let (codes, rest) = rest.split_at_checked(2 * terms)?;
        let (tail, rest) = rest.split_at_checked(pairs.checked_mul(2)?)?;
        let (lengths, _) = lengths.as_chunks::<2>();
        let length = |at: usize| {
            lengths
                .get(at)
                .map_or(0, |length| u16::from_le_bytes(*length))
        };
        let profile = Self {
            lengths: [length(0), length(1), length(2), length(3)],
            hashes: hashes.as_chunks().0,
            codes: codes.as_chunks().0,
            tail: tail.as_chunks().0,
        };
        Some((profile, rest))
    }

    /// Words of each of its fields.
    pub(super) const fn lengths(&self) -> [u16; 4] {
        self.lengths
    }

    /// A term, if the record holds it.
    pub(super) fn find(&self, hash: u32) -> Option<Held<'a>> {
        let at = self
            .hashes
            .binary_search_by_key(&hash, |hash| u32::from_le_bytes(*hash))
            .ok()?;
        Some(self.held(at))
    }

    /// Its terms, their hashes ascending.
    pub(super) fn terms(self) -> impl Iterator<Item = (u32, Held<'a>)> {
        let hashes = self.hashes.iter().map(|hash| u32::from_le_bytes(*hash));
        hashes
            .enumerate()
            .map(move |(at, hash)| (hash, self.held(at)))
    }

    fn held(&self, at: usize) -> Held<'a> {
        Held {
            code: self
                .codes
                .get(at)
                .map_or(0, |code| u16::from_le_bytes(*code)),
            tail: self.tail,
        }
    }
}

impl Held<'_> {
    /// Whether it says what the record is about, by itself.
    pub(super) const fn is_telling(&self) -> bool {
        self.code & TELLING != 0
    }

    /// Where it stands, ascending, and in which field, by [`Weight`]'s order.
    pub(super) fn places(&self) -> impl Iterator<Item = (u16, usize)> {
        let (once, many) = match self.code & MANY {
            0 => {
                let place = self.code & CODE_PLACE;
                (Some((place, usize::from(self.code >> 12 & 3))), &[][..])
            }
            _ => (None, self.pairs()),
        };
        let pairs = many.iter().map(|pair| {
            let pair = u16::from_le_bytes(*pair);
            (pair & PLACE, usize::from(pair >> 14))
        });
        once.into_iter().chain(pairs)
    }

    fn pairs(&self) -> &[[u8; 2]] {
        let at = usize::from(self.code & PLACE);
        let count = self
            .tail
            .get(at)
            .map_or(0, |count| u16::from_le_bytes(*count));
        let places = self.tail.get(at + 1..at + 1 + usize::from(count));
        places.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Vector, vector};
    use super::*;

    fn read(vector: &Vector) -> Profile<'_> {
        let (profile, rest) = Profile::read(&vector.profile).expect("a profile");
        assert!(rest.is_empty());
        profile
    }

    fn places(profile: &Profile<'_>, term: &str) -> Option<Vec<(u16, usize)>> {
        Some(profile.find(hash(term))?.places().collect())
    }

    #[test]
    fn it_says_where_each_term_stands() {
        let vector = vector(&[(Weight::A, "pool leak"), (Weight::D, "pool")]);
        let profile = read(&vector);
        assert_eq!(places(&profile, "leak"), Some(vec![(2, 0)]));
        assert_eq!(places(&profile, "pool"), Some(vec![(1, 0), (103, 3)]));
        assert_eq!(places(&profile, "other"), None);
        assert_eq!(profile.lengths(), [2, 0, 0, 1]);
    }

    #[test]
    fn stop_words_and_single_characters_say_nothing() {
        let vector = vector(&[(Weight::B, "the pool 连接")]);
        let profile = read(&vector);
        let telling = |term: &str| profile.find(hash(term)).map(|held| held.is_telling());
        assert_eq!(telling("the"), Some(false));
        assert_eq!(telling("连"), Some(false));
        assert_eq!(telling("连接"), Some(true));
        assert_eq!(telling("pool"), Some(true));
    }

    #[test]
    fn a_very_long_text_keeps_every_term() {
        let words: String = (0..9_000).map(|n| format!("w{n}x w{n}x ")).collect();
        let vector = vector(&[(Weight::B, &words)]);
        let profile = read(&vector);
        assert!(places(&profile, "w8999x").is_some_and(|places| !places.is_empty()));
        assert_eq!(places(&profile, "w0x").map(|places| places.len()), Some(2));
    }

    #[test]
    fn a_cut_profile_is_none() {
        let vector = vector(&[(Weight::A, "pool leak pool")]);
        for end in 0..vector.profile.len() {
            assert!(Profile::read(&vector.profile[..end]).is_none(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), formed in any::<bool>()) {
            let mut bytes = bytes;
            if formed && !bytes.is_empty() {
                bytes[0] = FORM;
            }
            if let Some((profile, _)) = Profile::read(&bytes) {
                for (hash, held) in profile.terms() {
                    prop_assert!(held.places().count() <= usize::from(u16::MAX) + 1);
                    profile.find(hash);
                }
            }
        }
    }
}
