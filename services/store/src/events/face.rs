//! What a list and a search see of a record. Analysing its words takes longer than storing them,
//! so it is done before anything is locked.

use cairn_domain::bounds::head_bytes;
use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::limits;
use cairn_domain::observation::{Concept, ObservationDraft};
use cairn_domain::text::{Vector, Weight, imported_text, observation_texts, summary_texts, vector};

/// What a list and a search see of a record.
#[derive(Debug)]
pub(super) struct Face {
    pub title: String,
    pub obs_type: Option<i16>,
    pub concepts: String,
    pub read_tokens: u32,
    pub work_tokens: u32,
    pub words: Vector,
}

impl Face {
    /// The face of the record that an event leaves, if it leaves one. One that is imported is
    /// found by the id that it had, too.
    pub fn of<'a>(draft: &'a EventDraft, imported_id: Option<&'a str>) -> Option<Self> {
        let with_id = |mut texts: Vec<(Weight, &'a str)>| {
            texts.extend(imported_text(imported_id));
            words(&texts)
        };
        match &draft.body {
            EventBody::Observation(own) => {
                Some(observation_face(own, with_id(observation_texts(own))))
            }
            EventBody::Summary(own) => Some(Face {
                title: own.request.clone(),
                words: with_id(summary_texts(own)),
                ..bare()
            }),
            EventBody::Prompt { text: Some(text) } => Some(Face {
                title: one_line_head(text),
                words: with_id(vec![(Weight::B, text)]),
                ..bare()
            }),
            _ => None,
        }
    }
}

fn observation_face(own: &ObservationDraft, words: Vector) -> Face {
    let concepts: Vec<&str> = own.concepts.iter().copied().map(Concept::name).collect();
    Face {
        title: own.title.clone(),
        obs_type: Some(own.kind.code()),
        concepts: concepts.join(","),
        read_tokens: own.read_tokens(),
        work_tokens: own.work_tokens,
        words,
    }
}

/// The words of a record, as they are searched.
fn words(texts: &[(Weight, &str)]) -> Vector {
    let words = vector(texts);
    if words.dropped > 0 {
        // The text itself is kept whole; only a search by its last words will not find it.
        tracing::debug!(
            dropped = words.dropped,
            "a record has more words than are searched"
        );
    }
    words
}

fn bare() -> Face {
    Face {
        title: String::new(),
        obs_type: None,
        concepts: String::new(),
        read_tokens: 0,
        work_tokens: 0,
        words: words(&[]),
    }
}

/// What a row shows of a prompt: its head, on one line.
pub(crate) fn one_line_head(text: &str) -> String {
    let head = head_bytes(text.trim_start(), 4 * limits::ROW_TITLE_BYTES);
    let line = head.split(|c: char| c.is_whitespace() || c.is_control());
    let line: Vec<&str> = line.filter(|word| !word.is_empty()).collect();
    head_bytes(&line.join(" "), limits::ROW_TITLE_BYTES).to_owned()
}
