//! The one layer that turns an Authorization header into a [`Caller`], or answers 401.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use cairn_domain::scope::{Scope, Scopes};
use cairn_store::Credential;
use cairn_wire::{Code, Problem};
use chrono::{DateTime, Utc};

use super::Caller;
use super::key::ApiKey;
use crate::actions::Failure;
use crate::app::App;

/// Verifies the request's credential and hands its [`Caller`] on.
///
/// # Errors
/// 401 without a valid credential; 503 if the store cannot tell: never an unverified request.
pub async fn authenticate(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let caller = verify(&app, request.headers()).await?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

async fn verify(app: &App, headers: &HeaderMap) -> Result<Caller, Failure> {
    let key = bearer(headers)
        .and_then(ApiKey::parse)
        .ok_or_else(unauthenticated)?;
    let hash = key.hash();
    let now = app.clock.now();
    if let Some(credential) = app.credentials.find(&hash).await {
        return Ok(caller(&credential, headers, now)?);
    }
    let mut tx = app.store.system("auth.find_credential").await?;
    let found = tx.find_credential(key.id()).await?;
    tx.commit().await?;
    let credential = found
        .filter(|c| key.matches(&c.secret_hash))
        .ok_or_else(unauthenticated)?;
    let caller = caller(&credential, headers, now)?;
    let mut tx = app
        .store
        .tenant(credential.tenant, "auth.touch_credential")
        .await?;
    tx.touch_credential(credential.credential, now).await?;
    tx.commit().await?;
    app.credentials.keep(hash, Arc::new(credential)).await;
    Ok(caller)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthenticated() -> Problem {
    Problem::new(
        Code::Unauthenticated,
        "send a valid key as Authorization: Bearer",
    )
}

fn caller(
    credential: &Credential,
    headers: &HeaderMap,
    now: DateTime<Utc>,
) -> Result<Caller, Problem> {
    if credential.revoked {
        return Err(Problem::new(Code::CredentialRevoked, "key revoked"));
    }
    if credential.member_removed {
        return Err(Problem::new(Code::CredentialRevoked, "member removed"));
    }
    if credential.expires_at <= now {
        return Err(Problem::new(Code::CredentialExpired, "key expired"));
    }
    Ok(Caller {
        tenant: credential.tenant,
        credential: credential.credential,
        principal: credential.principal,
        name: credential.principal_name.clone(),
        role: credential.role,
        scopes: credential.scopes.and(most(credential)),
        project_limit: credential.project.clone(),
        expires_at: credential.expires_at,
        current_project: current_project(headers),
    })
}

/// The most a credential may carry: its member's role, or for a service key all but ownership.
fn most(credential: &Credential) -> Scopes {
    match credential.role {
        Some(role) => role.scopes(),
        None => Scope::ALL
            .into_iter()
            .filter(|scope| *scope != Scope::TenantOwn)
            .collect(),
    }
}

fn current_project(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("cairn-project")?.as_bytes();
    let decoded = percent_encoding::percent_decode(value).decode_utf8_lossy();
    let text = decoded.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
