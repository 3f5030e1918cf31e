//! A million records in two thousand tenants, the same on every machine: sizes of tenants and
//! projects, and words, as uneven as real ones; each project also has words of its own.

use cairn_wire::domain::observation::ObservationType;
use cairn_wire::domain::text::{Vector, Weight, vector};

use crate::bench::corpus::{Rng, Zipf, word};

/// Records of a part, which is made from its number alone.
pub const PART: usize = 2_000;
/// Words of the language, and how flat the head of their frequencies is: the commonest stands in
/// half of all records.
const WORDS: usize = 80_000;
const WORD_OFFSET: f64 = 11.0;
/// Words of a project's own, and which share of its texts they make.
const TOPIC: usize = 300;
const TOPIC_OFFSET: f64 = 5.0;
const TOPIC_SHARE: f64 = 0.25;
/// No topic is about the commonest words.
const TOPIC_FIRST: usize = 200;
/// Shares of stop words in titles, facts and prose.
const STOPS_IN_TITLE: f64 = 0.15;
const STOPS_IN_FACT: f64 = 0.25;
const STOPS_IN_PROSE: f64 = 0.33;
const STOPS: [&str; 30] = [
    "the", "of", "and", "to", "in", "is", "was", "that", "for", "on", "with", "as", "by", "at",
    "from", "it", "this", "be", "are", "an", "which", "not", "or", "when", "after", "before",
    "into", "has", "were", "a",
];

/// The generator. It holds no state: every part can be made at any time, on any thread.
pub struct Corpus {
    seed: u64,
    tenants: Zipf,
    projects: Vec<Zipf>,
    words: Zipf,
    topic: Zipf,
}

/// One record.
pub struct Row {
    /// Its tenant's index.
    pub tenant: usize,
    /// Its project's index in the tenant.
    pub project: usize,
    /// Its type's code.
    pub kind: i16,
    /// What producing it cost.
    pub work_tokens: usize,
    /// Its texts.
    pub title: String,
    pub narrative: String,
    pub facts: Vec<String>,
    pub files: Vec<String>,
    /// Its terms, as the service's own analyser finds them.
    pub vector: Vector,
}

/// In how many records each word stands.
pub struct Frequencies(Vec<u32>);

/// How often a word occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// In 5 to 20 of 100,000 records.
    Rare,
    /// In 5 to 15 of 1,000.
    Mid,
    /// In 18 of 100 or more.
    Common,
}

impl Corpus {
    /// The corpus of a seed in so many tenants, of which the largest holds an eighth or more.
    pub fn new(seed: u64, tenants: usize) -> Self {
        Self {
            seed,
            tenants: Zipf::new(tenants, 1.0),
            projects: (0..tenants)
                .map(|tenant| Zipf::new(projects_of(tenant), 1.0))
                .collect(),
            words: Zipf::new(WORDS, WORD_OFFSET),
            topic: Zipf::new(TOPIC, TOPIC_OFFSET),
        }
    }

    /// How many tenants there are.
    pub fn tenants(&self) -> usize {
        self.projects.len()
    }

    /// The records of a part, in the order of time, counted into `frequencies`.
    pub fn part(&self, part: usize, frequencies: &mut Frequencies) -> Vec<Row> {
        let mut rng = Rng::new(self.seed ^ (part as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut ranks = Vec::new();
        (0..PART)
            .map(|_| {
                ranks.clear();
                let row = self.row(&mut rng, &mut ranks);
                frequencies.count(&mut ranks);
                row
            })
            .collect()
    }

    fn row(&self, rng: &mut Rng, ranks: &mut Vec<usize>) -> Row {
        let tenant = self.tenants.draw(rng);
        let project = self.projects[tenant].draw(rng);
        let mut writer = Writer {
            corpus: self,
            rng,
            topic_seed: ((tenant as u64) << 20) | project as u64,
            ranks,
        };
        let title = 6 + writer.rng.below(7);
        let title = writer.text(title, STOPS_IN_TITLE);
        let prose = 30 + writer.rng.below(40) + writer.rng.below(40);
        let narrative = writer.text(prose, STOPS_IN_PROSE);
        let facts = 3 + writer.rng.below(4);
        let facts: Vec<String> = (0..facts).map(|_| writer.fact()).collect();
        let files = writer.rng.below(4);
        let files: Vec<String> = (0..files).map(|_| writer.file()).collect();
        let mut texts = vec![(Weight::A, title.as_str()), (Weight::B, &narrative)];
        texts.extend(facts.iter().map(|fact| (Weight::C, fact.as_str())));
        texts.extend(files.iter().map(|file| (Weight::D, file.as_str())));
        let vector = vector(&texts);
        Row {
            tenant,
            project,
            kind: ObservationType::ALL[rng.below(ObservationType::ALL.len())].code(),
            work_tokens: 500 + rng.below(4_000),
            title,
            narrative,
            facts,
            files,
            vector,
        }
    }
}

struct Writer<'a> {
    corpus: &'a Corpus,
    rng: &'a mut Rng,
    topic_seed: u64,
    ranks: &'a mut Vec<usize>,
}

impl Writer<'_> {
    fn text(&mut self, words: usize, stops: f64) -> String {
        let mut text = String::with_capacity(words * 6);
        for _ in 0..words {
            if !text.is_empty() {
                text.push(' ');
            }
            if self.rng.unit() < stops {
                text.push_str(STOPS[self.rng.below(STOPS.len())]);
            } else if self.rng.unit() < TOPIC_SHARE {
                text.push_str(&self.topic_word());
            } else {
                let rank = self.corpus.words.draw(self.rng);
                self.ranks.push(rank);
                text.push_str(&word(rank));
            }
        }
        text
    }

