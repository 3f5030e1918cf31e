//! Clients: the programs that ask to be let in. Ours is known; others registered themselves, or
//! say what they are in a document at their own address.

use cairn_domain::limits;
use cairn_store::before_sign_in::KnownClient;
use chrono::{DateTime, Utc};
use reqwest::Url;

use super::document;
use super::error::{OAuthError, Refusal};
use super::page::visitor::counted;
use crate::app::App;
use crate::http::peer::Peer;
use crate::rates::take_stranger;

/// The id of the client that comes with this service.
pub const OURS: &str = "cairn";
/// What pages call it.
const OUR_NAME: &str = "cairn, the command line";

/// Addresses of these kinds run or show something instead of leading to a program.
const NO_REDIRECT: [&str; 10] = [
    "javascript",
    "data",
    "file",
    "vbscript",
    "about",
    "blob",
    "ftp",
    "ws",
    "wss",
    "view-source",
];

/// A program that may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its id.
    pub id: String,
    /// What it calls itself.
    pub name: String,
    /// Where codes may be sent.
    pub redirect_uris: Vec<String>,
}

impl Client {
    /// The program of this id, which somebody names.
    ///
    /// # Errors
    /// `invalid_client` if there is none, or its document cannot be had or says something else;
    /// 429 if too many documents were to be fetched for the same address.
    pub async fn find(app: &App, peer: Peer, id: &str) -> Result<Self, Refusal> {
        if id == OURS {
            return Ok(Self {
                id: id.to_owned(),
                name: OUR_NAME.to_owned(),
                redirect_uris: Vec::new(),
            });
        }
        if id.len() > limits::CLIENT_ADDRESS_BYTES {
            return Err(unknown().into());
        }
        let now = app.clock.now();
        let mut tx = app.store.system("oauth.find_client").await?;
        let known = tx.find_client(id, now).await?;
        tx.commit().await?;
        let known = match known {
            Some(known) => known,
            None if id.contains(':') => fetch(app, peer, id, now).await?,
            None => return Err(unknown().into()),
        };
        Ok(Self {
            id: id.to_owned(),
            name: known.name,
            redirect_uris: known.redirect_uris,
        })
    }

    /// Where a code is to be sent: the address that the program names, exactly as it is known; on
    /// this machine any port will do.
    ///
    /// # Errors
    /// `invalid_request` for an address that is not the program's.
    pub fn redirect(&self, named: Option<&str>) -> Result<String, OAuthError> {
        let odd = |what: &str| OAuthError::invalid_request(format!("redirect_uri {what}"));
        match (named, self.redirect_uris.as_slice()) {
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(odd("is missing")),
            (Some(named), known) => {
                let fits = known.iter().any(|known| is_same(known, named));
                fits.then(|| named.to_owned())
                    .ok_or_else(|| odd("is not one of this program's"))
            }
        }
    }
}

/// Counts what somebody begins who has no credential.
///
/// # Errors
/// 429 if there was too much of it from their address.
pub async fn admit(app: &App, peer: Peer) -> Result<(), OAuthError> {
    let why = "too many programs and devices from this address";
    let admitted = take_stranger(app, peer).await;
    admitted.map_err(|wait| OAuthError::too_fast(why, wait))
}

/// Reads what a program says of itself, and keeps a copy.
async fn fetch(
    app: &App,
    peer: Peer,
    id: &str,
    now: DateTime<Utc>,
) -> Result<KnownClient, Refusal> {
    admit(app, peer).await?;
    let document = document::fetch(id).await?;
    let mut tx = app.store.system("oauth.keep_document").await?;
    let until = now + limits::CLIENT_DOCUMENT_AGE;
    tx.put_client(id, &document, &counted(peer.0), (now, Some(until)))
        .await?;
    tx.commit().await?;
    Ok(document)
}

fn unknown() -> OAuthError {
    OAuthError::new("invalid_client", "no program of this client_id is known")
}

