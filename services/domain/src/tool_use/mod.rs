//! ToolUse: the original input and output of one tool call, kept as exact JSON text (contract 8).
//!
//! Reading it back is the last step of disclosure: by id alone, as a tree that shows what there
//! is first and the rest in parts.

mod altered;
mod name;
mod render;
mod searched;
mod tree;

pub use altered::Alteration;
pub use name::ToolUseName;
pub use render::{ToolUses, render_tool_use_part, render_tool_uses};
pub use searched::searched_text;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::bounds::{Bound, cut};
use crate::event::Visibility;
use crate::ids::{RecordId, ToolUseId};
use crate::limits;
use crate::project::Project;

/// One side of a tool call: the text kept, and what it was before it was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The JSON text, at most [`limits::TEXT_BYTES`].
    pub text: String,
    /// Bytes of the whole text.
    pub bytes: i64,
    /// SHA-256 of the whole text.
    pub sha256: [u8; 32],
}

impl Evidence {
    /// Takes a whole text, notes its size and digest, and cuts what is over the limit.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            bytes: i64::try_from(text.len()).unwrap_or(i64::MAX),
            sha256: Sha256::digest(text.as_bytes()).into(),
            text: cut(text, Bound::Bytes(limits::TEXT_BYTES)),
        }
    }

    /// The same text as the cut form of a longer one, which its client measured before cutting.
    /// A size below the text's own is no such measure and changes nothing.
    #[must_use]
    pub fn cut_from(self, bytes: i64, sha256: [u8; 32]) -> Self {
        if bytes > self.bytes {
            Self {
                bytes,
                sha256,
                ..self
            }
        } else {
            self
        }
    }

    /// Whether the text is less than the whole.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        i64::try_from(self.text.len()).is_ok_and(|kept| kept < self.bytes)
    }
}

/// A tool use's own fields, as they are about to be stored and as they are read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUseDraft {
    /// The tool's name as the host gives it.
    pub tool: String,
    /// The host's id of the call, if it has one.
    pub host_tool_use_id: Option<String>,
    /// What went in.
    pub input: Evidence,
    /// What came out.
    pub output: Evidence,
    /// Whether the call failed; `None` if the host does not say.
    pub failed: Option<bool>,
    /// Files the call touched.
    pub files: Vec<String>,
}

/// A tool use in a list: nothing of what went in or came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedToolUse {
    /// Its id.
    pub id: ToolUseId,
    /// The tool's name as the host gives it.
    pub tool: String,
    /// The host's id of its session.
    pub session: String,
    /// The project's key.
    pub project: String,
    /// Its author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    pub at: DateTime<Utc>,
}

/// A tool use as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// Its id.
    pub id: ToolUseId,
    /// The client's id of the event that reported it.
    pub event_id: Uuid,
    /// Its project.
    pub project: Project,
    /// The host, e.g. `claude-code`.
    pub host: String,
    /// The host's id of its session.
    pub session: String,
    /// Its author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// When it arrived.
    pub arrived_at: DateTime<Utc>,
    /// Who may read it, the tenant's setting aside.
    pub visibility: Visibility,
    /// The subagent's id, if one made the call.
    pub agent_id: Option<String>,
    /// The subagent's type.
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Where the checkout is, the home folder as `~`.
    pub checkout: Option<String>,
    /// The observation that was made of it, once there is one.
    pub observation: Option<RecordId>,
    /// Its own fields.
    pub call: ToolUseDraft,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_cut_says_what_it_cut_from() {
        let kept = Evidence::of("abc…[cut 97 bytes]");
        assert_eq!(kept.clone().cut_from(100, [7; 32]).bytes, 100);
        assert_eq!(kept.clone().cut_from(3, [7; 32]), kept);
    }

    #[test]
    fn digest_and_size_are_of_the_text_before_the_cut() {
        let whole = "a".repeat(limits::TEXT_BYTES + 1);
        let kept = Evidence::of(&whole);
        assert_eq!(kept.bytes, 65_537);
        assert_eq!(
            kept.sha256,
            <[u8; 32]>::from(Sha256::digest(whole.as_bytes()))
        );
        assert!(kept.text.len() <= limits::TEXT_BYTES && kept.text.ends_with("bytes]"));
    }
}
