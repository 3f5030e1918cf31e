//! Which hosts and sites may call: a page in a browser must not reach a service on loopback by a
//! name of its own (DNS rebinding).

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName};
use cairn_wire::{Code, Problem};

use crate::app::Door;

/// Stands for a value that is neither a host nor an origin.
const NO_VALUE: &str = "\u{fffd}";

/// Refuses names and origins that are not configured.
///
/// # Errors
/// 403 naming the setting.
pub fn check(door: &Door, request: &Request) -> Result<(), Problem> {
    admit(
        door,
        host(request).as_deref(),
        only(request.headers(), &ORIGIN),
    )
}

/// Refuses names that are not configured, whatever the origin: for pages that look at it themselves.
///
/// # Errors
/// 403 naming the setting.
pub fn check_host(door: &Door, request: &Request) -> Result<(), Problem> {
    admit(door, host(request).as_deref(), None)
}

fn host(request: &Request) -> Option<String> {
    let host = request.uri().authority().map(ToString::to_string);
    host.or_else(|| only(request.headers(), &HOST).map(str::to_owned))
}

/// The value of a header. One that is no text, or that is sent twice, reads as one that no
/// setting can allow: another server on the way might have looked at the other one.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().unwrap_or(NO_VALUE);
    Some(if values.next().is_some() {
        NO_VALUE
    } else {
        first
    })
}

fn admit(door: &Door, host: Option<&str>, origin: Option<&str>) -> Result<(), Problem> {
    let named = host.and_then(|host| host.parse::<Authority>().ok());
    let named = named
        .as_ref()
        .filter(|authority| !authority.as_str().contains('@'))
        .map(|authority| authority.host().to_ascii_lowercase());
    if !named.is_some_and(|named| door.hosts.contains(&named)) {
        let detail = "this host name is not in CAIRN_ALLOWED_HOSTS";
        return Err(Problem::new(Code::HostNotAllowed, detail));
    }
    match origin {
        Some(origin) if !is_known_origin(door, origin) => {
            let detail = "this origin is not in CAIRN_ALLOWED_ORIGINS";
            Err(Problem::new(Code::OriginNotAllowed, detail))
        }
        _ => Ok(()),
    }
}

fn is_known_origin(door: &Door, origin: &str) -> bool {
    door.origins
        .iter()
        .any(|known| known.eq_ignore_ascii_case(origin))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn door() -> Door {
        Door {
            hosts: vec!["memory.example.com".to_owned(), "[::1]".to_owned()],
            origins: vec!["https://memory.example.com".to_owned()],
        }
    }

    #[rstest]
    #[case("memory.example.com", None)]
    #[case("memory.example.com:443", None)]
    #[case("MEMORY.example.com", Some("https://memory.example.com"))]
    #[case("[::1]:8080", None)]
    fn c048_configured_names_come_in_with_and_without_port(
        #[case] host: &str,
        #[case] origin: Option<&str>,
    ) {
        assert_eq!(admit(&door(), Some(host), origin), Ok(()));
    }

    #[rstest]
    #[case(Some("evil.example"), None, Code::HostNotAllowed)]
    #[case(Some("memory.example.com.evil.example"), None, Code::HostNotAllowed)]
    #[case(None, None, Code::HostNotAllowed)]
    #[case(Some("evil@memory.example.com"), None, Code::HostNotAllowed)]
    #[case(Some(NO_VALUE), None, Code::HostNotAllowed)]
    #[case(Some("memory.example.com"), Some(NO_VALUE), Code::OriginNotAllowed)]
    #[case(
        Some("memory.example.com"),
        Some("https://evil.example"),
        Code::OriginNotAllowed
    )]
    #[case(Some("memory.example.com"), Some("null"), Code::OriginNotAllowed)]
    fn c048_others_are_told_the_setting(
        #[case] host: Option<&str>,
        #[case] origin: Option<&str>,
        #[case] code: Code,
    ) {
        let problem = admit(&door(), host, origin).expect_err("refused");
        assert_eq!(problem.code, code);
        assert!(problem.detail.expect("a detail").contains("CAIRN_ALLOWED_"));
    }
}
