//! Context: the text shown at session start, only that (contract 6).
//!
//! Rows come in already chosen and readable; the text comes out. Nothing here selects, caches or
//! knows the hour: the instant and the reader's zone are arguments.

mod budget;
mod overview;
mod render;
mod rows;
pub(crate) mod table;
mod tokens;
mod zone;

pub use budget::{Budget, render_index};
pub use overview::render_overview;
pub use rows::{
    ContextObservation, ContextRows, ContextSummary, ContextTotals, Selection, TableRow,
};
pub use table::render_table;
pub use tokens::Stats;
pub use zone::Zone;

/// What of an observation a row in full shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FullField {
    /// Its narrative.
    #[default]
    Narrative,
    /// Its facts, one a line.
    Facts,
}

impl FullField {
    /// The field of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "narrative" => Some(Self::Narrative),
            "facts" => Some(Self::Facts),
            _ => None,
        }
    }
}

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
    /// The newest rows that are shown in full.
    pub full_count: u32,
    /// What they show.
    pub full_field: FullField,
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
            full_count: 0,
            full_field: FullField::Narrative,
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
