//! Who answers: two doors, HTTP and MCP, to the same actions.
//!
//! The production entry point is [`serve`]: it takes a listener and a shutdown signal, so tests
//! run the real service on a port of their own.

pub mod app;
pub mod config;
pub mod contexts;
pub mod exports;
pub mod guards;
pub mod rates;
pub mod streams;
pub mod telemetry;
pub mod usage;

pub mod auth;

pub mod http;
pub mod mcp;
pub mod oauth;

pub mod actions;

pub mod lifecycle;
mod lock;
mod patient;
mod upkeep;
pub use lifecycle::serve;

pub mod admin;
pub mod embedded;
pub mod expiry;
