//! Lists of observations: what there is and what reading it costs, page by page or by file.

use cairn_domain::Rejection;
use cairn_domain::filter::{ByAuthor, Filter, file_path, file_spellings};
use cairn_domain::ids::RecordKind;
use cairn_domain::listing::{FileObservation, Listed};
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::{bounds, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::query::Pairs;

/// The question of `GET /v1/observations`, as it is documented. It is read by [`ListAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct ListQuery {
    /// Id, key or name of a project, `*` for all; the current project if absent.
    project: Option<String>,
    /// Of one of these types, separated by commas.
    #[param(rename = "type")]
    kind: Option<String>,
    /// With one of these concepts, separated by commas.
    concept: Option<String>,
    /// About a file: the last segments of its path, or a folder above it; repeated for any of
    /// several.
    file: Option<String>,
    /// By this handle, or `key:<key id>`; `me` for the caller's own.
    author: Option<String>,
    /// Of the session of this id, alone or behind its host and `/`.
    session: Option<String>,
    /// From this moment on: a date, which means the day in `tz`, or RFC 3339.
    from: Option<String>,
    /// Up to this moment: the whole day of a date.
    to: Option<String>,
    /// The zone of dates, an IANA name; `UTC` if absent.
    tz: Option<String>,
    /// Items of a page: 1 to 200, 50 by default.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// A question for a list, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListAsk {
    /// The project that is named.
    pub project: Option<String>,
    /// Which observations.
    pub filter: Filter,
    /// Items of a page.
    pub limit: u32,
    /// Where the page before ended, as it was answered.
    pub cursor: Option<String>,
}

impl ListAsk {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        let owned = |name| pairs.text(name).map(str::to_owned);
        let period = pairs.period()?;
        let files = pairs.all("file").map(file_path);
        Ok(Self {
            project: owned("project"),
            filter: Filter {
                kinds: vec![RecordKind::Observation],
                types: pairs.named("type", ObservationType::ALL, ObservationType::name)?,
                concepts: pairs.named("concept", Concept::ALL, Concept::name)?,
                files: files.filter(|file| !file.is_empty()).collect(),
                author: pairs.text("author").map(ByAuthor::read),
                session: owned("session"),
                from: period.from,
                until: period.until,
            },
            limit: pairs.page()?,
            cursor: owned("cursor"),
        })
    }
}

/// A page of a list, newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ListAnswer {
    /// The observations.
    pub items: Vec<ListItem>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// An observation in a list. `GET /v1/observations/{id}` gives it whole.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListItem {
    /// `41`.
    pub id: String,
    /// `observation`.
    pub kind: String,
    /// One line.
    pub title: String,
    /// A second line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subtitle: String,
    /// One of the nine types.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub observation_type: Option<String>,
    /// Its concepts.
    pub concepts: Vec<String>,
    /// The project's key.
    pub project: String,
    /// The host's id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// `team` or `private`.
    pub visibility: String,
    /// What reading it costs, in tokens.
    pub read_tokens: u32,
    /// Files that it changed, then those that it read, at most 12.
    pub files: Vec<String>,
}

impl From<Listed> for ListItem {
    fn from(listed: Listed) -> Self {
        let row = listed.row;
        Self {
            id: row.id.to_string(),
            kind: row.id.kind.word().to_owned(),
            title: row.title,
            subtitle: listed.subtitle,
            observation_type: row.kind.map(|kind| kind.name().to_owned()),
            concepts: listed
                .concepts
                .iter()
                .map(|c| c.name().to_owned())
                .collect(),
            project: row.project.key,
            session: listed.session,
            author: row.author,
            at: row.at,
            visibility: listed.visibility.name().to_owned(),
            read_tokens: listed.read_tokens,
            files: listed.files,
        }
    }
}

/// The question of `GET /v1/observations/by-file`, as it is documented. It is read by
/// [`FileAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct FileQuery {
    /// A file, relative to the checkout root; repeated for several, at most 10.
    path: Vec<String>,
    /// Id, key or name of a project, `*` for all; the current project if absent.
    project: Option<String>,
    /// The newest observations, at most: 1 to 40, 40 by default.
    limit: Option<u32>,
}

