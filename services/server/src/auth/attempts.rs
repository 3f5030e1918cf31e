//! Attempts: how often an address may present a credential that is none (contract 14.6).
//!
//! An attempt is counted before it is looked up and given back if it was good. A credential that
//! was good a while ago is not counted before: so whoever shares an address with somebody who
//! guesses goes on, and costs no round trip. A request without any credential guesses nothing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use cairn_wire::Code;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use crate::actions::Failure;
use crate::app::App;
use crate::http::peer::Peer;
use crate::rates::too_fast;

/// Credentials that are known to be good.
const CAPACITY: u64 = 10_000;
/// How long they are, since they were last presented.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);

/// Hashes of what was presented and was good.
pub struct GoodCredentials(Cache<[u8; 32], ()>);

impl Default for GoodCredentials {
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(CAPACITY);
        Self(cache.time_to_idle(KNOWN_FOR).build())
    }
}

/// An attempt under way.
pub struct Attempt {
    presented: [u8; 32],
    /// From where, if that is known.
    from: Option<IpAddr>,
    is_known: bool,
}

impl Attempt {
    /// Begins one; none for a request that presents nothing.
    ///
    /// # Errors
    /// `rate_limited` after too many failures of its address.
    pub async fn begin(
        app: &App,
        headers: &HeaderMap,
        peer: Peer,
    ) -> Result<Option<Self>, Failure> {
        let Some(presented) = headers.get(AUTHORIZATION) else {
            return Ok(None);
        };
        let presented: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let attempt = Self {
            is_known: app.good_credentials.0.get(&presented).await.is_some(),
            from: peer.0,
            presented,
        };
        let Some(from) = attempt.from.filter(|_| !attempt.is_known) else {
            return Ok(Some(attempt));
        };
        match app.callers.rates.take_sign_in(from).await {
            Ok(()) => Ok(Some(attempt)),
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
    pub async fn end<T>(self, app: &Arc<App>, outcome: &Result<T, Failure>) {
        // What is over or revoked was no guess: its secret or its signature was right.
        let is_unknown =
            matches!(outcome, Err(Failure::Problem(p)) if p.code == Code::Unauthenticated);
        if outcome.is_ok() && !self.is_known {
            app.good_credentials.0.insert(self.presented, ()).await;
        }
        let Some(from) = self.from else { return };
        match (is_unknown, self.is_known) {
            // What was good is so no more, and counts as anything else from now on.
            (true, true) => {
                app.good_credentials.0.invalidate(&self.presented).await;
                // Refused or not, it is counted.
                let _ = app.callers.rates.take_sign_in(from).await;
            }
            (false, false) => {
                let app = Arc::clone(app);
                tokio::spawn(async move { app.callers.rates.give_sign_in_back(from).await });
            }
            (true, false) | (false, true) => {}
        }
    }
}
