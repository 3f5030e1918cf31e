//! Peer: the address that a request comes from, as far as it can be told.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

/// Set by the balancer that stands before us.
const FORWARDED: &str = "x-forwarded-for";

/// The other end of the connection; put into each request by the server.
#[derive(Clone, Copy, Debug)]
pub struct Connected(pub IpAddr);

/// Who calls: the other end of the connection, or whom a balancer on this machine or network
/// names as the last before itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Option<IpAddr>);

impl Peer {
    fn of(connected: Option<IpAddr>, headers: &HeaderMap) -> Self {
        let Some(address) = connected.map(|address| address.to_canonical()) else {
            return Self(None);
        };
        let named = headers.get_all(FORWARDED).iter().next_back();
        let named = named.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        let named = named.and_then(|text| text.trim().parse::<IpAddr>().ok());
        Self(match named {
            Some(named) if is_near(address) => Some(named),
            _ => Some(address),
        })
    }
}

/// Whether a balancer may stand there.
fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || (ip.segments()[0] & 0xfe00) == 0xfc00,
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let connected = parts.extensions.get::<Connected>();
        Ok(Self::of(
            connected.map(|connected| connected.0),
            &parts.headers,
        ))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("203.0.113.9", &[], "203.0.113.9")]
    #[case("203.0.113.9", &["198.51.100.7"], "203.0.113.9")]
    #[case("10.0.0.2", &["198.51.100.7"], "198.51.100.7")]
    #[case("127.0.0.1", &["192.0.2.1, 198.51.100.7"], "198.51.100.7")]
    #[case("127.0.0.1", &["192.0.2.1", "198.51.100.7"], "198.51.100.7")]
    #[case("127.0.0.1", &["nonsense"], "127.0.0.1")]
    #[case("::ffff:10.0.0.2", &["2001:db8::1"], "2001:db8::1")]
    fn only_a_balancer_nearby_says_who_calls(
        #[case] connected: &str,
        #[case] named: &[&str],
        #[case] peer: &str,
    ) {
        let mut headers = HeaderMap::new();
        for named in named {
            headers.append(FORWARDED, named.parse().expect("a value"));
        }
        let of = Peer::of(connected.parse().ok(), &headers);
        assert_eq!(of, Peer(peer.parse().ok()));
    }
}
