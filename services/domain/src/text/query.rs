//! What a query asks for: the conditions put to Postgres, and the terms that records are scored
//! by. Any text is a query; none is an error, and nothing in it is an operator.

use super::asked::{AskedTerm, asked_terms};
use super::chunk::{Chunk, Name, Segment};
use super::scan::{Piece, pieces};
use super::stop::is_stop;
use super::vector::{quote, terms_of};
use super::word::{Word, says_little, term};
use crate::limits;

/// Words of a query that must all match; later ones still help to find something at all.
const MUST_MATCH: usize = 8;
/// Words of a query of which two must match when no record matches all.
const PAIRED: usize = 5;

/// The terms of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchTerms {
    units: Vec<Unit>,
    asked: Vec<AskedTerm>,
}

/// What one word, name or run of the query asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    /// What a record must hold to match it.
    must: Form,
    /// Terms each of which is a reason to look at a record when no record matches all.
    hints: Vec<String>,
    /// Whether it is a stop word.
    stop: bool,
}

/// A condition on a record's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Term(String),
    All(Vec<Form>),
    Any(Vec<Form>),
}

/// The terms of a query, at most [`limits::QUERY_TERMS`] in all. Stop words count only if the
/// query holds nothing else.
#[must_use]
pub fn terms(query: &str) -> SearchTerms {
    let (mut units, mut texts) = (Vec::new(), Vec::new());
    for piece in pieces(query) {
        let found = match &piece {
            Piece::Run(run) => run_unit(run).into_iter().collect(),
            Piece::Chunk(chunk) => chunk_units(chunk),
        };
        let stop = !found.is_empty() && found.iter().all(|unit| unit.stop);
        texts.push((piece, stop));
        units.extend(found);
    }
    let says_something = units.iter().any(|unit| !unit.stop);
    if says_something {
        units.retain(|unit| !unit.stop);
        texts.retain(|(_, stop)| !stop);
    }
    let units = bounded(units);
    let leads = |term: &str| {
        units
            .iter()
            .any(|unit| unit.hints.iter().any(|h| h == term))
    };
    let texts = texts.into_iter().map(|(piece, _)| piece);
    let asked = asked_terms(texts, leads);
    SearchTerms { units, asked }
}

impl SearchTerms {
    /// Whether the query asks for nothing that could be found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Text that casts to a `tsquery` matched by records that hold every word of the query.
    /// Empty if [`Self::is_empty`].
    #[must_use]
    pub fn all(&self) -> String {
        let first = self.units.iter().take(MUST_MATCH);
        Form::all(first.map(|unit| unit.must.clone()).collect()).render()
    }

    /// Text that casts to a `tsquery` matched by records that hold two words of the query; of
    /// a query of one word the same as [`Self::all`].
    #[must_use]
    pub fn pairs(&self) -> String {
        let words: Vec<&Form> = self
            .units
            .iter()
            .take(PAIRED)
            .map(|unit| &unit.must)
            .collect();
        let pairs = words.iter().enumerate().flat_map(|(at, one)| {
            let others = words[at + 1..].iter();
            others.map(|other| Form::All(vec![(*one).clone(), (*other).clone()]))
        });
        match words.as_slice() {
            [_, _, ..] => Form::any(pairs.collect()).render(),
            _ => self.all(),
        }
    }

    /// The terms that records are scored by, in the order of their bytes, without repeats.
    #[must_use]
    pub fn asked(&self) -> &[AskedTerm] {
        &self.asked
    }

    /// Text that casts to a `tsquery` matched by records that hold any word of the query.
    /// Empty if [`Self::is_empty`].
    #[must_use]
    pub fn any(&self) -> String {
        let hints = self.units.iter().flat_map(|unit| &unit.hints);
        Form::any(hints.cloned().map(Form::Term).collect()).render()
    }
}

/// How much of a query some texts hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// No word.
    Nothing,
    /// Some word.
    Any,
    /// Every word.
    All,
}

impl SearchTerms {
    /// How much of the query texts hold together, by the same conditions as those put to Postgres.
    #[must_use]
    pub fn held_by<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Held {
        let held = terms_of(texts);
        let is_held = |term: &String| held.contains(term.as_str());
        let mut must = self.units.iter().take(MUST_MATCH);
        if !self.is_empty() && must.all(|unit| unit.must.holds(&is_held)) {
            return Held::All;
        }
        let mut hints = self.units.iter().flat_map(|unit| &unit.hints);
        match hints.any(is_held) {
            true => Held::Any,
            false => Held::Nothing,
        }
    }
}

