//! What a program says of itself at its own address, which is its id. Whoever names an id makes
//! this service call an address of their choice, so it calls public ones alone, for a short time,
//! for little text, and follows nowhere.

use std::net::{IpAddr, SocketAddr};

use cairn_domain::limits;
use cairn_store::before_sign_in::KnownClient;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde::Deserialize;

use super::client::check_redirects;
use super::error::OAuthError;

/// The parts of a document that are used.
#[derive(Deserialize)]
struct Document {
    client_id: String,
    client_name: Option<String>,
    redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Fetches and checks the document at an id.
///
/// # Errors
/// `invalid_client` says what is wrong with it.
pub async fn fetch(id: &str) -> Result<KnownClient, OAuthError> {
    let url = check_id(id)?;
    let fetched = async {
        let addresses = resolve(&url).await?;
        let client = pinned(&url, &addresses).https_only(true).build();
        read(client.map_err(|_| refused("cannot be fetched"))?, url).await
    };
    let text = tokio::time::timeout(limits::CLIENT_DOCUMENT_TIME, fetched).await;
    let text = text.map_err(|_| refused("did not arrive in time"))??;
    check(id, &text)
}

/// An id that is an address: https, with a path, nothing that would be lost on the way.
fn check_id(id: &str) -> Result<Url, OAuthError> {
    let url = Url::parse(id).map_err(|_| refused("is no address"))?;
    let is_plain = url.as_str() == id
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if url.scheme() != "https" || url.path() == "/" || !is_plain {
        return Err(refused("must stand at an https address with a path"));
    }
    Ok(url)
}

/// The addresses behind the name, all of which must be public.
async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, OAuthError> {
    let host = url.host_str().ok_or_else(|| refused("names no host"))?;
    let bare = host.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(443);
    let found = tokio::net::lookup_host((bare, port)).await;
    let found: Vec<SocketAddr> = found
        .map_err(|_| refused("names an unknown host"))?
        .collect();
    if found.is_empty() || !found.iter().all(|address| is_public(address.ip())) {
        return Err(refused("is not at a public address"));
    }
    Ok(found)
}

/// A client that calls these addresses whatever the name means by now.
fn pinned(url: &Url, addresses: &[SocketAddr]) -> reqwest::ClientBuilder {
    // Fails only if it was done before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let host = url.host_str().unwrap_or_default();
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .timeout(limits::CLIENT_DOCUMENT_TIME)
        .resolve_to_addrs(host, addresses)
}

async fn read(client: Client, url: Url) -> Result<String, OAuthError> {
    let request = client.get(url).header("accept", "application/json");
    let mut response = request
        .send()
        .await
        .map_err(|_| refused("cannot be fetched"))?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(refused("is not answered with 200"));
    }
    let mut text = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|_| refused("broke off"))? {
        if text.len() + part.len() > limits::CLIENT_DOCUMENT_BYTES {
            return Err(refused("is longer than 64 KiB"));
        }
        text.extend_from_slice(&part);
    }
    String::from_utf8(text).map_err(|_| refused("is not UTF-8"))
}

fn check(id: &str, text: &str) -> Result<KnownClient, OAuthError> {
    let document: Document =
        serde_json::from_str(text).map_err(|_| refused("does not describe a program"))?;
    if document.client_id != id {
        return Err(refused("names another client_id"));
    }
    if document
        .token_endpoint_auth_method
        .is_some_and(|method| method != "none")
    {
        return Err(refused(
            "wants the program to prove itself; only public ones are served",
        ));
    }
    check_redirects(&document.redirect_uris)
        .map_err(|error| OAuthError::new("invalid_client", error.error_description))?;
    let name = document.client_name.unwrap_or_else(|| id.to_owned());
    Ok(KnownClient {
        name: super::page::one_line(&name),
        redirect_uris: document.redirect_uris,
    })
}

fn refused(why: &str) -> OAuthError {
    OAuthError::new(
        "invalid_client",
        format!("the document of this client_id {why}"),
    )
}

