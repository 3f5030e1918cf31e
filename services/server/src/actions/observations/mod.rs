//! Observations, summaries and prompts: storing one, listing and reading them, promoting and
//! deleting.

mod change;
mod list;
mod read;
mod write;

pub use change::{delete, promote};
pub use list::{by_file, list};
pub use read::{get, read, render};
pub use write::{Added, add};
