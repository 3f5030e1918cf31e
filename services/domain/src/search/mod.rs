//! The three steps of `mem_search`: index, timeline, details (contract 7).
//!
//! Here are the rules of what may follow what, what a step shows, and its text to the character.
//! Finding rows, sealing state and drawing cursors are done elsewhere, with what is said here.

pub mod auto;
pub mod input;
pub mod pages;
pub mod results;
pub mod scope;

mod cursor;
mod details;
mod protocol;
mod reason;
mod render;
mod stored;

pub use cursor::Cursor;
pub use details::{Records, render_detail, render_part, render_records};
pub use protocol::{Call, Conditions, Continue, Plan};
pub use reason::Reason;
pub use render::{
    DATA_SENTENCE, Listing, Selection, join_timelines, render_complete, render_listing,
    render_selection, title,
};
pub use stored::{Options, Shown, Stored};

/// A step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Titles that match.
    Index,
    /// What surrounds the chosen ones.
    Timeline,
    /// Chosen records whole.
    Details,
}

impl Step {
    /// Its number: 1, 2, 3.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Index => 1,
            Self::Timeline => 2,
            Self::Details => 3,
        }
    }

    /// Its title in texts, and its `phase` over REST.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Timeline => "context",
            Self::Details => "selected details",
        }
    }
}

/// What the reader of a text may see of its records, and what need not be said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether the caller may read tool uses.
    pub evidence: bool,
}
