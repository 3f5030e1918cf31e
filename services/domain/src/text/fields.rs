//! Which texts of a record are searched, and as which field each counts.

use super::Weight;
use crate::observation::{Concept, ObservationDraft};
use crate::record::{ObservationBody, Record, RecordBody};
use crate::summary::SummaryDraft;

/// The texts of an observation about to be stored.
#[must_use]
pub fn observation_texts(own: &ObservationDraft) -> Vec<(Weight, &str)> {
    let mut texts = vec![
        (Weight::A, own.title.as_str()),
        (Weight::B, &own.subtitle),
        (Weight::B, &own.narrative),
    ];
    texts.extend(own.facts.iter().map(|fact| (Weight::C, fact.as_str())));
    texts.extend(marks(&own.files_read, &own.files_modified, &own.concepts));
    texts
}

/// The texts of a summary.
#[must_use]
pub fn summary_texts(own: &SummaryDraft) -> Vec<(Weight, &str)> {
    vec![
        (Weight::A, own.request.as_str()),
        (Weight::B, &own.investigated),
        (Weight::B, &own.learned),
        (Weight::B, &own.completed),
        (Weight::B, &own.next_steps),
        (Weight::B, &own.notes),
    ]
}

/// The texts of a record as it was read back.
#[must_use]
pub fn record_texts(record: &Record) -> Vec<(Weight, &str)> {
    let mut texts = match &record.body {
        RecordBody::Observation(body) => stored_texts(&record.row.title, body),
        RecordBody::Summary(own) => summary_texts(own),
        RecordBody::Prompt { text, .. } => vec![(Weight::B, text.as_str())],
    };
    let imported = record.imported.as_ref();
    texts.extend(imported_text(imported.and_then(|from| from.id.as_deref())));
    texts
}

/// The id that an imported record had where it came from: it is found by that.
#[must_use]
pub fn imported_text(id: Option<&str>) -> Option<(Weight, &str)> {
    id.map(|id| (Weight::D, id))
}

fn stored_texts<'a>(title: &'a str, body: &'a ObservationBody) -> Vec<(Weight, &'a str)> {
    let mut texts = vec![
        (Weight::A, title),
        (Weight::B, &body.subtitle),
        (Weight::B, &body.narrative),
    ];
    texts.extend(body.facts.iter().map(|fact| (Weight::C, fact.as_str())));
    texts.extend(marks(
        &body.files_read,
        &body.files_modified,
        &body.concepts,
    ));
    texts
}

/// Files, then concepts.
fn marks<'a>(
    read: &'a [String],
    modified: &'a [String],
    concepts: &'a [Concept],
) -> impl Iterator<Item = (Weight, &'a str)> {
    let files = read.iter().chain(modified).map(String::as_str);
    let concepts = concepts.iter().map(|concept| concept.name());
    files.chain(concepts).map(|text| (Weight::D, text))
}
