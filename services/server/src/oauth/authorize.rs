//! `GET /oauth/authorize`: a program sends a member here to be let in, and gets a code for it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_domain::scope::Scopes;
use cairn_store::grants::Approval;
use cairn_store::sign_in::SignedIn;
use reqwest::Url;

use super::client::{Client, is_loopback};
use super::error::{OAuthError, Refusal, later};
use super::page::visitor::Visitor;
use super::page::{Page, in_words, lead, sign_in};
use super::params::{Form, Params};
use crate::actions::Failure;
use crate::app::App;
use crate::auth::secret::{self, Purpose};
use crate::http::peer::Peer;

/// What a program asks for.
struct Ask {
    client: Client,
    redirect: String,
    state: Option<String>,
    challenge: String,
    scopes: Scopes,
    resource: String,
}

/// Why nobody is asked.
enum Wrong {
    /// It cannot be told where to send an answer.
    Here(OAuthError),
    /// The program is told at its address.
    There(String, Option<String>, OAuthError),
    /// The service is at fault.
    Failure(Failure),
}

impl From<OAuthError> for Wrong {
    fn from(error: OAuthError) -> Self {
        Self::Here(error)
    }
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OAuth(error) => Self::Here(error),
            Refusal::Failure(failure) => Self::Failure(failure),
        }
    }
}

impl Ask {
    async fn read(app: &App, peer: Peer, params: &Params) -> Result<Self, Wrong> {
        let client = Client::find(app, peer, params.get("client_id")?).await?;
        let redirect = client.redirect(params.find("redirect_uri")?)?;
        let state = params.find("state")?.map(str::to_owned);
        match Self::rest(app, params) {
            Ok((challenge, scopes, resource)) => Ok(Self {
                client,
                redirect,
                state,
                challenge,
                scopes,
                resource,
            }),
            Err(error) => Err(Wrong::There(redirect, state, error)),
        }
    }

    fn rest(app: &App, params: &Params) -> Result<(String, Scopes, String), OAuthError> {
        let address = &app.sign_in.address;
        if params.get("response_type")? != "code" {
            let wanted = "response_type=code";
            return Err(OAuthError::new("unsupported_response_type", wanted));
        }
        if params
            .find("response_mode")?
            .is_some_and(|mode| mode != "query")
        {
            return Err(OAuthError::invalid_request("response_mode=query"));
        }
        let challenge = params.get("code_challenge")?;
        // The hash of a verifier is 43 characters of base64url.
        if params.find("code_challenge_method")? != Some("S256") || !secret::has_form(challenge) {
            let wanted = "PKCE: code_challenge with code_challenge_method=S256";
            return Err(OAuthError::invalid_request(wanted));
        }
        let resource = params.resource(address)?;
        let resource = resource.unwrap_or_else(|| address.url().to_owned());
        Ok((challenge.to_owned(), params.scopes()?, resource))
    }

    /// Where the browser goes with an answer.
    fn answer(&self, app: &App, pairs: &[(&str, &str)]) -> Result<Response, Failure> {
        back(app, &self.redirect, self.state.as_deref(), pairs)
    }
}

#[derive(Template)]
#[template(path = "consent.html")]
struct Consent<'a> {
    base: &'a str,
    form: String,
    action: String,
    next: &'a str,
    client: &'a str,
    client_host: Option<String>,
    redirect_host: String,
    is_loopback: bool,
    handle: &'a str,
    tenant: &'a str,
    scopes: Vec<&'static str>,
}

/// Asks the member who is signed in whether a program may come in.
#[utoipa::path(get, path = "/oauth/authorize", tag = "sign-in", params(
    ("client_id" = String, Query), ("redirect_uri" = Option<String>, Query),
    ("response_type" = String, Query), ("code_challenge" = String, Query),
    ("code_challenge_method" = String, Query), ("scope" = Option<String>, Query),
    ("state" = Option<String>, Query), ("resource" = Option<String>, Query)),
    responses((status = 200, description = "A page", content_type = "text/html"),
        (status = 303, description = "Back to the program")))]
pub async fn show(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = query.unwrap_or_default();
    let ask = match Ask::read(&app, peer, &Params::parse(&query)).await {
        Ok(ask) => ask,
        Err(wrong) => return refuse(&app, wrong),
    };
    let visitor = Visitor::of(&app, &headers).await?;
    let here = format!("/oauth/authorize?{query}");
    match &visitor.signed_in {
        Some((_, member)) => {
            let page = consent(&app, &ask, &visitor, member, &here)?;
            Ok(page.into_response())
        }
        None => Ok(sign_in::page(&app, &visitor, &here, None)?.into_response()),
    }
}