/// A run asks for all of its pairs: that is how a contiguous piece of a text is found.
fn run_unit(run: &[char]) -> Option<Unit> {
    let text: String = run.iter().collect();
    let pairs: Vec<String> = match run {
        [_] => vec![text.clone()],
        _ => run.windows(2).map(|pair| pair.iter().collect()).collect(),
    };
    let pairs = distinct(pairs.into_iter().take(limits::QUERY_TERMS));
    Unit::of(
        Form::all(pairs.iter().cloned().map(Form::Term).collect()),
        pairs,
        is_stop(&text),
    )
}

fn chunk_units(text: &str) -> Vec<Unit> {
    let chunk = Chunk::of(text);
    if let Some(flag) = &chunk.flag {
        // A flag is asked for as written: its words are everywhere.
        let exact = term(flag).map(Form::Term);
        return exact
            .and_then(|form| Unit::of(form, vec![flag.clone()], false))
            .into_iter()
            .collect();
    }
    chunk.names.iter().filter_map(name_unit).collect()
}

fn name_unit(name: &Name) -> Option<Unit> {
    match name {
        Name::Exact(exact) => Unit::of(Form::Term(exact.clone()), vec![exact.clone()], false),
        Name::Path(segments) => path_unit(name, segments),
    }
}

fn path_unit(name: &Name, segments: &[Segment]) -> Option<Unit> {
    let all = Form::all(segments.iter().filter_map(segment_form).collect());
    let whole = (segments.len() > 1).then(|| term(&name.whole())).flatten();
    let must = match whole {
        Some(whole) => Form::any(vec![Form::Term(whole), all]),
        None => all,
    };
    let hints = name
        .tails()
        .into_iter()
        .rev()
        .chain(segments.iter().flat_map(segment_hints));
    let lone = segments.len() == 1;
    let hints = hints.filter(|hint| lone || !says_little(hint));
    let hints = distinct(hints.filter_map(|hint| term(&hint)));
    Unit::of(must, hints, is_stop_name(segments))
}

fn segment_form(segment: &Segment) -> Option<Form> {
    let whole = term(&segment.whole())?;
    if segment.dotted || segment.is_numeric() {
        return Some(Form::Term(whole));
    }
    let words: Vec<Form> = segment.words.iter().filter_map(word_form).collect();
    if segment.words.len() == 1 {
        return words.into_iter().next();
    }
    Some(Form::any(vec![Form::Term(whole), Form::all(words)]))
}

/// A compound is found joined, or by its parts: `retry_count` finds `retryCount` and the other
/// way round.
fn word_form(word: &Word) -> Option<Form> {
    let whole = term(&word.whole).map(Form::Term)?;
    if !word.is_compound() {
        return Some(whole);
    }
    let parts = word
        .parts
        .iter()
        .filter_map(|part| term(part))
        .map(Form::Term);
    Some(Form::any(vec![whole, Form::all(parts.collect())]))
}

/// Compounds first; parts that say little by themselves are no reason to look at a record.
fn segment_hints(segment: &Segment) -> Vec<String> {
    let mut hints = segment.compounds();
    if segment.is_numeric() {
        return hints.into_iter().take(1).collect();
    }
    for word in &segment.words {
        hints.push(word.whole.clone());
        hints.extend(word.parts.iter().filter(|part| !says_little(part)).cloned());
    }
    let lone = segment.words.len() == 1 && !segment.words[0].is_compound();
    hints.retain(|hint| lone || !says_little(hint));
    hints
}

fn is_stop_name(segments: &[Segment]) -> bool {
    let [
        Segment {
            dotted: false,
            words,
        },
    ] = segments
    else {
        return false;
    };
    // `don't` is joined to `dont` as a term; the list has it as people write it.
    matches!(words.as_slice(), [word] if is_stop(&word.parts.join("'")) || is_stop(&word.whole))
}

/// The units without repeats, as far as the bound on terms allows; the first always stays.
fn bounded(units: Vec<Unit>) -> Vec<Unit> {
    let mut kept: Vec<Unit> = Vec::new();
    let mut room = limits::QUERY_TERMS;
    for mut unit in units {
        if room == 0 || kept.contains(&unit) {
            continue;
        }
        unit.hints.truncate(room);
        room -= unit.hints.len();
        kept.push(unit);
    }
    kept
}

fn distinct(terms: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    for term in terms {
        if !kept.contains(&term) {
            kept.push(term);
        }
    }
    kept
}

impl Unit {
    /// `None` if there is nothing to ask for.
    fn of(must: Form, hints: Vec<String>, stop: bool) -> Option<Self> {
        (!hints.is_empty() && !must.is_empty()).then_some(Self { must, hints, stop })
    }
}