/// A question for what is known of files, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAsk {
    /// The project that is named.
    pub project: Option<String>,
    /// The files, in each form in which a record may spell them.
    pub paths: Vec<String>,
    /// How many observations.
    pub limit: u32,
}

impl FileAsk {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        let asked: Vec<&str> = pairs.all("path").collect();
        if asked.is_empty() || asked.len() > limits::ASKED_FILES {
            let allowed = format!("1 to {} files", limits::ASKED_FILES);
            return Err(Rejection::invalid_field("/path", allowed));
        }
        let mut paths: Vec<String> = Vec::new();
        for path in asked {
            let path = bounds::path("/path", path.to_owned(), bounds::Oversize::Refuse)?;
            for spelling in file_spellings(&path) {
                if !paths.contains(&spelling) {
                    paths.push(spelling);
                }
            }
        }
        let limit = pairs.number("limit", 1, limits::FILE_OBSERVATIONS)?;
        Ok(Self {
            project: pairs.text("project").map(str::to_owned),
            paths,
            limit: limit.unwrap_or(limits::FILE_OBSERVATIONS),
        })
    }
}

/// What is known of the files.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FileAnswer {
    /// Observations about one of them, newest first.
    pub items: Vec<FileItem>,
    /// When the newest of them happened; null if there is none.
    #[serde(serialize_with = "crate::time::optional_millis")]
    pub newest_at: Option<DateTime<Utc>>,
}

/// An observation about a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FileItem {
    /// `41`.
    pub id: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// One of the nine types.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub observation_type: Option<String>,
    /// One line.
    pub title: String,
    /// The host's id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Files that it changed.
    pub files_modified: Vec<String>,
    /// How many files it is about, changed or read.
    pub files: u32,
}

impl From<Vec<FileObservation>> for FileAnswer {
    fn from(found: Vec<FileObservation>) -> Self {
        let item = |found: FileObservation| FileItem {
            id: found.row.id.to_string(),
            at: found.row.at,
            observation_type: found.row.kind.map(|kind| kind.name().to_owned()),
            title: found.row.title,
            session: found.session,
            files_modified: found.files_modified,
            files: found.files,
        };
        Self {
            newest_at: found.iter().map(|found| found.row.at).max(),
            items: found.into_iter().map(item).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(given: &[(&str, &str)]) -> Pairs {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Pairs(given.iter().map(owned).collect())
    }

    fn only_observations() -> Filter {
        Filter {
            kinds: vec![RecordKind::Observation],
            ..Filter::default()
        }
    }

    #[test]
    fn a_list_is_asked_for_by_what_is_said() {
        let ask = ListAsk::read(&Pairs::default()).expect("read");
        assert_eq!((ask.limit, ask.filter), (50, only_observations()));
        let asked = [
            ("type", "bugfix,feature"),
            ("concept", "gotcha"),
            ("concept", "pattern"),
            ("file", ".\\src\\net\\"),
            ("author", "me"),
        ];
        let ask = ListAsk::read(&pairs(&asked)).expect("read");
        assert_eq!(ask.filter.types.len() + ask.filter.concepts.len(), 4);
        assert_eq!(ask.filter.files, ["src/net"]);
        assert_eq!(ask.filter.author, Some(ByAuthor::Me));
        for (name, value) in [
            ("type", "poem"),
            ("concept", "poem"),
            ("from", "soon"),
            ("limit", "201"),
        ] {
            match ListAsk::read(&pairs(&[(name, value)])) {
                Err(Rejection::InvalidField { pointer, .. }) => {
                    assert_eq!(pointer, format!("/{name}"));
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_file_is_asked_for_in_every_spelling() {
        let ask = FileAsk::read(&pairs(&[("path", "./a.rs"), ("path", "caf\u{e9}.rs")]));
        let ask = ask.expect("read");
        assert_eq!(ask.paths, ["a.rs", "caf\u{e9}.rs", "cafe\u{301}.rs"]);
        assert_eq!(ask.limit, 40);
        let eleven: Vec<_> = (0..11).map(|_| ("path", "x")).collect();
        for asked in [&[][..], &[("path", "")], &eleven] {
            FileAsk::read(&pairs(asked)).expect_err("refused");
        }
        let long = "x".repeat(1_025);
        FileAsk::read(&pairs(&[("path", &long)])).expect_err("too long");
    }
}
