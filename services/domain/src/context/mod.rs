//! Context: the text shown at session start, only that (contract 6).
//!
//! Rows come in already chosen and readable; the text comes out. Nothing here selects, caches or
//! knows the hour: the instant and the reader's zone are arguments.

mod render;
mod rows;
mod tokens;
mod zone;

pub use render::{render, render_body, render_title};
pub use rows::{ContextObservation, ContextRows, ContextSummary};
pub use tokens::Stats;
pub use zone::Zone;

/// What a context shows beside titles. Settings of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// What reading each row's record costs.
    pub show_read_tokens: bool,
    /// What producing each row's record cost.
    pub show_work_tokens: bool,
    /// In the stats, the share of work that reading saves.
    pub show_savings_percent: bool,
    /// In the stats, the tokens that reading saves; the share wins if both are on.
    pub show_savings_amount: bool,
    /// The newest summary's fields, if nothing is newer.
    pub show_last_summary: bool,
    /// The author of each row.
    pub show_author: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            show_read_tokens: false,
            show_work_tokens: false,
            show_savings_percent: true,
            show_savings_amount: false,
            show_last_summary: true,
            show_author: false,
        }
    }
}

impl Options {
    /// Whether the stats line is due: one of the four settings about tokens is on.
    const fn shows_stats(&self) -> bool {
        self.show_read_tokens
            || self.show_work_tokens
            || self.show_savings_percent
            || self.show_savings_amount
    }
}
