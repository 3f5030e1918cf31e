//! Context: the text shown at session start, only that (contract 6).
//!
//! Rows come in already chosen and readable; the text comes out. Nothing here selects, caches or
//! knows the hour: the instant and the reader's zone are arguments.

mod rows;
pub use rows::{ContextObservation, ContextRows, ContextSummary};
