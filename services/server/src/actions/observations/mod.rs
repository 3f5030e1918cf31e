//! Observations, summaries and prompts: storing one, reading them by id, promoting and deleting.

mod change;
mod read;
mod write;

pub use change::{delete, promote};
pub use read::{get, list, render};
pub use write::{Added, add};
