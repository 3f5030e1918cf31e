//! Peer: the address that a request comes from, as far as it can be told.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};

use crate::app::App;

/// Where addresses stand that proxies have seen.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The other end of the connection; put into each request by the server.
#[derive(Clone, Copy, Debug)]
pub struct Connected(pub IpAddr);

/// Who calls: the other end of the connection, or whom the proxies named that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Option<IpAddr>);

impl Peer {
    /// Who sent a request.
    #[must_use]
    pub fn of_request(app: &App, request: &Request) -> Self {
        Self::of(app, request.extensions(), request.headers())
    }

    fn of(app: &App, extensions: &Extensions, headers: &HeaderMap) -> Self {
        let connected = extensions.get::<Connected>();
        let trusted = app.callers.trusted_proxies;
        let seen = |connected: &Connected| address(connected.0.to_canonical(), headers, trusted);
        Self(connected.map(seen))
    }
}

impl FromRequestParts<Arc<App>> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self::of(app, &parts.extensions, &parts.headers))
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
