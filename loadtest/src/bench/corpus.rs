//! A corpus that is the same on every machine: tenants, projects and texts whose sizes and words
//! are as uneven as real ones.

use cairn_wire::domain::observation::ObservationType;
use serde_json::{Value, json};

/// Words of the language.
const WORDS: usize = 30_000;
/// Tenants; the largest holds about an eighth of all rows.
pub const TENANTS: usize = 48;
/// Flattens the head of the tenants' sizes.
const TENANT_OFFSET: f64 = 2.5;
/// Flattens the head of the words' frequencies: the commonest stands in half of all texts.
const WORD_OFFSET: f64 = 15.0;
/// Words of a title, a narrative and a fact.
const TITLE: usize = 7;
const NARRATIVE: usize = 60;
const FACT: usize = 8;
/// One row in so many is a summary.
const SUMMARY_EVERY: usize = 20;

/// Numbers that look random and are the same for the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        // 53 bits are what a double holds exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An index below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count - 1)
    }
}

/// Indexes of which the first is drawn most often, by the law of Zipf and Mandelbrot.
#[derive(Clone, Debug)]
pub struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// `count` indexes with weights 1 / (index + offset).
    #[must_use]
    pub fn new(count: usize, offset: f64) -> Self {
        let mut sum = 0.0;
        let weights = (0..count).map(|index| 1.0 / (index as f64 + offset));
        let cumulative = weights.map(|weight| {
            sum += weight;
            sum
        });
        Self {
            cumulative: cumulative.collect(),
        }
    }

    /// Draws an index.
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let total = self.cumulative.last().copied().unwrap_or_default();
        let point = rng.unit() * total;
        self.cumulative
            .partition_point(|sum| *sum <= point)
            .min(self.cumulative.len() - 1)
    }
}

/// One row of the corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its tenant's index.
    pub tenant: usize,
    /// Its project's index in the tenant.
    pub project: usize,
    /// `observation` or `summary`.
    pub kind: &'static str,
    /// Its fields.
    pub body: Value,
}

/// The generator.
#[derive(Clone, Debug)]
pub struct Corpus {
    rng: Rng,
    tenants: Zipf,
    words: Zipf,
    made: usize,
}

impl Corpus {
    /// The corpus of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            tenants: Zipf::new(TENANTS, TENANT_OFFSET),
            words: Zipf::new(WORDS, WORD_OFFSET),
            made: 0,
        }
    }

    /// The next row.
    pub fn row(&mut self) -> Row {
        let tenant = self.tenants.draw(&mut self.rng);
        let project = self.project(tenant);
        self.made += 1;
        let is_summary = self.made.is_multiple_of(SUMMARY_EVERY);
        let (kind, body) = match is_summary {
            true => ("summary", self.summary()),
            false => ("observation", self.observation()),
        };
        Row {
            tenant,
            project,
            kind,
            body,
        }
    }

    /// The next observation's fields.
    pub fn observation(&mut self) -> Value {
        let kind = ObservationType::ALL[self.rng.below(ObservationType::ALL.len())].name();
        let facts = [self.text(FACT), self.text(FACT)];
        let files = [self.file(), self.file()];
        json!({
            "type": kind,
            "title": self.text(TITLE),
            "narrative": self.text(NARRATIVE),
            "facts": facts,
            "concepts": ["what-changed"],
            "files_modified": files,
            "work_tokens": 500 + self.rng.below(4_000),
        })
    }

    fn summary(&mut self) -> Value {
        json!({
            "request": self.text(TITLE),
            "investigated": self.text(NARRATIVE / 4),
            "learned": self.text(NARRATIVE / 4),
            "completed": self.text(NARRATIVE / 4),
            "next_steps": self.text(NARRATIVE / 4),
        })
    }

    /// A tenant, the larger the likelier.
    pub fn tenant(&mut self) -> usize {
        self.tenants.draw(&mut self.rng)
    }

    /// A project of a tenant, the larger the likelier.
    pub fn project(&mut self, tenant: usize) -> usize {
        Zipf::new(projects_of(tenant), 1.0).draw(&mut self.rng)
    }

    fn text(&mut self, words: usize) -> String {
        let words = (0..words).map(|_| word(self.words.draw(&mut self.rng)));
        words.collect::<Vec<_>>().join(" ")
    }

    fn file(&mut self) -> String {
        let folder = word(self.rng.below(60));
        format!("src/{folder}/{}.rs", word(self.rng.below(2_000)))
    }
}

/// How many projects a tenant has: the largest eight, small ones one.
#[must_use]
pub const fn projects_of(tenant: usize) -> usize {
    match tenant {
        0 => 8,
        1..=7 => 4,
        8..=23 => 2,
        _ => 1,
    }
}

/// The word of a rank: pronounceable, no word of any language's stop list, and ending so that
/// no stemmer shortens it.
#[must_use]
pub fn word(rank: usize) -> String {
    const CONSONANTS: &[u8] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8] = b"aeiou";
    let syllables = CONSONANTS.len() * VOWELS.len();
    let mut text = String::new();
    let mut rest = rank + syllables;
    while rest > 0 {
        let syllable = rest % syllables;
        text.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
        text.push(char::from(VOWELS[syllable % VOWELS.len()]));
        rest /= syllables;
    }
    text.push('k');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_corpus() {
        let (mut one, mut two, mut other) = (Corpus::new(7), Corpus::new(7), Corpus::new(8));
        let rows: Vec<Row> = (0..50).map(|_| one.row()).collect();
        assert!(rows.iter().all(|row| *row == two.row()));
        assert!(rows.iter().any(|row| *row != other.row()));
        let mut rng = Rng::new(0);
        assert_eq!(
            [rng.next(), rng.next()],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
    }

    #[test]
    fn every_rank_has_a_word_of_its_own() {
        let words: HashSet<String> = (0..WORDS).map(word).collect();
        assert_eq!(words.len(), WORDS);
    }

    #[test]
    fn the_largest_tenant_holds_about_an_eighth() {
        let mut corpus = Corpus::new(1);
        let largest = (0..10_000).filter(|_| corpus.tenant() == 0).count();
        assert!((900..1_500).contains(&largest), "{largest}");
    }

    #[test]
    fn rows_are_what_the_service_takes() {
        let mut corpus = Corpus::new(3);
        for _ in 0..SUMMARY_EVERY {
            let row = corpus.row();
            let refuse = cairn_wire::domain::bounds::Oversize::Refuse;
            let taken = if row.kind == "summary" {
                let fields: cairn_wire::observations::SummaryFields =
                    serde_json::from_value(row.body).expect("fields");
                fields.parse(refuse).map(drop)
            } else {
                let fields: cairn_wire::observations::ObservationFields =
                    serde_json::from_value(row.body).expect("fields");
                fields.parse(refuse).map(drop)
            };
            assert!(taken.is_ok(), "{taken:?}");
        }
    }
}
