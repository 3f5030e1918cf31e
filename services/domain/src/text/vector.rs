//! A record's terms with their positions, as text that Postgres casts to `tsvector`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::Weight;
use super::chunk::{Chunk, Name, Segment};
use super::profile;
use super::scan::{Piece, pieces};
use super::word::{Word, term};

/// Between two fields: words of different fields are never neighbours.
const FIELD_GAP: usize = 100;
/// Between two texts of one field, such as two facts: wider than any neighbourhood that counts.
const ITEM_GAP: usize = 4;
/// The last position a `tsvector` knows; later ones count as this one.
const LAST_POSITION: usize = 16_383;
/// Positions of one term; a `tsvector` keeps no more.
const POSITIONS: usize = 255;
/// Bytes of lexemes and positions. A `tsvector` holds 1 MiB less one byte; the rest is margin.
const VECTOR_BYTES: usize = 1_000_000;

/// What a record's row keeps for search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    /// Casts to `tsvector` without any text search configuration: `'pool':1A,104B 'leak':2A`.
    pub literal: String,
    /// Words of each field, in the order of [`Weight`].
    pub lengths: [i32; 4],
    /// The same terms as ranking reads them: a [`super::Profile`].
    pub profile: Vec<u8>,
    /// Terms left out so that the vector stays within Postgres' limits; worth a note in the log.
    pub dropped: usize,
}

/// The vector of a record's texts; several texts may share a field.
#[must_use]
pub fn vector(texts: &[(Weight, &str)]) -> Vector {
    let mut builder = Builder::default();
    for (weight, text) in texts {
        builder.text(*weight, text);
    }
    builder.finish()
}

/// The terms of some texts, without their places.
pub(super) fn terms_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> HashSet<String> {
    let mut builder = Builder::default();
    for text in texts {
        builder.text(Weight::B, text);
    }
    builder.by_term.into_keys().collect()
}

/// A term and where it stands.
pub(super) struct Entry {
    pub term: String,
    /// The field it was first seen in.
    field: Weight,
    pub places: Vec<(usize, Weight)>,
}

#[derive(Default)]
pub(super) struct Builder {
    pub entries: Vec<Entry>,
    by_term: HashMap<String, usize>,
    lengths: [usize; 4],
    /// The field of the text before, and the position of the next word.
    field: Option<Weight>,
    next: usize,
}

impl Builder {
    fn text(&mut self, weight: Weight, text: &str) {
        match self.field {
            None => self.next = 1,
            Some(before) if before == weight => self.next += ITEM_GAP,
            Some(_) => self.next += FIELD_GAP,
        }
        self.field = Some(weight);
        let from = self.next;
        for piece in pieces(text) {
            self.piece(weight, &piece);
        }
        self.lengths[weight.index()] += self.next - from;
    }

    /// The terms of one piece, each at its place.
    pub(super) fn piece(&mut self, weight: Weight, piece: &Piece) {
        match piece {
            Piece::Run(run) => self.run(weight, run),
            Piece::Chunk(chunk) => self.chunk(weight, &Chunk::of(chunk)),
        }
    }

    /// Every character, and every pair at the place of its first character.
    fn run(&mut self, weight: Weight, run: &[char]) {
        for (offset, c) in run.iter().enumerate() {
            self.put(weight, self.next + offset, &c.to_string());
            if let Some(second) = run.get(offset + 1) {
                self.put(weight, self.next + offset, &format!("{c}{second}"));
            }
        }
        self.next += run.len();
    }

    /// Compounds stand at the place of their first word.
    fn chunk(&mut self, weight: Weight, chunk: &Chunk) {
        let from = self.next;
        for compound in chunk.flag.iter().chain(chunk.whole().iter()) {
            self.put(weight, from, compound);
        }
        for name in &chunk.names {
            self.name(weight, name);
        }
    }

    fn name(&mut self, weight: Weight, name: &Name) {
        let from = self.next;
        match name {
            Name::Exact(exact) => {
                self.put(weight, from, exact);
                self.next += 1;
            }
            Name::Path(segments) => {
                segments
                    .iter()
                    .for_each(|segment| self.segment(weight, segment));
                for tail in name.tails() {
                    self.put(weight, from, &tail);
                }
            }
        }
    }

    fn segment(&mut self, weight: Weight, segment: &Segment) {
        for compound in segment.compounds() {
            self.put(weight, self.next, &compound);
        }
        segment
            .words
            .iter()
            .for_each(|word| self.word(weight, word));
    }

    fn word(&mut self, weight: Weight, word: &Word) {
        if word.is_compound() {
            self.put(weight, self.next, &word.whole);
        }
        for part in &word.parts {
            self.put(weight, self.next, part);
            self.next += 1;
        }
    }

