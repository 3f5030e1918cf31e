//! Where searches wait between their steps: in Redis, or in this process when embedded.
//!
//! Keeps sealed bytes under keyed names for a limited time. What a state says, who may use it
//! and when it is refused is decided by the search action.

mod memory;
mod shared;

use std::time::Duration;

use cairn_domain::limits;
use cairn_domain::search::Cursor;
use chrono::{DateTime, Utc};

use crate::cursor_keys::{KeyRing, new_nonce};
use crate::redis_link::RedisLink;
use memory::MemoryShelf;
use shared::SharedShelf;

/// What a cursor leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The state as it was saved.
    State(Vec<u8>),
    /// There was a state within the last 15 minutes before `now`, but its time is over.
    Expired,
    /// Never saved under this scope, evicted, long expired, or sealed by a key outside the ring.
    Unknown,
}

/// Why the store of continuations could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ContinuationError {
    /// Redis is away, hung or full. Trying again later may help.
    #[error("the continuation store is unavailable: {0}")]
    Unavailable(String),
    /// The address of Redis cannot be read. The text names no password.
    #[error("the address of Redis cannot be read: {0}")]
    Address(String),
    /// The state is larger than 48 KiB.
    #[error("a state of {0} bytes is too large to keep")]
    TooLarge(usize),
    /// The scope is not 1 to 2,048 bytes.
    #[error("a scope of {0} bytes cannot be used")]
    Scope(usize),
}

/// The store of continuations. Cheap to clone; clones share one store.
#[derive(Clone)]
pub struct Continuations {
    ring: KeyRing,
    shelf: Shelf,
}

#[derive(Clone)]
enum Shelf {
    Shared(SharedShelf),
    Memory(MemoryShelf),
}

/// How much is kept at once. What passes it makes the oldest cursor of the same member go, or
/// when the member has none left, the oldest of the same tenant; never another tenant's. A state
/// for which no room can be made stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Cursors of one member.
    pub member_cursors: usize,
    /// Sealed bytes of one member's cursors.
    pub member_bytes: usize,
    /// Sealed bytes of one tenant's cursors.
    pub tenant_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            member_cursors: limits::MEMBER_CURSORS,
            member_bytes: limits::MEMBER_CURSOR_BYTES,
            tenant_bytes: limits::TENANT_CURSOR_BYTES,
        }
    }
}

/// What a shelf holds under one name.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Sealed(Vec<u8>),
    Marker,
    Nothing,
}

impl Continuations {
    /// A store in Redis, shared by all replicas that have the same ring. Redis need not be there
    /// yet. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// [`ContinuationError::Address`].
    pub fn connect(url: &str, ring: KeyRing) -> Result<Self, ContinuationError> {
        Self::connect_with_prefix(url, ring, "")
    }

    /// As [`Continuations::connect`], with a text in front of every Redis key, so that tests can
    /// share one Redis.
    ///
    /// # Errors
    /// [`ContinuationError::Address`].
    pub fn connect_with_prefix(
        url: &str,
        ring: KeyRing,
        prefix: &str,
    ) -> Result<Self, ContinuationError> {
        let link =
            RedisLink::new(url).map_err(|error| ContinuationError::Address(error.to_string()))?;
        Ok(Self {
            ring,
            shelf: Shelf::Shared(SharedShelf::new(link, prefix)),
        })
    }

    /// A store in this process, lost with it: at most 1,024 cursors and 8 MiB, the oldest out
    /// first.
    #[must_use]
    pub fn memory(ring: KeyRing) -> Self {
        Self {
            ring,
            shelf: Shelf::Memory(MemoryShelf::new(
                limits::EMBEDDED_CURSORS,
                limits::EMBEDDED_CURSOR_BYTES,
            )),
        }
    }

    /// The ring, which also seals the cursors of lists.
    #[must_use]
    pub const fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// The same store with other caps. The embedded one starts anew, and holds what one member may
    /// have for all together.
    #[must_use]
    pub fn with_caps(mut self, caps: Caps) -> Self {
        match &mut self.shelf {
            Shelf::Shared(shelf) => shelf.caps = caps,
            Shelf::Memory(shelf) => {
                *shelf = MemoryShelf::new(caps.member_cursors, caps.member_bytes);
            }
        }
        self
    }

    /// The same store with another ring, as after a restart.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn with_ring(self, ring: KeyRing) -> Self {
        Self { ring, ..self }
    }

    /// Keeps a state under a fresh cursor until `expires_at`. For 15 minutes more the cursor is
    /// still recognised as expired.
    ///
    /// # Errors
    /// [`ContinuationError::Unavailable`], `TooLarge` or `Scope`.
    pub async fn save(
        &self,
        scope: &str,
        cursor: &Cursor,
        state: &[u8],
        expires_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<(), ContinuationError> {
        check_scope(scope)?;
        if state.len() > limits::STATE_BYTES {
            return Err(ContinuationError::TooLarge(state.len()));
        }
        let cursor = cursor.as_str();
        let key = self.ring.writer();
        let name = name(key.kid(), &key.state_key(scope, cursor));
        let sealed = key.seal(scope, cursor, state, new_nonce());
        match &self.shelf {
            Shelf::Shared(shelf) => {
                let left = (expires_at - now).to_std().unwrap_or(Duration::ZERO);
                shelf.put(scope, &name, &sealed, left).await?;
            }
            Shelf::Memory(shelf) => shelf.put(name, sealed, expires_at, now),
        }
        Ok(())
    }

    /// What a cursor leads to in a scope. May be asked any number of times.
    ///
    /// # Errors
    /// [`ContinuationError::Unavailable`] or `Scope`.
    pub async fn load(
        &self,
        scope: &str,
        cursor: &Cursor,
        now: DateTime<Utc>,
    ) -> Result<Loaded, ContinuationError> {
        check_scope(scope)?;
        let cursor = cursor.as_str();
        let keys = self.ring.readers();
        let names: Vec<String> = keys
            .iter()
            .map(|key| name(key.kid(), &key.state_key(scope, cursor)))
            .collect();
        let found = match &self.shelf {
            Shelf::Shared(shelf) => shelf.get(scope, &names).await?,
            Shelf::Memory(shelf) => names.iter().map(|name| shelf.get(name, now)).collect(),
        };
        let mut loaded = Loaded::Unknown;
        for (key, found) in keys.iter().zip(found) {
            match found {
                Found::Sealed(sealed) => match key.open(scope, cursor, &sealed) {
                    Some(state) => return Ok(Loaded::State(state)),
                    None => tracing::warn!(kid = key.kid(), "a stored continuation did not open"),
                },
                Found::Marker => loaded = Loaded::Expired,
                Found::Nothing => {}
            }
        }
        Ok(loaded)
    }

    /// Whether the store answers: at once, or within about two seconds if it hangs.
    ///
    /// # Errors
    /// [`ContinuationError::Unavailable`].
    pub async fn ping(&self) -> Result<(), ContinuationError> {
        match &self.shelf {
            Shelf::Shared(shelf) => shelf.ping().await,
            Shelf::Memory(_) => Ok(()),
        }
    }
}

fn check_scope(scope: &str) -> Result<(), ContinuationError> {
    if scope.is_empty() || scope.len() > limits::SCOPE_BYTES {
        return Err(ContinuationError::Scope(scope.len()));
    }
    Ok(())
}

/// What a state is called on its shelf: the end of its Redis key in the contract.
fn name(kid: &str, state_key: &str) -> String {
    format!("{kid}:{state_key}")
}
