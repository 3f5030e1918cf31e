//! Rates: what callers are allowed in a minute, and what they are told of it (contract 14.6).
//!
//! Redis away or slow means that nobody is held off; the counter in [`Guards`] says how often.

use std::fmt;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use cairn_domain::limits;
use cairn_store::rates::{Counted, RateLimit, RateLimits, Rates, Taken};
use cairn_wire::{Code, Problem};

use crate::actions::Failure;
use crate::app::App;
use crate::auth::Caller;
#[cfg(doc)]
use crate::guards::Guards;
use crate::http::peer::Peer;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");

/// The limits of callers, and how an address is told from a request.
pub struct CallerRates {
    /// The counters.
    pub rates: Rates,
    /// How many proxies stand before the service, each of which adds the address that it saw.
    pub trusted_proxies: usize,
    policy: HeaderValue,
}

impl CallerRates {
    /// Limits over these counters.
    #[must_use]
    pub fn new(rates: Rates, trusted_proxies: usize) -> Self {
        let requests = rates.limits().requests;
        let policy = HeaderValue::from_str(&format!("\"caller\";q={requests};w=60"));
        Self {
            rates,
            trusted_proxies,
            policy: policy.expect("a number is plain"),
        }
    }

    /// Limits that nobody meets, for a service that stands alone.
    #[must_use]
    pub fn none() -> Self {
        let limits = RateLimits {
            requests: u32::MAX,
            events: u32::MAX,
            failed_sign_ins: u32::MAX,
            strangers: u32::MAX,
        };
        Self::new(Rates::memory(limits), 0)
    }

    /// Says on an answer how the caller stands.
    pub fn show(&self, taken: &Taken, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(POLICY, self.policy.clone());
        let (left, full_in) = (taken.left, seconds(taken.full_in));
        let standing = format!("\"caller\";r={left};t={full_in}");
        if let Ok(standing) = HeaderValue::from_str(&standing) {
            headers.insert(STANDING, standing);
        }
    }
}

impl fmt::Debug for CallerRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerRates")
            .field(&self.rates.limits())
            .finish()
    }
}

/// Takes a request of a caller; what came of it goes on the answer.
pub async fn take_request(app: &App, caller: &Caller) -> (Taken, Result<(), Problem>) {
    let rates = &app.callers.rates;
    let taken = rates.take_request(caller.tenant, caller.principal).await;
    (taken, check(app, &taken))
}

/// Takes the events of a batch, before anything is done with them.
///
/// # Errors
/// `rate_limited` for the whole batch, with the time after which it fits.
pub async fn take_events(app: &App, caller: &Caller, events: usize) -> Result<(), Failure> {
    if events == 0 {
        return Ok(());
    }
    let rates = &app.callers.rates;
    let (tenant, principal) = (caller.tenant, caller.principal);
    let taken = rates.take_events(tenant, principal, events).await;
    Ok(check(app, &taken)?)
}

/// Takes what somebody without a credential begins, before anything is done or kept for them. One
/// whose address nobody knows is let in, as one is while nobody can count.
///
/// # Errors
/// How long to wait, if too much of it came from their address.
pub async fn take_stranger(app: &App, peer: Peer) -> Result<(), Duration> {
    let Some(from) = peer.0 else {
        return Ok(());
    };
    let (guards, now) = (&app.guards, app.clock.now());
    match app.callers.rates.take_stranger(from).await {
        Ok(Counted::Yes) => Ok(()),
        Ok(Counted::No) => {
            if guards.rate_open.note(now) {
                tracing::warn!("strangers are not counted: Redis does not answer");
            }
            Ok(())
        }
        Err(wait) => {
            if guards.stranger_refused.note(now) {
                tracing::warn!("programs or devices came too fast from an address");
            }
            Err(wait)
        }
    }
}

/// The answer to whoever comes too fast.
#[must_use]
pub fn too_fast(detail: String, wait: Duration) -> Problem {
    Problem::new(Code::RateLimited, detail).retry_after(seconds(wait).max(1))
}

fn check(app: &App, taken: &Taken) -> Result<(), Problem> {
    let now = app.clock.now();
    if taken.is_open && app.guards.rate_open.note(now) {
        tracing::warn!("requests are not counted: Redis does not answer");
    }
    let Some((limit, wait)) = taken.refused else {
        return Ok(());
    };
    if app.guards.rate_refused.note(now) {
        tracing::info!(?limit, "a caller came too fast");
    }
    let most = app.callers.rates.limits();
    let requests = u64::from(most.requests);
    let detail = match limit {
        RateLimit::Caller => format!("at most {requests} requests a minute"),
        RateLimit::Tenant => {
            let all = requests * u64::from(limits::TENANT_RATE);
            format!("at most {all} requests a minute of the whole team")
        }
        RateLimit::Events => {
            format!("at most {} events a minute of the whole team", most.events)
        }
    };
    Err(too_fast(detail, wait))
}

/// Whole seconds, so that whoever waits for them does not come too soon.
#[must_use]
pub fn seconds(time: Duration) -> u32 {
    let begun = u64::from(time.subsec_nanos() > 0);
    u32::try_from(time.as_secs() + begun).unwrap_or(u32::MAX)
}
