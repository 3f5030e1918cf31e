//! The real binary against a network double: stdin in, stdout out, files in a throw-away home.

#[path = "it/support.rs"]
mod support;

#[path = "../../domain/tests/redact/corpus.rs"]
mod corpus;
#[path = "it/hooks.rs"]
mod hooks;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/identity.rs"]
mod identity;
#[path = "it/isolation.rs"]
mod isolation;
#[path = "it/manage.rs"]
mod manage;
#[path = "it/people.rs"]
mod people;
#[path = "it/redaction.rs"]
mod redaction;
#[path = "it/session_start.rs"]
mod session_start;
#[path = "it/shim.rs"]
mod shim;
#[path = "it/shim_alone.rs"]
mod shim_alone;
#[path = "it/sign_in.rs"]
mod sign_in;
#[path = "it/spool.rs"]
mod spool;