    fn put(&mut self, weight: Weight, position: usize, text: &str) {
        let Some(term) = term(text) else { return };
        let position = position.min(LAST_POSITION);
        let at = *self.by_term.entry(term).or_insert_with_key(|term| {
            self.entries.push(Entry {
                term: term.clone(),
                field: weight,
                places: Vec::new(),
            });
            self.entries.len() - 1
        });
        let places = &mut self.entries[at].places;
        if places.len() < POSITIONS && places.last().is_none_or(|(last, _)| *last != position) {
            places.push((position, weight));
        }
    }

    fn finish(mut self) -> Vector {
        let before = self.entries.len();
        self.shrink();
        let mut literal = String::new();
        for entry in &self.entries {
            entry.render(&mut literal);
        }
        let lengths = self.lengths;
        let lengths = lengths.map(|length| i32::try_from(length).unwrap_or(i32::MAX));
        Vector {
            literal,
            lengths,
            profile: profile::of_entries(&self.entries, lengths),
            dropped: before - self.entries.len(),
        }
    }

    /// Drops the latest new terms of the longest field, then of the next longest, until all fits.
    fn shrink(&mut self) {
        let mut bytes: usize = self.entries.iter().map(Entry::bytes).sum();
        let mut fields = [Weight::A, Weight::B, Weight::C, Weight::D];
        fields.sort_by_key(|field| std::cmp::Reverse(self.lengths[field.index()]));
        for field in fields {
            let mut at = self.entries.len();
            while bytes > VECTOR_BYTES && at > 0 {
                at -= 1;
                if self.entries[at].field == field {
                    bytes -= self.entries[at].bytes();
                    self.entries[at].term.clear();
                }
            }
            self.entries.retain(|entry| !entry.term.is_empty());
        }
    }
}

impl Entry {
    /// Its share of a `tsvector`: the lexeme, padding, the count and the positions.
    fn bytes(&self) -> usize {
        self.term.len() + 1 + 2 + 2 * self.places.len()
    }

    fn render(&self, out: &mut String) {
        if !out.is_empty() {
            out.push(' ');
        }
        quote(&self.term, out);
        for (at, (position, weight)) in self.places.iter().enumerate() {
            let sign = if at == 0 { ':' } else { ',' };
            write!(out, "{sign}{position}{}", weight.letter()).expect("a String takes all");
        }
    }
}

/// Writes a lexeme so that no character of it can end it.
pub(super) fn quote(term: &str, out: &mut String) {
    out.push('\'');
    for c in term.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(texts: &[(Weight, &str)]) -> String {
        vector(texts).literal
    }

    #[test]
    fn a_run_gives_every_character_and_every_pair() {
        assert_eq!(
            literal(&[(Weight::A, "连接池")]),
            "'连':1A '连接':1A '接':2A '接池':2A '池':3A"
        );
    }

    #[test]
    fn a_repeat_adds_a_position_and_a_field_a_gap() {
        let vector = vector(&[
            (Weight::A, "Pool leak"),
            (Weight::B, "the pool"),
            (Weight::C, "one"),
            (Weight::C, "two"),
        ]);
        assert_eq!(
            vector.literal,
            "'pool':1A,104B 'leak':2A 'the':103B 'one':205C 'two':210C"
        );
        assert_eq!((vector.lengths, vector.dropped), ([2, 2, 2, 0], 0));
    }

    #[test]
    fn compounds_stand_where_their_first_word_stands() {
        assert_eq!(
            literal(&[(Weight::D, "src/net/retry_count.ts")]),
            "'src':1D 'net':2D 'retrycount.ts':3D 'retrycount':3D 'retri':3D 'count':4D \
             'ts':5D 'net/retrycount.ts':1D 'src/net/retrycount.ts':1D"
        );
    }

    #[test]
    fn a_vector_of_nothing_is_empty() {
        let vector = vector(&[(Weight::A, " *&| "), (Weight::B, "")]);
        assert_eq!((vector.literal.as_str(), vector.lengths), ("", [0; 4]));
    }

    #[test]
    fn quotes_and_backslashes_stay_inside_their_lexeme() {
        let mut out = String::new();
        quote("a'b\\c", &mut out);
        assert_eq!(out, r"'a''b\\c'");
    }

    #[test]
    fn positions_stop_at_255_a_term_and_at_the_last_a_vector_knows() {
        let many = literal(&[(Weight::B, &"pool ".repeat(20_000))]);
        assert_eq!(many.split(',').count(), POSITIONS);
        let mut late = "word ".repeat(17_000);
        late.push_str("needle");
        assert!(literal(&[(Weight::B, &late)]).ends_with("'needl':16383B"));
    }

    #[test]
    fn the_latest_terms_of_the_longest_field_give_way_and_first_words_stay() {
        let words: String = (0..60_000).map(|n| format!("w{n:05}x ")).collect();
        let vector = vector(&[
            (Weight::A, "pool leak"),
            (Weight::B, &words),
            (Weight::C, "kept"),
        ]);
        assert!(vector.dropped > 0);
        assert!(vector.literal.starts_with("'pool':1A 'leak':2A 'w00000x':"));
        assert!(vector.literal.ends_with("'kept':16383C"));
        assert!(!vector.literal.contains("w59999x"));
    }
}