/// Checks addresses to which a program wants codes to be sent.
///
/// # Errors
/// `invalid_redirect_uri` says which one cannot be.
pub fn check_redirects(uris: &[String]) -> Result<(), OAuthError> {
    let odd = |what: String| OAuthError::new("invalid_redirect_uri", what);
    if uris.is_empty() || uris.len() > limits::REDIRECTS {
        return Err(odd(format!("1 to {} redirect_uris", limits::REDIRECTS)));
    }
    for uri in uris {
        if !can_be_redirect(uri) {
            let allowed =
                "https, http on this machine, or a scheme of the program's own; no fragment";
            return Err(odd(format!("{uri:?}: {allowed}")));
        }
    }
    Ok(())
}

fn can_be_redirect(uri: &str) -> bool {
    if uri.len() > limits::CLIENT_ADDRESS_BYTES {
        return false;
    }
    let Ok(url) = Url::parse(uri) else {
        return false;
    };
    let is_plain =
        url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    let fits = match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(&url),
        other => !NO_REDIRECT.contains(&other),
    };
    is_plain && fits
}

/// Whether a program on the person's own machine is meant: anybody can run one there.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"))
}

fn is_same(known: &str, named: &str) -> bool {
    if known == named {
        return true;
    }
    let (Ok(mut known), Ok(mut named)) = (Url::parse(known), Url::parse(named)) else {
        return false;
    };
    let both = known.scheme() == "http" && is_loopback(&known) && is_loopback(&named);
    // The port is what such a program gets from the system, anew each time.
    both && known.set_port(None).is_ok() && named.set_port(None).is_ok() && known == named
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn client(uris: &[&str]) -> Client {
        Client {
            id: "x".to_owned(),
            name: "X".to_owned(),
            redirect_uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
        }
    }

    #[rstest]
    #[case("https://app.example.com/cb", "https://app.example.com/cb", true)]
    #[case("https://app.example.com/cb", "https://app.example.com/cb/", false)]
    #[case("https://app.example.com/cb", "https://app.example.com:8443/cb", false)]
    #[case("https://app.example.com/cb", "https://app.example.com/cb?a=1", false)]
    #[case("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb", true)]
    #[case("http://localhost:3000/cb", "http://localhost:5555/cb", true)]
    #[case("http://localhost/cb", "http://127.0.0.1:5555/cb", false)]
    #[case("http://127.0.0.1/cb", "http://127.0.0.1:5555/other", false)]
    #[case("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb", false)]
    #[case("http://127.0.0.1/cb", "http://evil@127.0.0.1/cb", false)]
    #[case("cursor://anysphere/cb", "cursor://anysphere/cb", true)]
    fn an_address_fits_exactly_but_for_a_port_on_this_machine(
        #[case] known: &str,
        #[case] named: &str,
        #[case] fits: bool,
    ) {
        assert_eq!(client(&[known]).redirect(Some(named)).is_ok(), fits);
    }

    #[test]
    fn an_address_may_be_left_out_where_there_is_one() {
        assert!(client(&["https://a.example/cb"]).redirect(None).is_ok());
        assert!(
            client(&["https://a.example/cb", "https://b.example/cb"])
                .redirect(None)
                .is_err()
        );
    }

    #[rstest]
    #[case("https://app.example.com/cb", true)]
    #[case("http://127.0.0.1:3000/cb", true)]
    #[case("http://[::1]/cb", true)]
    #[case("vscode://host/cb", true)]
    #[case("http://app.example.com/cb", false)]
    #[case("https://app.example.com/cb#x", false)]
    #[case("https://u:p@app.example.com/cb", false)]
    #[case("javascript:alert(1)", false)]
    #[case("data:text/html,x", false)]
    #[case("/cb", false)]
    fn what_shows_or_runs_something_is_no_address(#[case] uri: &str, #[case] good: bool) {
        assert_eq!(check_redirects(&[uri.to_owned()]).is_ok(), good);
    }
}