    fn fact(&mut self) -> String {
        let words = 6 + self.rng.below(9);
        self.text(words, STOPS_IN_FACT)
    }

    fn file(&mut self) -> String {
        let (folder, name) = (self.topic_word(), self.topic_word());
        format!("src/{folder}/{name}.rs")
    }

    /// A word of the project's own: which words these are follows from its place.
    fn topic_word(&mut self) -> String {
        let nth = self.corpus.topic.draw(self.rng) as u64;
        let mut of_project = Rng::new(self.topic_seed.wrapping_mul(1_000).wrapping_add(nth));
        let rank = TOPIC_FIRST + of_project.below(WORDS - TOPIC_FIRST);
        self.ranks.push(rank);
        word(rank)
    }
}

/// How many projects a tenant has: the largest sixty, small ones one.
pub fn projects_of(tenant: usize) -> usize {
    (400 / (tenant + 6)).clamp(1, 60)
}

impl Frequencies {
    /// Of no record.
    pub fn new() -> Self {
        Self(vec![0; WORDS])
    }

    /// Counts the words of one record; leaves them ascending, each once.
    fn count(&mut self, ranks: &mut Vec<usize>) {
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks {
            self.0[*rank] += 1;
        }
    }

    /// Adds those of other records.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }

    /// Up to `count` words of a class among `rows` records, evenly from its rarest to its
    /// commonest.
    pub fn words(&self, class: Class, rows: usize, count: usize) -> Vec<String> {
        let (least, most) = match class {
            Class::Rare => (0.000_05, 0.000_2),
            Class::Mid => (0.005, 0.015),
            Class::Common => (0.18, 1.0),
        };
        // Among few records the rarest words stand in one.
        let count_of = |share: f64| ((share * rows as f64).round() as u32).max(1);
        let counts = count_of(least)..=count_of(most);
        let mut ranks: Vec<usize> = (0..WORDS)
            .filter(|rank| counts.contains(&self.0[*rank]))
            .collect();
        ranks.sort_by_key(|rank| (self.0[*rank], *rank));
        let taken = count.min(ranks.len());
        let evenly = (0..taken).map(|nth| word(ranks[nth * ranks.len() / taken]));
        evenly.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_part() -> (Vec<Row>, Frequencies) {
        let mut frequencies = Frequencies::new();
        let rows = Corpus::new(7, 2_000).part(0, &mut frequencies);
        (rows, frequencies)
    }

    #[test]
    fn a_part_is_the_same_whenever_it_is_made() {
        let texts = |rows: &[Row]| -> Vec<String> {
            rows.iter().map(|row| row.vector.literal.clone()).collect()
        };
        let corpus = Corpus::new(7, 2_000);
        let second = corpus.part(1, &mut Frequencies::new());
        let (first, _) = first_part();
        assert_eq!(
            texts(&first),
            texts(&corpus.part(0, &mut Frequencies::new()))
        );
        assert_ne!(texts(&first), texts(&second));
    }

    #[test]
    fn the_largest_tenant_holds_about_an_eighth_and_projects_stay_within_theirs() {
        let (rows, _) = first_part();
        let largest = rows.iter().filter(|row| row.tenant == 0).count();
        assert!((200..290).contains(&largest), "{largest} of {}", rows.len());
        assert!(rows.iter().all(|row| row.project < projects_of(row.tenant)));
    }

    #[test]
    fn classes_are_found_by_how_often_their_words_occur() {
        let (rows, frequencies) = first_part();
        for (class, least, most) in [
            (Class::Rare, 0.000_5, 0.000_5),
            (Class::Mid, 0.005, 0.015),
            (Class::Common, 0.18, 1.0),
        ] {
            let words = frequencies.words(class, rows.len(), 8);
            assert!(!words.is_empty(), "{class:?}");
            for word in words {
                let holds = |row: &&Row| row.vector.literal.contains(&format!("'{word}'"));
                let share = rows.iter().filter(holds).count() as f64 / rows.len() as f64;
                assert!((least..=most).contains(&share), "{class:?} {word} {share}");
            }
        }
    }
}