impl Form {
    fn all(forms: Vec<Self>) -> Self {
        single(forms).unwrap_or_else(Self::All)
    }

    fn any(forms: Vec<Self>) -> Self {
        single(forms).unwrap_or_else(Self::Any)
    }

    fn holds(&self, is_held: &impl Fn(&String) -> bool) -> bool {
        match self {
            Self::Term(term) => is_held(term),
            Self::All(forms) => forms.iter().all(|form| form.holds(is_held)),
            Self::Any(forms) => forms.iter().any(|form| form.holds(is_held)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Term(_) => false,
            Self::All(forms) | Self::Any(forms) => forms.iter().all(Self::is_empty),
        }
    }

    fn render(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Term(term) => quote(term, &mut out),
            Self::All(forms) => join(forms, " & ", &mut out),
            Self::Any(forms) => join(forms, " | ", &mut out),
        }
        out
    }
}

/// The only form of a list, so that no sign of an inner form is taken for one of an outer form.
fn single(mut forms: Vec<Form>) -> Result<Form, Vec<Form>> {
    match forms.pop() {
        Some(form) if forms.is_empty() => Ok(form),
        last => {
            forms.extend(last);
            Err(forms)
        }
    }
}

fn join(forms: &[Form], sign: &str, out: &mut String) {
    let many = forms.len() > 1;
    let parts: Vec<String> = forms
        .iter()
        .map(|form| match form {
            Form::All(_) | Form::Any(_) if many => format!("({})", form.render()),
            _ => form.render(),
        })
        .collect();
    out.push_str(&parts.join(sign));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::run(
        "连接池 错误",
        "('连接' & '接池') & '错误'",
        "'连接' | '接池' | '错误'"
    )]
    #[case::lone_character("池", "'池'", "'池'")]
    #[case::flag("--no-verify", "'--no-verify'", "'--no-verify'")]
    #[case::language("C++", "'c++'", "'c++'")]
    #[case::version("3.14.2", "'3.14.2'", "'3.14.2'")]
    #[case::stem("workers", "'worker'", "'worker'")]
    #[case::compound(
        "retry_count",
        "'retrycount' | ('retri' & 'count')",
        "'retrycount' | 'retri' | 'count'"
    )]
    #[case::compound_beside_a_word(
        "backoff retry_count",
        "'backoff' & ('retrycount' | ('retri' & 'count'))",
        "'backoff' | 'retrycount' | 'retri' | 'count'"
    )]
    #[case::path(
        "a/b/jwt.rs",
        "'a/b/jwt.rs' | ('a' & 'b' & ('jwt.rs' | ('jwt' & 'rs')))",
        "'a/b/jwt.rs' | 'b/jwt.rs' | 'jwt.rs' | 'jwt' | 'rs'"
    )]
    #[case::stop_words(
        "don't restart the workers",
        "'restart' & 'worker'",
        "'restart' | 'worker'"
    )]
    #[case::nothing_but_stop_words("the", "'the'", "'the'")]
    #[case::chinese_stop_word("连接 的", "'连接'", "'连接'")]
    #[case::signs("'\":* & | ! % \\", "", "")]
    fn a_query_becomes_two_questions(#[case] query: &str, #[case] all: &str, #[case] any: &str) {
        let terms = terms(query);
        assert_eq!((terms.all().as_str(), terms.any().as_str()), (all, any));
        assert_eq!(terms.is_empty(), all.is_empty());
    }

    #[test]
    fn eight_words_must_match_and_32_terms_may() {
        let query: String = (0..50)
            .map(|n| format!("word{}x ", char::from(b'a' + n % 26)))
            .collect();
        let terms = terms(&query);
        assert_eq!(terms.all().matches(" & ").count(), 7);
        assert_eq!(terms.any().matches(" | ").count(), 25);
        let long: String = ('\u{4e00}'..='\u{4f00}').collect();
        assert_eq!(super::terms(&long).any().matches(" | ").count(), 31);
    }

    proptest! {
        /// Outside quotes only the signs this module writes may stand.
        #[test]
        fn no_query_escapes_its_quotes(query in "[a-z'\\\\ .:&|!()#+-]{0,40}|\\PC{0,40}") {
            let terms = terms(&query);
            for text in [terms.all(), terms.any()] {
                let mut quoted = false;
                for c in text.replace("''", "").replace("\\\\", "").chars() {
                    if c == '\'' { quoted = !quoted; continue; }
                    prop_assert!(quoted || " &|()".contains(c), "{text}");
                }
                prop_assert!(!quoted);
            }
        }
    }
}
