//! An identity provider of a test: real HTTP, real signed tokens, as strict as a real one about
//! codes, verifiers, redirects and its client's secret.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use cairn_server::auth::token::TokenKeys;
use cairn_server::config::{OidcSettings, Secret};
use chrono::Utc;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

const CLIENT: &str = "cairn-at-acme";
const SECRET: &str = "a secret of the client";
/// The head of a PKCS#8 document around a seed.
const HEAD: [u8; 16] = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];
const SEED: [u8; 32] = [7; 32];

/// What was agreed with a browser, by its code.
struct Agreed {
    challenge: String,
    redirect: String,
    claims: Value,
}

#[derive(Default)]
struct Inner {
    issuer: String,
    codes: HashMap<String, Agreed>,
    /// Signs with another key than the published one.
    forges: bool,
}

/// The provider.
#[derive(Clone)]
pub struct Provider(Arc<Mutex<Inner>>);

impl Provider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let issuer = format!("http://{}", listener.local_addr().expect("bound"));
        let provider = Self(Arc::new(Mutex::new(Inner {
            issuer,
            ..Inner::default()
        })));
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(keys))
            .route("/token", post(token))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        provider
    }

    pub fn settings(&self, domains: &[&str]) -> OidcSettings {
        OidcSettings {
            issuer: self.0.lock().expect("whole").issuer.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(Secret::new(SECRET)),
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        }
    }

    pub fn forge(&self, forges: bool) {
        self.0.lock().expect("whole").forges = forges;
    }

    /// What the provider does when a browser comes with `address` and somebody signs in whose
    /// token says `changes` beside the usual; where the browser goes then.
    pub fn signs_in(&self, address: &str, changes: Value) -> String {
        let url = Url::parse(address).expect("an address");
        let pairs: HashMap<_, _> = url.query_pairs().into_owned().collect();
        let mut inner = self.0.lock().expect("whole");
        assert_eq!(pairs["client_id"], CLIENT);
        assert_eq!(pairs["response_type"], "code");
        assert_eq!(pairs["code_challenge_method"], "S256");
        assert!(pairs["scope"].split(' ').any(|scope| scope == "email"));
        let now = Utc::now().timestamp();
        let mut claims = json!({"iss": inner.issuer, "aud": CLIENT, "sub": "u1", "iat": now,
            "exp": now + 300, "nonce": pairs["nonce"], "email": "ben@acme.example",
            "email_verified": true});
        let all = claims.as_object_mut().expect("an object");
        all.extend(changes.as_object().expect("an object").clone());
        let code = format!("code{}", inner.codes.len());
        let agreed = Agreed {
            challenge: pairs["code_challenge"].clone(),
            redirect: pairs["redirect_uri"].clone(),
            claims,
        };
        inner.codes.insert(code.clone(), agreed);
        let mut to = Url::parse(&pairs["redirect_uri"]).expect("an address");
        to.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &pairs["state"]);
        to.to_string()
    }
}

fn ring() -> TokenKeys {
    TokenKeys::parse(&format!("p1:{}", BASE64_STANDARD.encode(SEED))).expect("a ring")
}

async fn discovery(State(provider): State<Provider>) -> Json<Value> {
    let issuer = provider.0.lock().expect("whole").issuer.clone();
    Json(
        json!({"issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA"]}),
    )
}

async fn keys() -> Response {
    Json(ring().public()).into_response()
}

async fn token(State(provider): State<Provider>, headers: HeaderMap, body: String) -> Response {
    let form = Url::parse(&format!("http://form/?{body}")).expect("a form");
    let form: HashMap<_, _> = form.query_pairs().into_owned().collect();
    let encode = |text: &str| text.replace(' ', "+");
    let basic = BASE64_STANDARD.encode(format!("{CLIENT}:{}", encode(SECRET)));
    let shown = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if shown != Some(&format!("Basic {basic}")) {
        return (
            StatusCode::UNAUTHORIZED,
            Json(json!({"error": "invalid_client"})),
        )
            .into_response();
    }
    let mut inner = provider.0.lock().expect("whole");
    let refused = (
        StatusCode::BAD_REQUEST,
        Json(json!({"error": "invalid_grant"})),
    );
    let Some(agreed) = inner.codes.remove(&form["code"]) else {
        return refused.into_response();
    };
    let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
    if hash != agreed.challenge || form["redirect_uri"] != agreed.redirect {
        return refused.into_response();
    }
    let seed = if inner.forges { [8; 32] } else { SEED };
    let key = EncodingKey::from_ed_der(&[HEAD.as_slice(), &seed].concat());
    let head = Header {
        kid: Some("p1".to_owned()),
        ..Header::new(Algorithm::EdDSA)
    };
    let id = jsonwebtoken::encode(&head, &agreed.claims, &key).expect("signed");
    Json(json!({"access_token": "theirs", "token_type": "Bearer", "id_token": id})).into_response()
}
