//! What is said: requests, answers and problems, one module a noun.
//!
//! Shared by service and client, so both spell every field alike. Parsing from the wire into the
//! domain stands here too; nothing here knows HTTP or a database.

#![deny(missing_docs)]

pub mod problem;
pub use problem::{Code, Problem};

pub mod audit;
pub mod auth;
pub mod changes;
pub mod context;
pub mod events;
pub mod export;
pub mod grants;
pub mod import;
pub mod keys;
pub mod members;
pub mod observations;
pub mod pages;
pub mod projects;
pub mod purge;
pub mod query;
pub mod reading;
pub mod search;
pub mod session;
pub mod sessions;
pub mod sign_in;
pub mod tenant;
pub mod tenant_deletion;
pub mod time;
pub mod timeline;
pub mod tool_uses;
pub mod usage;
pub mod work_state;

/// What a client needs of the domain: limits, ids, text bounds.
pub use cairn_domain as domain;
