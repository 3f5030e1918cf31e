//! Attempts: how often an address may present a credential that is none (contract 14.6).
//!
//! An attempt is counted before it is looked up and given back if it was good. A credential that
//! was good a while ago is not counted before: so whoever shares an address with somebody who
//! guesses goes on, and costs no round trip. A request without any credential guesses nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use crate::actions::Failure;
use crate::app::App;
use crate::rates::too_fast;

/// Where addresses stand that proxies have seen.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Credentials that are known to be good.
const CAPACITY: u64 = 10_000;
/// How long they are, since they were last presented.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

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
        peer: Option<Peer>,
    ) -> Result<Option<Self>, Failure> {
        let Some(presented) = headers.get(AUTHORIZATION) else {
            return Ok(None);
        };
        let presented: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let attempt = Self {
            is_known: app.good_credentials.0.get(&presented).await.is_some(),
            from: peer.map(|peer| address(peer.0.ip(), headers, app.callers.trusted_proxies)),
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
        let is_unknown = matches!(outcome, Err(Failure::Problem(p)) if p.status == 401);
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

/// Who is behind a connection: its other end, or behind so many trusted proxies the address that
/// the first of them saw. A header of fewer addresses was not made by all of them, and one that
/// cannot be read says nothing: then the connection's end stands for all behind it.
fn address(peer: IpAddr, headers: &HeaderMap, trusted_proxies: usize) -> IpAddr {
    let Some(back) = trusted_proxies.checked_sub(1) else {
        return peer;
    };
    let lines = headers.get_all(FORWARDED_FOR).iter();
    let texts: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    let hops = texts.iter().flat_map(|line| line.split(',')).map(str::trim);
    let hops: Vec<&str> = hops.collect();
    let seen = hops.iter().rev().nth(back).and_then(|text| read(text));
    seen.unwrap_or(peer)
}

/// An address, perhaps with a port.
fn read(text: &str) -> Option<IpAddr> {
    let alone = text.trim_start_matches('[').trim_end_matches(']').parse();
    alone
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|both| both.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, &["203.0.113.9"], "10.0.0.1")]
    #[case(1, &["203.0.113.9"], "203.0.113.9")]
    #[case(1, &["198.51.100.1, 203.0.113.9"], "203.0.113.9")]
    #[case(2, &["198.51.100.1, 203.0.113.9"], "198.51.100.1")]
    #[case(2, &["198.51.100.1", "203.0.113.9"], "198.51.100.1")]
    #[case(3, &["198.51.100.1, 203.0.113.9"], "10.0.0.1")]
    #[case(1, &["unknown"], "10.0.0.1")]
    #[case(1, &[], "10.0.0.1")]
    #[case(1, &["203.0.113.9:4711"], "203.0.113.9")]
    #[case(1, &["[2001:db8::7]:4711"], "2001:db8::7")]
    #[case(1, &["[2001:db8::7]"], "2001:db8::7")]
    fn an_address_is_believed_as_far_as_proxies_are_trusted(
        #[case] trusted: usize,
        #[case] lines: &[&'static str],
        #[case] expected: &str,
    ) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let peer = "10.0.0.1".parse().expect("an address");
        assert_eq!(address(peer, &headers, trusted).to_string(), expected);
    }
}
