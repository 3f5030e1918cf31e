//! Sign-in at the team's identity provider: the code flow of OpenID Connect, with PKCE and a nonce.
//! What a step needs to know of the one before is worked out again from the browser's cookie, so
//! that nothing is kept and any replica takes the next step.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreIdTokenClaims, CoreProviderMetadata,
};
use openidconnect::{
    AuthorizationCode, ClientId, ClientSecret, CsrfToken, HttpRequest, HttpResponse, IssuerUrl,
    Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::choose;
use super::directory::{self, Entrance};
use super::page::visitor::Visitor;
use super::page::{Page, lead, sign_in};
use super::params::{Form, Query};
use crate::actions::Failure;
use crate::app::App;
use crate::auth::secret;
use crate::config::OidcSettings;

/// Where the provider leads the browser back to.
const CALLBACK: &str = "/oauth/oidc/callback";
/// The most that is read of an answer of the provider.
const ANSWER_BYTES: usize = 1024 * 1024;

/// The provider, as the settings name it.
pub struct Oidc {
    settings: OidcSettings,
    name: String,
    http: reqwest::Client,
}

/// Why the provider was of no use.
#[derive(Debug, thiserror::Error)]
enum Away {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error(transparent)]
    Form(#[from] openidconnect::http::Error),
    #[error("the answer is too long")]
    Long,
}

impl Oidc {
    /// A provider; it is not called before somebody signs in.
    ///
    /// # Errors
    /// If this machine cannot make connections, or the issuer is no address.
    pub fn new(settings: OidcSettings) -> anyhow::Result<Self> {
        // Fails only if it was done before.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(limits::IDENTITY_PROVIDER_TIME)
            .build()?;
        let issuer = reqwest::Url::parse(&settings.issuer)?;
        Ok(Self {
            name: issuer.host_str().unwrap_or_default().to_owned(),
            settings,
            http,
        })
    }

    /// What pages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The domains of e-mail addresses that are let in; without any, those of members.
    pub(super) fn domains(&self) -> &[String] {
        &self.settings.domains
    }

    async fn call(http: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, Away> {
        let mut response = http.execute(request.try_into()?).await?;
        let mut built = openidconnect::http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            built = built.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await? {
            if body.len() + part.len() > ANSWER_BYTES {
                return Err(Away::Long);
            }
            body.extend_from_slice(&part);
        }
        Ok(built.body(body)?)
    }

    async fn discover(&self) -> Result<CoreProviderMetadata, String> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone()).map_err(|e| e.to_string())?;
        let http = |request| Self::call(self.http.clone(), request);
        let found = CoreProviderMetadata::discover_async(issuer, &http).await;
        found.map_err(|error| format!("discovery: {error:?}"))
    }

    /// Where the browser goes to sign in.
    async fn address(&self, app: &App, flow: &Flow) -> Result<String, String> {
        let client = CoreClient::from_provider_metadata(
            self.discover().await?,
            ClientId::new(self.settings.client_id.clone()),
            self.secret(),
        )
        .set_redirect_uri(redirect(app)?);
        let (state, nonce) = (flow.state.clone(), flow.nonce());
        let (url, _, _) = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                || CsrfToken::new(state),
                || Nonce::new(nonce),
            )
            .add_scope(Scope::new("email".to_owned()))
            .add_scope(Scope::new("profile".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(
                &flow.verifier(),
            ))
            .url();
        Ok(url.to_string())
    }

    /// The e-mail address that the provider has verified, for a code.
    async fn email(&self, app: &App, flow: &Flow, code: &str) -> Result<String, String> {
        let client = CoreClient::from_provider_metadata(
            self.discover().await?,
            ClientId::new(self.settings.client_id.clone()),
            self.secret(),
        )
        .set_redirect_uri(redirect(app)?);
        let http = |request| Self::call(self.http.clone(), request);
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned()));
        let request = request.map_err(|error| error.to_string())?;
        let request = request.set_pkce_verifier(flow.verifier());
        let tokens = request.request_async(&http).await;
        let tokens = tokens.map_err(|error| format!("tokens: {error:?}"))?;
        let now = app.clock.now();
        let verifier = client.id_token_verifier().set_time_fn(move || now);
        let id = tokens.extra_fields().id_token().ok_or("no id token")?;
        let claims: &CoreIdTokenClaims = id
            .claims(&verifier, &Nonce::new(flow.nonce()))
            .map_err(|error| format!("the id token: {error:?}"))?;
        match (claims.email(), claims.email_verified()) {
            (Some(email), Some(true)) => Ok(email.to_string()),
            _ => Err("no verified e-mail address".to_owned()),
        }
    }

    fn secret(&self) -> Option<ClientSecret> {
        let secret = self.settings.client_secret.as_ref()?;
        Some(ClientSecret::new(secret.reveal().to_owned()))
    }
}

fn redirect(app: &App) -> Result<RedirectUrl, String> {
    RedirectUrl::new(app.sign_in.address.at(CALLBACK)).map_err(|error| error.to_string())
}

