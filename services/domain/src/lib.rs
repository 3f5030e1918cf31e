//! What memory is: its words, limits, rules and texts.
//!
//! Nothing here performs I/O, reads a clock or draws a random number; what can go wrong is a
//! [`Rejection`]. Modules stand in reading order.

#![deny(missing_docs)]

pub mod limits;

pub mod ids;
pub mod scope;

mod rejection;
pub use rejection::Rejection;

pub mod bounds;
pub mod duration;
pub mod json_text;
pub mod kind;
pub mod plain;
pub mod room;
pub mod template;

pub mod change;
pub mod event;
pub mod filter;
pub mod grant;
pub mod hex;
pub mod hlc;
pub mod listing;
pub mod observation;
pub mod project;
pub mod quota;
pub mod record;
pub mod redact;
pub mod retention;
pub mod settings;
pub mod summary;
pub mod tool_use;
pub mod work_state;
pub mod wrapper_tags;

pub mod text;

pub mod search;

pub mod context;
pub mod timeline;
