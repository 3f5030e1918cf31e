//! Attempts: how often an address may present a credential that is none (contract 14.6).
//!
//! What is worth nothing is counted once that is known, so that any number of good credentials may
//! come from one address at once. A few of an address are looked up at a time, each after a look
//! at the count: so a flood passes the limit by those few and no more. A credential that was good
//! a while ago waits for nobody: so whoever shares an address with somebody who guesses goes on,
//! and costs no round trip. A request without any credential guesses nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use cairn_domain::limits;
use cairn_store::StoreError;
use cairn_store::rates::network;
use cairn_wire::Code;
use moka::future::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::actions::Failure;
use crate::app::App;
use crate::http::peer::Peer;
use crate::lock::lock;
use crate::rates::too_fast;

/// Credentials that are known to be good.
const CAPACITY: u64 = 10_000;
/// How long they are, since they were last presented.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);
/// Addresses after which those are forgotten of which nothing is looked up.
const MANY: usize = 1_024;

/// Hashes of what was presented and was good.
pub struct GoodCredentials(Cache<[u8; 32], ()>);

impl Default for GoodCredentials {
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(CAPACITY);
        Self(cache.time_to_idle(KNOWN_FOR).build())
    }
}

/// Look-ups under way, by address.
#[derive(Default)]
pub struct Lookups(Mutex<HashMap<IpAddr, Weak<Semaphore>>>);

impl Lookups {
    /// Waits for its turn; given back when it is dropped.
    async fn turn(&self, from: IpAddr) -> Result<OwnedSemaphorePermit, StoreError> {
        let turns = self.turns(network(from)).acquire_owned();
        let turn = tokio::time::timeout(limits::ANSWER_TIME, turns).await;
        let turn = turn.map_err(|_| StoreError::Timeout)?;
        turn.map_err(|_| StoreError::Unavailable)
    }

    fn turns(&self, from: IpAddr) -> Arc<Semaphore> {
        let mut all = lock(&self.0);
        if let Some(turns) = all.get(&from).and_then(Weak::upgrade) {
            return turns;
        }
        if all.len() >= MANY {
            all.retain(|_, turns| turns.strong_count() > 0);
        }
        let turns = Arc::new(Semaphore::new(limits::SIGN_INS_AT_ONCE));
        all.insert(from, Arc::downgrade(&turns));
        turns
    }
}

/// An attempt under way.
pub struct Attempt {
    app: Arc<App>,
    presented: [u8; 32],
    /// From where, if that is known.
    from: Option<IpAddr>,
    is_known: bool,
    /// Kept until it is counted. Whoever hangs up before that has learned nothing, and is not
    /// counted: a slow store would lock out all who wait for it.
    turn: Option<OwnedSemaphorePermit>,
}

impl Attempt {
    /// Begins one; none for a request that presents nothing.
    ///
    /// # Errors
    /// `rate_limited` after too many failures of its address; `store_unavailable` if those before
    /// it are looked up for too long.
    pub async fn begin(
        app: &Arc<App>,
        headers: &HeaderMap,
        peer: Peer,
    ) -> Result<Option<Self>, Failure> {
        let Some(presented) = headers.get(AUTHORIZATION) else {
            return Ok(None);
        };
        let presented: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let mut attempt = Self {
            app: Arc::clone(app),
            is_known: app.good_credentials.0.get(&presented).await.is_some(),
            from: peer.0,
            presented,
            turn: None,
        };
        let Some(from) = attempt.from.filter(|_| !attempt.is_known) else {
            return Ok(Some(attempt));
        };
        let turn = app.lookups.turn(from).await?;
        match app.callers.rates.look_at_sign_ins(from).await {
            Ok(()) => {
                attempt.turn = Some(turn);
                Ok(Some(attempt))
            }
            Err(wait) => {
                if app.guards.sign_in_refused.note(app.clock.now()) {
                    tracing::warn!("an address failed too often to sign in");
                }
                let detail = "too many failed sign-ins from this address".to_owned();
                Err(too_fast(detail, wait).into())
            }
        }
    }

    /// Ends it with what came of it.
    pub async fn end<T>(mut self, outcome: &Result<T, Failure>) {
        // What is over or revoked was no guess: its secret or its signature was right.
        let is_unknown =
            matches!(outcome, Err(Failure::Problem(p)) if p.code == Code::Unauthenticated);
        let good = &self.app.good_credentials.0;
        if outcome.is_ok() && !self.is_known {
            good.insert(self.presented, ()).await;
        }
        if !is_unknown {
            self.turn = None;
            return;
        }
        // What was good is so no more, and waits like any other from now on.
        if self.is_known {
            good.invalidate(&self.presented).await;
        }
        if let Some(from) = self.from {
            self.app.callers.rates.note_failed_sign_in(from).await;
        }
        self.turn = None;
    }
}
