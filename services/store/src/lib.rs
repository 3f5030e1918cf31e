//! Where memory is kept: Postgres, Redis and the embedded database. Nothing else speaks SQL.
//!
//! The way in is [`Store`]; a tenant's rows are reached through [`TenantTx`] alone, and the few
//! calls across tenants through [`SystemTx`].

#![deny(missing_docs)]

mod error;
pub use error::StoreError;

mod migrate;
pub use migrate::{migrate, prepare_database};

mod store;
pub use store::{Store, StoreOptions};

mod turns;
pub use turns::Turn;

mod tenant_tx;
pub use tenant_tx::TenantTx;

mod system_tx;
pub use system_tx::{Credential, FirstKey, SystemTx, sign_in as before_sign_in};

pub mod audit;
pub mod bus;
pub mod changes;
pub mod context;
pub mod context_cache;
pub mod credentials;
pub mod descent;
pub mod events;
mod expiry;
pub mod export;
pub mod grants;
pub mod import;
pub mod jobs;
pub mod members;
pub mod projects;
pub mod purge;
mod quotas;
pub mod records;
pub mod redact;
mod reindex;
mod removal;
mod said;
pub mod search;
pub mod sessions;
pub mod sign_in;
mod tenants;
mod timeline;
pub mod tool_uses;
pub mod usage;
mod word_counts;
pub mod work_state;

pub mod continuations;
pub mod cursor_keys;
pub mod embedded;
pub mod page_cursor;
pub mod rates;
mod redis_link;

#[cfg(feature = "test-util")]
pub mod test_util;
