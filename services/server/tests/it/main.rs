//! The service as its callers see it: real HTTP, real Postgres as `cairn_app`, real Redis.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

mod support;

mod answers;
mod audit;
mod authz_coverage;
mod auto;
mod changes;
mod compat;
mod context;
mod context_cache;
mod context_forms;
#[path = "../../../domain/tests/redact/corpus.rs"]
mod corpus;
mod crash;
mod credentials;
mod degraded;
mod edge;
mod events;
mod events_bad_input;
mod guards;
mod import_crash;
mod keys;
mod limits;
mod listing;
mod mcp;
mod mcp_faults;
mod mcp_tools;
mod members;
mod merged;
mod oauth;
mod openapi;
mod operator;
mod problems;
mod projects;
mod quotas;
mod records;
mod redaction;
mod redis_away;
mod remembering;
mod replicas;
mod revocation;
mod rights;
mod rights_end;
mod search;
mod search_evidence;
mod search_pages;
mod search_rest;
mod search_rights;
mod search_slow;
mod search_text;
mod search_walk;
mod sessions;
mod shutdown;
mod streams;
mod streams_model;
mod tenant;
mod timeline;
mod tool_uses;
mod work_state;
mod work_state_replicas;