/// Whether an address is one of the open network: not this machine, not a private or a shared
/// network, not one that stands for something else.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            !(ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_broadcast()
                || ip.is_documentation()
                || ip.is_multicast()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 192 && b == 88 && c == 99)
                || (a == 198 && (b == 18 || b == 19)))
        }
        IpAddr::V6(ip) => {
            let [a, b, ..] = ip.segments();
            // Only 2000::/3 is given out; within it, tunnels lead to v4 addresses of any kind.
            let is_given_out = (a & 0xe000) == 0x2000;
            let is_tunnel = a == 0x2002 || (a == 0x2001 && b == 0);
            let is_special = a == 0x2001 && (b < 0x200 || b == 0xdb8) || a == 0x3fff;
            is_given_out && !is_tunnel && !is_special
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::response::Redirect;
    use axum::routing::get;
    use rstest::rstest;
    use tokio::net::TcpListener;

    use super::*;

    #[rstest]
    #[case("93.184.216.34", true)]
    #[case("2606:2800:220:1:248:1893:25c8:1946", true)]
    #[case("127.0.0.1", false)]
    #[case("10.1.2.3", false)]
    #[case("172.16.0.1", false)]
    #[case("192.168.1.1", false)]
    #[case("169.254.169.254", false)]
    #[case("100.64.0.1", false)]
    #[case("198.18.0.1", false)]
    #[case("192.0.0.8", false)]
    #[case("0.0.0.0", false)]
    #[case("224.0.0.1", false)]
    #[case("255.255.255.255", false)]
    #[case("::1", false)]
    #[case("::", false)]
    #[case("fe80::1", false)]
    #[case("fd00::1", false)]
    #[case("::ffff:93.184.216.34", false)]
    #[case("64:ff9b::7f00:1", false)]
    #[case("2002:7f00:1::", false)]
    #[case("2001:db8::1", false)]
    fn only_the_open_network_is_called(#[case] address: &str, #[case] public: bool) {
        assert_eq!(is_public(address.parse().expect("an address")), public);
    }

    #[rstest]
    #[case("http://app.example.com/client.json")]
    #[case("https://app.example.com")]
    #[case("https://app.example.com/")]
    #[case("https://u@app.example.com/c")]
    #[case("https://app.example.com/c#x")]
    #[case("https://app.example.com/a/../c")]
    #[case("https://APP.example.com/c")]
    #[case("file:///etc/passwd")]
    #[case("x:y")]
    fn an_id_is_a_plain_address_with_a_path(#[case] id: &str) {
        assert!(check_id(id).is_err());
    }

    #[rstest]
    #[case("https://127.0.0.1/client.json")]
    #[case("https://localhost:8443/client.json")]
    #[case("https://[::1]/client.json")]
    #[case("https://169.254.169.254/client.json")]
    #[case("https://0x7f000001/client.json")]
    #[tokio::test]
    async fn what_leads_inside_is_not_called(#[case] id: &str) {
        let refused = fetch(id).await.expect_err("refused");
        assert_eq!(refused.error, "invalid_client");
    }

    /// A server of documents, and how it is read: with all rules but that of public addresses.
    async fn read_from(path: &str) -> Result<String, OAuthError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let long = "x".repeat(limits::CLIENT_DOCUMENT_BYTES + 1);
        let fits = "x".repeat(limits::CLIENT_DOCUMENT_BYTES);
        let routes = Router::new()
            .route("/long", get(move || async { long }))
            .route("/fits", get(move || async { fits }))
            .route("/elsewhere", get(|| async { Redirect::temporary("/fits") }));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        // The name means something else to everybody but us.
        let named = format!("http://app.example.com:{}{path}", address.port());
        let url = Url::parse(&named).expect("an address");
        let client = pinned(&url, &[address]).build().expect("a client");
        read(client, url).await
    }

    #[tokio::test]
    async fn a_text_is_short_and_stands_where_it_is_asked_for() {
        assert_eq!(
            read_from("/fits").await.expect("read").len(),
            limits::CLIENT_DOCUMENT_BYTES
        );
        for path in ["/long", "/elsewhere", "/missing"] {
            assert!(read_from(path).await.is_err(), "{path}");
        }
    }

    #[test]
    fn a_document_speaks_for_its_own_address() {
        let id = "https://app.example.com/client.json";
        let text = |client_id: &str, more: &str| {
            format!(
                r#"{{"client_id":"{client_id}","client_name":"App","redirect_uris":["http://127.0.0.1/cb"]{more}}}"#
            )
        };
        let good = check(id, &text(id, r#","token_endpoint_auth_method":"none""#));
        assert_eq!(good.expect("good").name, "App");
        for bad in [
            text("https://other.example.com/client.json", ""),
            text(id, r#","token_endpoint_auth_method":"private_key_jwt""#),
            text(id, "").replace("127.0.0.1", "evil.example"),
            "[]".to_owned(),
        ] {
            assert!(check(id, &bad).is_err(), "{bad}");
        }
    }
}
