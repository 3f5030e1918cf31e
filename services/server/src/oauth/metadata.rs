//! Documents by which a program finds its way: what this service is, who gives tokens for it, and
//! with which keys they are signed (RFC 9728, RFC 8414).

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use cairn_domain::Rejection;
use cairn_domain::scope::Scope;
use jsonwebtoken::jwk::JwkSet;
use serde_json::{Value, json};

use crate::actions::Failure;
use crate::app::App;

/// How long a document may be kept.
const KEPT: &str = "max-age=300";

/// What may be asked for by a program that reads the documents.
fn scopes() -> Vec<&'static str> {
    Scope::ALL.map(Scope::name).to_vec()
}

/// The document of the whole service.
pub async fn resource(state: State<Arc<App>>) -> Result<Response, Failure> {
    resource_part(state, Path(String::new())).await
}

/// The document of a part of the service: `/mcp` or `/sse`, with or without its base path.
pub async fn resource_part(
    State(app): State<Arc<App>>,
    Path(behind): Path<String>,
) -> Result<Response, Failure> {
    let address = &app.sign_in.address;
    let resource = address.part(&behind).ok_or(Rejection::NotFound)?;
    Ok(kept(json!({
        "resource": resource,
        "resource_name": "Cairn",
        "authorization_servers": [address.url()],
        "scopes_supported": scopes(),
        "bearer_methods_supported": ["header"],
    })))
}

/// Who gives tokens.
pub async fn server(state: State<Arc<App>>) -> Result<Response, Failure> {
    server_part(state, Path(String::new())).await
}

/// The same where the path of the service stands behind.
pub async fn server_part(
    State(app): State<Arc<App>>,
    Path(behind): Path<String>,
) -> Result<Response, Failure> {
    let address = &app.sign_in.address;
    let behind = behind.trim_matches('/');
    if !behind.is_empty() && behind != address.base_path().trim_matches('/') {
        return Err(Rejection::NotFound.into());
    }
    Ok(kept(json!({
        "issuer": address.url(),
        "authorization_endpoint": address.at("/oauth/authorize"),
        "token_endpoint": address.at("/oauth/token"),
        "device_authorization_endpoint": address.at("/oauth/device_authorization"),
        "registration_endpoint": address.at("/oauth/register"),
        "revocation_endpoint": address.at("/oauth/revoke"),
        "jwks_uri": address.at("/.well-known/jwks.json"),
        "scopes_supported": scopes(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", super::token::DEVICE],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
        // Required of the second of the two documents, which is the same text.
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA"],
    })))
}

/// The keys with which tokens are signed, the present one first.
pub async fn keys(State(app): State<Arc<App>>) -> Response {
    let keys: JwkSet = app.sign_in.keys.public();
    ([("cache-control", KEPT)], Json(keys)).into_response()
}

fn kept(document: Value) -> Response {
    ([("cache-control", KEPT)], Json(document)).into_response()
}
