//! The service as its callers see it: real HTTP, real Postgres as `cairn_app`, real Redis.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

mod support;

mod authz_coverage;
mod context;
mod crash;
mod credentials;
mod degraded;
mod events;
mod events_bad_input;
mod mcp;
mod openapi;
mod problems;
mod records;
mod replicas;
mod search;
mod shutdown;
