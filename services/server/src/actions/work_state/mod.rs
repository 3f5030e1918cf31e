//! Work state: writing to lists, claiming their tasks, reading what is open (contract 5).

mod read;
mod write;

pub use read::{history, history_item, read};
pub use write::write;