fn consent(
    app: &App,
    ask: &Ask,
    visitor: &Visitor,
    member: &SignedIn,
    here: &str,
) -> Result<Page, Failure> {
    let redirect = Url::parse(&ask.redirect);
    let redirect = redirect.map_err(|error| Failure::fault(format!("a redirect: {error}")))?;
    let base = app.sign_in.address.base_path();
    let id_host = Url::parse(&ask.client.id).ok();
    let id_host = id_host.and_then(|url| url.host_str().map(str::to_owned));
    let page = Page::of(&Consent {
        base,
        form: visitor.form(),
        action: format!("{base}{here}"),
        next: here,
        client: &ask.client.name,
        client_host: id_host,
        redirect_host: match redirect.host_str() {
            Some(host) => host.to_owned(),
            None => format!("{}: on this machine", redirect.scheme()),
        },
        is_loopback: is_loopback(&redirect),
        handle: &member.handle,
        tenant: &member.tenant_name,
        scopes: in_words(ask.scopes.and(member.role.scopes())),
    })?;
    Ok(page.leads_to(&redirect))
}

/// Takes the member's answer.
pub async fn decide(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    Form(form): Form,
) -> Result<Response, Failure> {
    let query = query.unwrap_or_default();
    let ask = match Ask::read(&app, peer, &Params::parse(&query)).await {
        Ok(ask) => ask,
        Err(wrong) => return refuse(&app, wrong),
    };
    let visitor = Visitor::of(&app, &headers).await?;
    let (true, Some((tenant, member))) = (visitor.has_sent(&headers, &form), &visitor.signed_in)
    else {
        // Whoever it was is asked anew.
        let page = sign_in::page(&app, &visitor, &format!("/oauth/authorize?{query}"), None)?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    };
    if form.get("decision") != Ok("allow") {
        return ask.answer(&app, &[("error", "access_denied")]);
    }
    let scopes = ask.scopes.and(member.role.scopes());
    if scopes == Scopes::default() {
        let why = "the member's role allows nothing of what is asked for";
        return ask.answer(
            &app,
            &[("error", "access_denied"), ("error_description", why)],
        );
    }
    let code = approve(&app, &ask, (*tenant, member), scopes).await?;
    ask.answer(&app, &[("code", &code)])
}

/// Keeps the member's yes; the code for it.
async fn approve(
    app: &App,
    ask: &Ask,
    (tenant, member): (TenantId, &SignedIn),
    scopes: Scopes,
) -> Result<String, Failure> {
    let (code, now) = (secret::fresh(), app.clock.now());
    let mut tx = app.store.tenant(tenant, "oauth.approve").await?;
    tx.insert_authorization(&Approval {
        code_hash: Purpose::Approval.hash(&code),
        member: member.member,
        client_id: &ask.client.id,
        client_name: &ask.client.name,
        redirect_uri: &ask.redirect,
        challenge: &ask.challenge,
        scopes,
        resource: &ask.resource,
        now,
        expires_at: now + limits::AUTHORIZATION_CODE_TIME,
    })
    .await?;
    tx.commit().await?;
    let mut tx = app.store.system("oauth.use_client").await?;
    tx.use_client(&ask.client.id, now).await?;
    tx.commit().await?;
    Ok(code)
}

fn refuse(app: &App, wrong: Wrong) -> Result<Response, Failure> {
    match wrong {
        Wrong::Failure(failure) => Err(failure),
        Wrong::Here(error) => {
            let text = format!(
                "The program that sent you here is not let in: {}.",
                error.error_description
            );
            let status = match error.retry_after {
                None => StatusCode::BAD_REQUEST,
                Some(_) => StatusCode::TOO_MANY_REQUESTS,
            };
            let page = Page::message(status, "This does not work", &text)?;
            Ok(later(page, error.retry_after))
        }
        Wrong::There(redirect, state, error) => {
            let pairs = [
                ("error", error.error.as_str()),
                ("error_description", error.error_description.as_str()),
            ];
            back(app, &redirect, state.as_deref(), &pairs)
        }
    }
}

/// Leads the browser back to the program, and says who answers (RFC 9207).
fn back(
    app: &App,
    redirect: &str,
    state: Option<&str>,
    pairs: &[(&str, &str)],
) -> Result<Response, Failure> {
    let url = Url::parse(redirect);
    let mut url = url.map_err(|error| Failure::fault(format!("a redirect: {error}")))?;
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(pairs);
        if let Some(state) = state {
            query.append_pair("state", state);
        }
        query.append_pair("iss", app.sign_in.address.url());
    }
    lead(url.as_str(), None)
}
