//! Sign-in as programs and people see it: real pages, real tokens, real Postgres.

mod challenges;
mod clients;
mod codes;
mod devices;
mod grants;
mod metadata;
#[cfg(feature = "oidc")]
mod oidc;
mod pages;
#[cfg(feature = "oidc")]
mod provider;
mod refresh;
mod replicas;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cairn_server::app::Clock;
use chrono::{TimeDelta, Utc};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::browser::{Browser, form, location};
use crate::support::{Caller, Reply, TestApp};

/// What a program keeps to itself until it fetches its tokens.
pub const VERIFIER: &str = "a-verifier-of-at-least-43-characters-0123456789";
/// Where the program of a test is answered.
pub const REDIRECT: &str = "http://127.0.0.1:5555/callback";

/// A clock that a test sets forward.
#[derive(Clone, Default)]
pub struct Hands(Arc<AtomicI64>);

impl Hands {
    pub fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.0);
        Clock::of(move || Utc::now() + TimeDelta::seconds(ahead.load(Ordering::SeqCst)))
    }

    pub fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// A service whose clock can be set forward.
pub async fn start() -> (TestApp, Hands) {
    let hands = Hands::default();
    (TestApp::at(None, hands.clock()).await, hands)
}

pub fn challenge() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER.as_bytes()))
}

/// Makes a program known; its id.
pub async fn register(app: &TestApp, redirect: &str) -> String {
    let body = json!({"client_name": "Probe", "redirect_uris": [redirect],
        "token_endpoint_auth_method": "none", "application_type": "native"});
    let known = app.anonymous().post("/oauth/register", body).await;
    assert_eq!(known.status, 201, "{known:?}");
    known.json()["client_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

/// The address to which a program sends a member, with changed or further parameters.
pub fn authorize_path(client: &str, changes: &[(&str, &str)]) -> String {
    let challenge = challenge();
    let mut pairs = vec![
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", "a state"),
    ];
    for (name, value) in changes {
        pairs.retain(|(known, _)| known != name);
        pairs.push((name, value));
    }
    let pairs: Vec<_> = pairs
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    format!("/oauth/authorize?{}", form(&pairs))
}

/// A parameter of the address to which an answer leads.
pub fn led_with(reply: &Reply, name: &str) -> Option<String> {
    let url = Url::parse(&location(reply)).expect("an address");
    let mut pairs = url.query_pairs();
    pairs.find_map(|(known, value)| (known == name).then(|| value.into_owned()))
}

/// Posts a form as a program does.
pub async fn post_form(base: &str, path: &str, fields: &[(&str, &str)]) -> Reply {
    let fields: Vec<_> = fields
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    let caller = Caller::new(base, None);
    let request = caller.request(Method::POST, path);
    let kind = "application/x-www-form-urlencoded";
    caller
        .send(request.header("content-type", kind).body(form(&fields)))
        .await
}

/// Asks for tokens.
pub async fn token(base: &str, fields: &[(&str, &str)]) -> Reply {
    post_form(base, "/oauth/token", fields).await
}

/// The error of a refusal.
pub fn error(reply: &Reply) -> String {
    assert_eq!(reply.headers["cache-control"], "no-store");
    reply.json()["error"].as_str().expect("an error").to_owned()
}

/// A program that `handle` is about to let in: the code for it.
pub async fn code_for(
    app: &TestApp,
    handle: &str,
    client: &str,
    changes: &[(&str, &str)],
) -> String {
    let mut browser = Browser::new(&app.base);
    let path = authorize_path(client, changes);
    let sign_in = app.sign_in_code(handle).await;
    let page = browser.sign_in(&path, &sign_in).await;
    let done = browser.submit(&page, &path, &[("decision", "allow")]).await;
    led_with(&done, "code").unwrap_or_else(|| panic!("{done:?}"))
}

/// Fetches the tokens of a code.
pub async fn fetch(base: &str, client: &str, code: &str) -> Reply {
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    token(base, &fields).await
}

/// A program that was let in.
pub struct LetIn {
    pub client: String,
    pub access: String,
    pub refresh: String,
    pub answer: Value,
}

impl LetIn {
    /// Lets a program in as `handle`.
    pub async fn by(app: &TestApp, handle: &str, changes: &[(&str, &str)]) -> Self {
        let client = register(app, REDIRECT).await;
        let code = code_for(app, handle, &client, changes).await;
        let answer = fetch(&app.base, &client, &code).await.ok();
        Self::of(client, answer)
    }

    pub fn of(client: String, answer: Value) -> Self {
        let text = |name: &str| answer[name].as_str().expect("a text").to_owned();
        Self {
            client,
            access: text("access_token"),
            refresh: text("refresh_token"),
            answer: answer.clone(),
        }
    }

    /// The program as one who calls the service.
    pub fn caller(&self, base: &str) -> Caller {
        Caller::new(base, Some(&self.access)).in_project(crate::support::PROJECT)
    }

    /// Shows a refresh token.
    pub async fn refresh_with(&self, base: &str, refresh: &str) -> Reply {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", &self.client),
            ("refresh_token", refresh),
        ];
        token(base, &fields).await
    }
}
