//! Project: a repository or folder as the tenant knows it, one on all machines (contract 2.4).

use unicode_normalization::UnicodeNormalization;

use crate::Rejection;
use crate::bounds::{clean, word};
use crate::ids::ProjectId;
use crate::limits;

/// How a client names a project: the key that decides, the name that people read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectKey {
    /// `git:…`, `name:…`, `repo:…` or `dir:…`; compared without case, in NFC.
    pub key: String,
    /// The display name.
    pub name: String,
}

impl ProjectKey {
    /// Checks a key and its name; without a name the last segment of the key stands in.
    ///
    /// # Errors
    /// `invalid_field` if either is empty or over its limit.
    pub fn parse(key: String, name: Option<String>) -> Result<Self, Rejection> {
        let key: String = word("/key", key, limits::PROJECT_BYTES)?
            .trim()
            .nfc()
            .collect();
        if key == "*" {
            // It stands for every project wherever one is named.
            return Err(Rejection::invalid_field("/key", "a key other than *"));
        }
        let name = match name.filter(|n| !n.trim().is_empty()) {
            Some(name) => word("/name", name, limits::PROJECT_BYTES)?
                .trim()
                .nfc()
                .collect(),
            None => default_name(&key).to_owned(),
        };
        Ok(Self { key, name })
    }

    /// The form in which keys are compared.
    #[must_use]
    pub fn folded(&self) -> String {
        fold(&self.key)
    }
}

/// A key or a name as it is compared: without NUL, NFC, lower case.
#[must_use]
pub fn fold(text: &str) -> String {
    let text = clean(text.trim().to_owned());
    // Character by character: a whole word's lower case depends on what stands around a letter.
    text.nfc().flat_map(char::to_lowercase).collect()
}

fn default_name(key: &str) -> &str {
    let rest = key.split_once(':').map_or(key, |(_, rest)| rest);
    let last = rest.rsplit('/').find(|segment| !segment.is_empty());
    last.unwrap_or(key)
}

/// A project as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its identity.
    pub id: ProjectId,
    /// Its key, as first written.
    pub key: String,
    /// Its display name.
    pub name: String,
}

/// A project with what was merged into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The project itself.
    pub project: Project,
    /// Itself and all that were merged into it, ascending by UUID.
    pub members: Vec<ProjectId>,
}

/// What a text names: a project, as the one that reads go by and as the one that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What reads cover.
    pub family: Family,
    /// The member of the family that the text names; the project itself if it names that too. A
    /// merged project keeps its own records, so this is where a write goes.
    pub named: Project,
}

/// The projects a read covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectSet {
    /// Every project of the tenant.
    All,
    /// These and no others; an empty set reads nothing.
    Only(Vec<ProjectId>),
}

impl ProjectSet {
    /// Whether the project of this number inside the database is among them.
    #[must_use]
    pub fn contains(&self, key: i32) -> bool {
        match self {
            Self::All => true,
            Self::Only(projects) => projects.iter().any(|project| project.key == key),
        }
    }

    /// These and those.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(mut these), Self::Only(those)) => {
                let more = those.into_iter().filter(|id| !these.contains(id));
                let more: Vec<ProjectId> = more.collect();
                these.extend(more);
                Self::Only(these)
            }
            _ => Self::All,
        }
    }

    /// Whether nothing is read at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self {
            Self::All => false,
            Self::Only(projects) => projects.is_empty(),
        }
    }
}

/// Whose eyes a read uses: private records are seen by their author alone, and nothing outside
/// the projects is seen at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Who reads.
    pub principal: crate::ids::PrincipalId,
    /// Where they may look in this call.
    pub projects: ProjectSet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_names_a_project_without_a_name() {
        let project = ProjectKey::parse("git:git.example.com/acme/my-app".to_owned(), None);
        assert_eq!(project.expect("ok").name, "my-app");
    }

    #[test]
    fn keys_are_compared_without_case() {
        let upper = ProjectKey::parse("git:Git.example/ACME/App".to_owned(), None).expect("ok");
        assert_eq!(upper.folded(), "git:git.example/acme/app");
        assert_eq!(upper.key, "git:Git.example/ACME/App");
    }

    #[test]
    fn no_letter_is_folded_by_its_neighbours() {
        assert_eq!(fold("ΟΔΟΣ"), fold("οδοσ"));
    }

    #[test]
    fn c030_a_project_name_of_9600_characters_is_refused() {
        let long = ProjectKey::parse("name:x".to_owned(), Some("0f3a".repeat(2_400)));
        assert_eq!(
            long,
            Err(Rejection::invalid_field("/name", "at most 256 bytes"))
        );
    }
}
