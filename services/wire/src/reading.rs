//! Reading JSON with a pointer to what is wrong and a note of what is unknown.

use std::collections::BTreeSet;

use cairn_domain::{Rejection, limits};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::Segment;

use crate::{Code, Problem};

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Malformed(String),
    /// It is JSON, but a value is of the wrong kind.
    #[error(transparent)]
    Field(#[from] Rejection),
}

impl From<Unreadable> for Problem {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Malformed(_) => Self::new(Code::MalformedBody, unreadable.to_string()),
            Unreadable::Field(rejection) => rejection.into(),
        }
    }
}

/// Reads a whole document.
///
/// # Errors
/// [`Unreadable`]; the pointer of a value of the wrong kind starts at the document.
pub fn whole<T: DeserializeOwned>(json: &str) -> Result<T, Unreadable> {
    Reader::default().read(json, "")
}

/// Reads the parts of a document and gathers the unknown fields on the way.
#[derive(Debug, Default)]
pub struct Reader {
    /// Names of fields that this version does not know, each once, at most
    /// [`limits::IGNORED_NAMES`].
    pub ignored: BTreeSet<String>,
}

impl Reader {
    /// Reads the part at `place`, a name like `items` or `items.body`; nothing for the whole.
    ///
    /// # Errors
    /// [`Unreadable`]; the pointer of a value of the wrong kind starts at the part.
    pub fn read<T: DeserializeOwned>(&mut self, json: &str, place: &str) -> Result<T, Unreadable> {
        // A list would be read as an object's fields by their places.
        if json.trim_start().starts_with('[') {
            return Err(Rejection::invalid_field("", "must be an object").into());
        }
        let mut json = serde_json::Deserializer::from_str(json);
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
        let mut unknown = |path: serde_ignored::Path<'_>| self.note(&path, place);
        let value = serde_ignored::deserialize(tracked, &mut unknown);
        let whole = value.and_then(|value| json.end().map(|()| value));
        whole.map_err(|error| match error.classify() {
            Category::Data => Rejection::invalid_field(pointer(&track.path()), say(&error)).into(),
            Category::Io | Category::Syntax | Category::Eof => {
                Unreadable::Malformed(error.to_string())
            }
        })
    }

    /// Notes an unknown field by name, list positions left out: `items.body.colour`.
    fn note(&mut self, path: &serde_ignored::Path<'_>, place: &str) {
        if self.ignored.len() >= limits::IGNORED_NAMES {
            return;
        }
        let path = path.to_string();
        let words = path
            .split('.')
            .filter(|w| *w != "?" && w.parse::<usize>().is_err());
        let words = Some(place)
            .filter(|place| !place.is_empty())
            .into_iter()
            .chain(words);
        let name = words.collect::<Vec<_>>().join(".");
        let name = cairn_domain::bounds::head_bytes(&name, limits::WORD_BYTES);
        self.ignored.insert(name.to_owned());
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

/// The error without the line and column: the pointer says where.
fn say(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text
        .rfind(" at line ")
        .map_or(text.as_str(), |at| &text[..at]);
    // The names of our types mean nothing to a caller.
    match text.find("expected struct ") {
        Some(at) => format!("{}expected an object", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Doc {
        #[serde(default)]
        items: Vec<Box<RawValue>>,
        n: Option<u32>,
    }

    #[test]
    fn unknown_fields_are_named_once_and_raw_parts_stay_raw() {
        let mut reader = Reader::default();
        let doc: Doc = reader
            .read(
                r#"{"colour":1,"items":[{"x": 1.0e0},{"x":2}],"deep":[[[{"y":1}]]]}"#,
                "",
            )
            .expect("reads");
        assert_eq!((doc.items[0].get(), doc.n), (r#"{"x": 1.0e0}"#, None));
        assert_eq!(
            reader.ignored.into_iter().collect::<Vec<_>>(),
            ["colour", "deep"]
        );
    }

    #[test]
    fn a_wrong_kind_is_pointed_at() {
        let refused = whole::<Doc>(r#"{"n":"x"}"#).expect_err("refused");
        let problem = Problem::from(refused);
        assert_eq!(
            (problem.code, problem.errors[0].pointer.as_str()),
            (Code::InvalidField, "/n")
        );
    }

    #[test]
    fn what_is_no_object_is_said_in_plain_words() {
        for (json, detail) in [
            ("[]", "must be an object"),
            ("\"x\"", "invalid type: string \"x\", expected an object"),
        ] {
            let problem = Problem::from(whole::<Doc>(json).expect_err("refused"));
            assert_eq!(problem.detail.as_deref(), Some(detail));
        }
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for json in ["", "{", "{}x", "\u{1}"] {
            let problem = Problem::from(whole::<Doc>(json).expect_err("refused"));
            assert_eq!(problem.code, Code::MalformedBody, "{json:?}");
        }
    }

    #[test]
    fn c029_nesting_of_any_depth_in_an_unknown_field_is_skipped() {
        let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
        assert!(whole::<Doc>(&format!(r#"{{"deep":{open}{close}}}"#)).is_ok());
    }

    #[test]
    fn a_hostile_body_names_a_bounded_number_of_unknown_fields() {
        let fields: Vec<String> = (0..1_000).map(|n| format!(r#""x{n}":1"#)).collect();
        let mut reader = Reader::default();
        let json = format!("{{{}}}", fields.join(","));
        reader.read::<Doc>(&json, "items").expect("reads");
        assert_eq!(reader.ignored.len(), limits::IGNORED_NAMES);
        assert!(
            reader
                .ignored
                .iter()
                .all(|name| name.starts_with("items.x"))
        );
    }
}
