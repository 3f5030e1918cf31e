//! Work state: the to-do lists and tracked state of a project, kept by agents (contract 5).
//!
//! Entries are appended and never changed; what a list says is folded from them by
//! (hlc, event id), whatever the order in which they came.

mod claim;
mod entry;
mod fold;
mod render;

pub use claim::{Claim, Held, Holder, decide};
pub use entry::{Action, WorkEntryDraft};
pub use fold::{Item, List, Place, WorkEntry, WorkState};
pub use render::{Lines, NOTHING_OPEN, RULES, render_block, render_read, render_written};
