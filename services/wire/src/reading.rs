//! Reading JSON with a pointer to what is wrong and a note of what is unknown.

use std::collections::BTreeSet;

use cairn_domain::Rejection;
use cairn_wire::events::BodyReader;
use cairn_wire::{Code, Problem};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::Segment;

use super::Failure;

/// Reads a whole body.
///
/// # Errors
/// `malformed_body` if it is not JSON; `invalid_field` with a pointer if a value is of the wrong
/// kind.
pub fn whole_body<T: DeserializeOwned>(json: &str) -> Result<T, Failure> {
    read(json, "", &mut BTreeSet::new())
}

/// Reads parts of a document and gathers the unknown fields on the way.
#[derive(Default)]
pub struct Reader {
    /// Names of fields that this version does not know, each once.
    pub ignored: BTreeSet<String>,
}

impl Reader {
    /// Reads a document whose unknown fields are gathered.
    ///
    /// # Errors
    /// As [`whole_body`].
    pub fn document<T: DeserializeOwned>(&mut self, json: &str) -> Result<T, Failure> {
        read(json, "", &mut self.ignored)
    }
}

impl BodyReader for Reader {
    fn read<T: DeserializeOwned>(&mut self, json: &str) -> Result<T, Rejection> {
        read(json, "/body", &mut self.ignored).map_err(|failure| match failure {
            Failure::Rejected(rejection) => rejection,
            _ => Rejection::invalid_field("/body", "must be an object"),
        })
    }
}

fn read<T: DeserializeOwned>(
    json: &str,
    prefix: &str,
    ignored: &mut BTreeSet<String>,
) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_str(json);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let mut unknown = |path: serde_ignored::Path<'_>| {
        ignored.insert(name_of(&path, prefix));
    };
    let value = serde_ignored::deserialize(tracked, &mut unknown);
    let whole = value.and_then(|value| json.end().map(|()| value));
    whole.map_err(|error| match error.classify() {
        Category::Data => {
            let pointer = format!("{prefix}{}", pointer(&track.path()));
            Rejection::invalid_field(pointer, say(&error)).into()
        }
        Category::Io | Category::Syntax | Category::Eof => {
            Problem::new(Code::MalformedBody, format!("not JSON: {error}")).into()
        }
    })
}

/// An unknown field by name, list positions left out: `items.body.colour`.
fn name_of(path: &serde_ignored::Path<'_>, prefix: &str) -> String {
    let path = path.to_string();
    let words = path
        .split('.')
        .filter(|word| *word != "?" && word.parse::<usize>().is_err());
    let name = words.collect::<Vec<_>>().join(".");
    match prefix.trim_start_matches('/') {
        "" => name,
        prefix => format!("{prefix}.{name}"),
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
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
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
            .document(r#"{"colour":1,"items":[{"x": 1.0e0},{"x":2}],"deep":[[[{"y":1}]]]}"#)
            .expect("reads");
        assert_eq!((doc.items[0].get(), doc.n), (r#"{"x": 1.0e0}"#, None));
        assert_eq!(
            reader.ignored.into_iter().collect::<Vec<_>>(),
            ["colour", "deep"]
        );
    }

    #[test]
    fn a_wrong_kind_is_pointed_at() {
        let failure = whole_body::<Doc>(r#"{"n":"x"}"#).expect_err("refused");
        let problem = failure.into_problem();
        assert_eq!(
            (problem.code, problem.errors[0].pointer.as_str()),
            (Code::InvalidField, "/n")
        );
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for json in ["", "{", "{}x", "\u{1}"] {
            let problem = whole_body::<Doc>(json).expect_err("refused").into_problem();
            assert_eq!(problem.code, Code::MalformedBody, "{json:?}");
        }
    }

    #[test]
    fn c029_nesting_of_any_depth_in_an_unknown_field_is_skipped() {
        let json = format!(
            r#"{{"deep":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(Reader::default().document::<Doc>(&json).is_ok());
    }
}
