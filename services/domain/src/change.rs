//! Change: what stands at a position of a tenant, and who may be told of it (contract 13).

use crate::ids::RecordKind;
use crate::project::Reader;

/// What kind of thing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// An observation, a summary or a prompt.
    Record(RecordKind),
    /// An entry of a work list.
    WorkEntry,
    /// A project.
    Project,
}

impl ChangeKind {
    /// The word of the contract for this kind.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Record(kind) => kind.word(),
            Self::WorkEntry => "work_entry",
            Self::Project => "project",
        }
    }
}

/// Who may be told of a change, but for the tenant's setting on prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience {
    /// What changed.
    pub kind: ChangeKind,
    /// The number of its project inside the database.
    pub project: i32,
    /// The number of its author; none for what has no author.
    pub author: Option<i32>,
    /// Whether it is its author's alone.
    pub private: bool,
}

impl Audience {
    /// Whether a reader may be told. `prompts_shared` is the tenant's setting at this moment: else
    /// prompts are their authors' alone. The same rule as for reading the thing itself.
    #[must_use]
    pub fn includes(&self, reader: &Reader, prompts_shared: bool) -> bool {
        let is_prompt = self.kind == ChangeKind::Record(RecordKind::Prompt);
        let is_hidden = self.private || (is_prompt && !prompts_shared);
        let is_own = self.author == Some(reader.principal.key);
        reader.projects.contains(self.project) && (is_own || !is_hidden)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{PrincipalId, ProjectId};
    use crate::project::ProjectSet;

    fn reader(key: i32, projects: ProjectSet) -> Reader {
        let uuid = Uuid::nil();
        Reader {
            principal: PrincipalId { key, uuid },
            projects,
        }
    }

    #[test]
    fn what_is_hidden_is_its_authors_alone_and_nothing_leaves_its_projects() {
        let observation = ChangeKind::Record(RecordKind::Observation);
        let prompt = ChangeKind::Record(RecordKind::Prompt);
        let of = |kind, private| Audience {
            kind,
            project: 7,
            author: Some(1),
            private,
        };
        let seven = || {
            ProjectSet::Only(vec![ProjectId {
                key: 7,
                uuid: Uuid::nil(),
            }])
        };
        for projects in [ProjectSet::All, seven()] {
            let (own, other) = (reader(1, projects.clone()), reader(2, projects));
            for (audience, shared, seen) in [
                (of(observation, false), false, true),
                (of(observation, true), true, false),
                (of(prompt, false), false, false),
                (of(prompt, false), true, true),
                (of(prompt, true), true, false),
                (of(ChangeKind::WorkEntry, false), false, true),
            ] {
                assert!(audience.includes(&own, shared), "{audience:?}");
                assert_eq!(audience.includes(&other, shared), seen, "{audience:?}");
            }
        }
        let nowhere = reader(1, ProjectSet::Only(Vec::new()));
        assert!(!of(observation, false).includes(&nowhere, true));
        let project = Audience {
            author: None,
            ..of(ChangeKind::Project, false)
        };
        assert!(project.includes(&reader(1, seven()), false));
    }
}
