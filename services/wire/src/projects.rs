//! Projects: which there are, what a text means, renaming and merging (contract 2.4).

use cairn_domain::project::ProjectKey;
use cairn_domain::{Rejection, bounds, limits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Which project is meant.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProjectResolve {
    /// Its key, as clients find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where no key is given: its id, key or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ProjectResolve {
    /// The text that decides, and whether it is a key.
    ///
    /// # Errors
    /// `invalid_field` for neither, and for a key out of bounds.
    pub fn parse(self) -> Result<(String, bool), Rejection> {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        if let Some(key) = given(self.key) {
            return Ok((ProjectKey::parse(key, None)?.key, true));
        }
        match given(self.name) {
            Some(name) => Ok((bounds::word("/name", name, limits::PROJECT_BYTES)?, false)),
            None => Err(Rejection::invalid_field("", "give key or name")),
        }
    }
}

/// What is to become of a project.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProjectPatch {
    /// Its name from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id, key or name of the project that it becomes an alias of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_into: Option<String>,
}

impl ProjectPatch {
    /// Checks it.
    ///
    /// # Errors
    /// `invalid_field` if it says nothing, or a name is out of bounds.
    pub fn parse(self) -> Result<Self, Rejection> {
        if self.name.is_none() && self.merge_into.is_none() {
            return Err(Rejection::invalid_field("", "give name or merge_into"));
        }
        let within = |pointer: &'static str| {
            move |text: String| bounds::word(pointer, text, limits::PROJECT_BYTES)
        };
        let name = self.name.map(|name| {
            // As a client's name would be.
            let key = format!("name:{}", name.trim());
            within("/name")(name).and_then(|name| {
                let named = ProjectKey::parse(key.clone(), Some(name));
                named.map(|named| named.name)
            })
        });
        Ok(Self {
            name: name.transpose()?,
            merge_into: self.merge_into.map(within("/merge_into")).transpose()?,
        })
    }
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectItem {
    /// Its id.
    pub id: Uuid,
    /// Its key: `git:…`, `name:…`, `repo:…` or `dir:…`.
    pub key: String,
    /// Its name.
    pub name: String,
    /// The key of the project that it was merged into; null if it was not.
    #[serde(default)]
    pub merged_into: Option<String>,
    /// Keys of the projects that were merged into it.
    #[serde(default)]
    pub aliases: Vec<String>,
}

/// A page of the projects, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProjectList {
    /// The projects, without those that were merged into others.
    pub items: Vec<ProjectItem>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::whole;

    #[test]
    fn a_key_decides_before_a_name() {
        let read = |json| whole::<ProjectResolve>(json).expect("reads").parse();
        assert_eq!(
            read(r#"{"key":" name:x ","name":"y"}"#),
            Ok(("name:x".to_owned(), true))
        );
        assert_eq!(read(r#"{"name":"y"}"#), Ok(("y".to_owned(), false)));
        for json in ["{}", r#"{"key":"*"}"#, r#"{"name":"  "}"#] {
            read(json).expect_err(json);
        }
    }

    #[test]
    fn a_patch_says_something_within_bounds() {
        let read = |json: &str| whole::<ProjectPatch>(json).expect("reads").parse();
        let renamed = read(r#"{"name":" caf\u0065\u0301 "}"#).expect("a name");
        assert_eq!(renamed.name.as_deref(), Some("caf\u{e9}"));
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(257));
        for json in ["{}", r#"{"name":" "}"#, r#"{"merge_into":""}"#, &long] {
            read(json).expect_err(json);
        }
    }
}
