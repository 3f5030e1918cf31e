//! Visitor: a browser, known by one cookie, and who is signed in with it. The cookie also proves
//! that a form was filled in on a page of ours.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HOST, ORIGIN};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use cairn_store::rates::network;
use cairn_store::sign_in::SignedIn;
use reqwest::Url;
use subtle::ConstantTimeEq;

use super::super::params::Params;
use crate::actions::Failure;
use crate::app::App;
use crate::auth::secret::{self, Purpose};

/// A browser.
pub struct Visitor {
    secret: String,
    is_new: bool,
    /// Who is signed in with it, and in which tenant.
    pub signed_in: Option<(TenantId, SignedIn)>,
}

impl Visitor {
    /// The browser that sent this request.
    ///
    /// # Errors
    /// If the store is unavailable: nobody is taken for somebody.
    pub async fn of(app: &App, headers: &HeaderMap) -> Result<Self, Failure> {
        let Some(secret) = cookie(headers, name(app)) else {
            return Ok(Self::fresh());
        };
        let hash = Purpose::Browser.hash(&secret);
        let mut tx = app.store.system("pages.find_session").await?;
        let tenant = tx.find_code(hash).await?;
        tx.commit().await?;
        let mut visitor = Self {
            secret,
            is_new: false,
            signed_in: None,
        };
        if let Some(tenant) = tenant {
            let mut tx = app.store.tenant(tenant, "pages.read_session").await?;
            let found = tx.find_browser_session(hash, app.clock.now()).await?;
            tx.commit().await?;
            visitor.signed_in = found.map(|found| (tenant, found));
        }
        Ok(visitor)
    }

    /// A browser that was never here.
    fn fresh() -> Self {
        Self {
            secret: secret::fresh(),
            is_new: true,
            signed_in: None,
        }
    }

    /// What the browser keeps and nobody else knows.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The value that each form of a page holds.
    #[must_use]
    pub fn form(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(Purpose::Form.hash(&self.secret))
    }

    /// Whether a form was filled in on a page that this browser got from us.
    #[must_use]
    pub fn has_sent(&self, headers: &HeaderMap, form: &Params) -> bool {
        let shown = form.get("form").unwrap_or_default();
        let is_ours = self.form().as_bytes().ct_eq(shown.as_bytes());
        !self.is_new && is_from_here(headers) && bool::from(is_ours)
    }

    /// What the browser keeps, if it has nothing yet.
    #[must_use]
    pub fn cookie(&self, app: &App) -> Option<String> {
        self.is_new.then(|| set(app, &self.secret))
    }

    /// Signs a member in; what the browser keeps from now on. Its old cookie is worth nothing to
    /// whoever may have put it there.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn sign_in(
        app: &App,
        tenant: TenantId,
        member: PrincipalId,
    ) -> Result<String, Failure> {
        let fresh = Self::fresh();
        let now = app.clock.now();
        let time = (now, now + limits::BROWSER_SESSION_TIME);
        let hash = Purpose::Browser.hash(&fresh.secret);
        let mut tx = app.store.tenant(tenant, "pages.sign_in").await?;
        tx.insert_browser_session(member, hash, time).await?;
        tx.commit().await?;
        Ok(set(app, &fresh.secret))
    }

    /// Signs whoever is signed in out.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn sign_out(&self, app: &App) -> Result<(), Failure> {
        if let Some((tenant, _)) = &self.signed_in {
            let mut tx = app.store.tenant(*tenant, "pages.sign_out").await?;
            let hash = Purpose::Browser.hash(&self.secret);
            tx.delete_browser_session(hash).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// The cookie's name: browsers take the longer one from us alone, for this host alone, encrypted.
fn name(app: &App) -> &'static str {
    match app.sign_in.address.is_secure() {
        true => "__Host-cairn",
        false => "cairn",
    }
}

fn set(app: &App, secret: &str) -> String {
    let secure = match app.sign_in.address.is_secure() {
        true => "; Secure",
        false => "",
    };
    let age = limits::BROWSER_SESSION_TIME.as_secs();
    let name = name(app);
    format!("{name}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let sent = headers.get_all(COOKIE).iter();
    let sent = sent.filter_map(|value| value.to_str().ok());
    let mut pairs = sent
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let value = pairs.find_map(|(known, value)| (known == name).then_some(value))?;
    secret::has_form(value).then(|| value.to_owned())
}

/// Whether a form comes from a page at the address it is sent to, as far as the browser says.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = headers.get(ORIGIN) else {
        // Only old browsers leave it out; they are held by the value in the form.
        return true;
    };
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| Url::parse(origin).ok());
    let host = text(HOST).and_then(|host| Url::parse(&format!("http://{host}")).ok());
    let (Some(origin), Some(host)) = (origin, host) else {
        return false;
    };
    let same_host = origin.host_str() == host.host_str();
    // Behind a balancer that speaks TLS the port may be known to one of the two alone.
    same_host && (origin.port() == host.port() || origin.scheme() == "https")
}

/// The address under which attempts are counted.
#[must_use]
pub fn counted(address: Option<IpAddr>) -> String {
    address.map_or_else(
        || "unknown".to_owned(),
        |address| network(address).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = axum::http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, value.parse().expect("a value"))
        });
        pairs.collect()
    }

    #[rstest]
    #[case(&[("host", "127.0.0.1:8080")], true)]
    #[case(&[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")], true)]
    #[case(&[("host", "memory.example.com"), ("origin", "https://memory.example.com")], true)]
    #[case(&[("host", "memory.example.com"), ("origin", "https://evil.example")], false)]
    #[case(&[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:9090")], false)]
    #[case(&[("host", "memory.example.com"), ("origin", "null")], false)]
    fn a_form_comes_from_a_page_of_ours(#[case] sent: &[(&str, &str)], #[case] good: bool) {
        assert_eq!(is_from_here(&headers(sent)), good);
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let secret = secret::fresh();
        let sent = format!("a=1; cairn={secret}; b=2");
        assert_eq!(
            cookie(&headers(&[("cookie", &sent)]), "cairn"),
            Some(secret)
        );
        assert_eq!(
            cookie(&headers(&[("cookie", "cairn=short")]), "cairn"),
            None
        );
    }

    #[test]
    fn a_network_is_counted_as_one() {
        let of = |text: &str| counted(Some(text.parse().expect("an address")));
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::5"));
    }
}