/// One sign-in under way: what the provider is given, all of it bound to one browser.
struct Flow {
    state: String,
    cookie: String,
}

impl Flow {
    fn begin(visitor: &Visitor, next: &str) -> Self {
        let cookie = visitor.secret().to_owned();
        let open = format!(
            "{}.{}",
            secret::fresh(),
            BASE64_URL_SAFE_NO_PAD.encode(next)
        );
        let check = derived(&cookie, "state", &open);
        Self {
            state: format!("{open}.{check}"),
            cookie,
        }
    }

    /// The flow that the provider answers, and where it leads on; none if this browser has not
    /// begun it.
    fn resume(visitor: &Visitor, state: &str) -> Option<(Self, String)> {
        let cookie = visitor.secret().to_owned();
        let (open, check) = state.rsplit_once('.')?;
        let wanted = derived(&cookie, "state", open);
        bool::from(wanted.as_bytes().ct_eq(check.as_bytes())).then_some(())?;
        let (_, next) = open.split_once('.')?;
        let next = BASE64_URL_SAFE_NO_PAD.decode(next).ok()?;
        let flow = Self {
            state: state.to_owned(),
            cookie,
        };
        Some((flow, String::from_utf8(next).ok()?))
    }

    fn nonce(&self) -> String {
        derived(&self.cookie, "nonce", &self.state)
    }

    fn verifier(&self) -> PkceCodeVerifier {
        PkceCodeVerifier::new(derived(&self.cookie, "verifier", &self.state))
    }
}

/// 43 characters that only who knows the cookie can work out.
fn derived(cookie: &str, what: &str, of: &str) -> String {
    let mut hasher = Sha256::new();
    for part in ["cairn:oidc:v1", what, cookie, of] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    BASE64_URL_SAFE_NO_PAD.encode(hasher.finalize())
}

/// Sends a browser to the provider. A form and not a link: nobody else's page may begin this.
pub async fn start(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let next = form.get("next").unwrap_or_default().to_owned();
    let (Some(oidc), true) = (&app.sign_in.oidc, visitor.has_sent(&headers, &form)) else {
        let page = sign_in::page(&app, &visitor, &next, None)?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    };
    let flow = Flow::begin(&visitor, sign_in::safe(&next));
    match oidc.address(&app, &flow).await {
        Ok(address) => lead(&address, None),
        Err(why) => away(&app, &visitor, &next, &why),
    }
}

/// Takes a browser back from the provider.
pub async fn callback(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(query): Query,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let state = query.get("state").unwrap_or_default();
    let resumed = Flow::resume(&visitor, state);
    let (Some(oidc), Some((flow, next))) = (&app.sign_in.oidc, resumed) else {
        let told = "This sign-in was begun in another browser, or too long ago. Try again.";
        let page = sign_in::page(&app, &visitor, "", Some(told))?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    };
    let is_theirs = query
        .get("iss")
        .map_or(true, |iss| iss == oidc.settings.issuer);
    let (Ok(code), true) = (query.get("code"), is_theirs) else {
        let why = query.get("error").unwrap_or("no code").to_owned();
        return away(&app, &visitor, &next, &why);
    };
    let email = match oidc.email(&app, &flow, code).await {
        Ok(email) => email,
        Err(why) => return away(&app, &visitor, &next, &why),
    };
    match directory::enter(&app, &email, oidc.domains()).await? {
        Entrance::Members(members) => match members.as_slice() {
            [one] => enter(&app, &visitor, (one.tenant, one.member), &next).await,
            several => Ok(choose::page(&app, &visitor, &email, several, &next)?.into_response()),
        },
        Entrance::New(tenant, member) => enter(&app, &visitor, (tenant, member), &next).await,
        Entrance::Refused(why) => refuse(&email, why),
    }
}

/// Signs the browser in and leads it on.
pub(super) async fn enter(
    app: &App,
    visitor: &Visitor,
    (tenant, member): (TenantId, PrincipalId),
    next: &str,
) -> Result<Response, Failure> {
    visitor.sign_out(app).await?;
    let cookie = Visitor::sign_in(app, tenant, member).await?;
    lead(&sign_in::outside(app, next), Some(&cookie))
}

/// Tells somebody whom the provider has signed in that they are not let in here.
pub(super) fn refuse(email: &str, why: &str) -> Result<Response, Failure> {
    let text = format!("{email} {why}");
    let page = Page::message(StatusCode::FORBIDDEN, "You are not let in", &text)?;
    Ok(page.into_response())
}

/// What somebody is shown whom the provider did not sign in.
fn away(app: &App, visitor: &Visitor, next: &str, why: &str) -> Result<Response, Failure> {
    tracing::warn!(why, "the identity provider signed nobody in");
    let told = "The identity provider did not sign you in. Try again, or use a code.";
    let page = sign_in::page(app, visitor, next, Some(told))?;
    Ok(page.status(StatusCode::BAD_GATEWAY).into_response())
}
