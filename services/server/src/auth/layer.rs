//! The one layer that turns an Authorization header into a [`Caller`], or answers 401.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use cairn_domain::event::{SessionKey, Visibility};
use cairn_domain::redact::safe;
use cairn_domain::scope::Scopes;
use cairn_domain::{Rejection, limits};
use cairn_store::{Credential, Store, StoreError};
use cairn_wire::session::SessionName;
use cairn_wire::{Code, Problem};
use chrono::{DateTime, TimeDelta, Utc};

use super::attempts::Attempt;
use super::key::ApiKey;
use super::{Caller, grant};
use crate::actions::Failure;
use crate::app::App;
use crate::http::peer::Peer;

/// Verifies the request's credential and hands its [`Caller`] on with it.
///
/// # Errors
/// 401 without a valid credential, 429 after too many from one address; 503 if the store cannot
/// tell: never an unverified request.
pub async fn authenticate(app: &Arc<App>, request: &mut Request) -> Result<Caller, Failure> {
    let peer = Peer::of_request(app, request);
    let attempt = Attempt::begin(app, request.headers(), peer).await?;
    let verified = verify(app, request.headers(), request.uri().path()).await;
    if let Some(attempt) = attempt {
        attempt.end(&verified).await;
    }
    let caller = verified?;
    request.extensions_mut().insert(caller.clone());
    Ok(caller)
}

/// The caller whose credential stands in the headers, as it is good for something at this moment
/// at an address.
/// What goes on for longer than a request asks again with the headers that it came with.
///
/// # Errors
/// As [`authenticate`].
pub async fn verify(app: &App, headers: &HeaderMap, path: &str) -> Result<Caller, Failure> {
    let verified = verify_at_leisure(app, headers, path);
    let verified = tokio::time::timeout(limits::ANSWER_TIME, verified);
    verified.await.unwrap_or(Err(StoreError::Timeout.into()))
}

async fn verify_at_leisure(app: &App, headers: &HeaderMap, path: &str) -> Result<Caller, Failure> {
    let now = app.clock.now();
    let shown = bearer(headers).ok_or_else(unauthenticated)?;
    let credential = match ApiKey::parse(shown) {
        Some(key) => {
            let credential = of_key(app, key, now).await?;
            check(&credential, "key", now)?;
            credential
        }
        None if shown.contains('.') => {
            let credential = grant::find(app, shown, path, now).await?;
            check(&credential, "grant", now)?;
            credential
        }
        None => return Err(unauthenticated().into()),
    };
    let session = decoded(headers, "cairn-session").map(|text| session(&text));
    let visibility = decoded(headers, "cairn-visibility").map(|text| visibility(&text));
    Ok(Caller {
        session: session.transpose()?,
        visibility: visibility.transpose()?.unwrap_or_default(),
        ..caller(&credential, headers)
    })
}

async fn of_key(app: &App, key: ApiKey, now: DateTime<Utc>) -> Result<Arc<Credential>, Failure> {
    let find = || async {
        let found = find(app, &key, now).await;
        found.map(Arc::new).map_err(|failure| {
            if let Some(cause) = failure.cause() {
                tracing::warn!(cause, "a key could not be looked up");
            }
            failure.into_problem()
        })
    };
    Ok(app.credentials.get_or_find(key.hash(), find).await?)
}

/// The credential of a key, whatever its state; its use is noted if it is good for anything.
async fn find(app: &App, key: &ApiKey, now: DateTime<Utc>) -> Result<Credential, Failure> {
    let mut tx = app.store.system("auth.find_credential").await?;
    let found = tx.find_credential(key.id()).await?;
    tx.commit().await?;
    let credential = found
        .filter(|c| key.matches(&c.secret_hash))
        .ok_or_else(unauthenticated)?;
    // Kept to the hour, so the hour it names is over or not begun.
    let is_stale = credential
        .last_used_at
        .is_none_or(|last| now >= last + TimeDelta::hours(1));
    if is_stale && check(&credential, "key", now).is_ok() {
        tokio::spawn(touch(app.store.clone(), credential.clone(), now));
    }
    Ok(credential)
}

/// Notes that a key was used. Nobody waits for it: a request is not held up by a note.
async fn touch(store: Store, credential: Credential, now: DateTime<Utc>) {
    let touched = async {
        let mut tx = store
            .tenant(credential.tenant, "auth.touch_credential")
            .await?;
        tx.touch_credential(credential.credential, now).await?;
        tx.commit().await
    };
    let touched = tokio::time::timeout(limits::ANSWER_TIME, touched).await;
    if let Err(error) = touched.unwrap_or(Err(StoreError::Timeout)) {
        tracing::debug!(%error, "the use of a key was not noted");
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthenticated() -> Problem {
    Problem::new(
        Code::Unauthenticated,
        "send a valid key or token as Authorization: Bearer",
    )
}

/// Whether the credential, a key or a grant, is good for anything now.
fn check(credential: &Credential, what: &str, now: DateTime<Utc>) -> Result<(), Problem> {
    if credential.revoked {
        return Err(Problem::new(
            Code::CredentialRevoked,
            format!("{what} revoked"),
        ));
    }
    if credential.member_removed {
        return Err(Problem::new(Code::CredentialRevoked, "member removed"));
    }
    if credential.expires_at <= now {
        return Err(Problem::new(
            Code::CredentialExpired,
            format!("{what} expired"),
        ));
    }
    Ok(())
}

fn caller(credential: &Credential, headers: &HeaderMap) -> Caller {
    Caller {
        tenant: credential.tenant,
        credential: credential.credential,
        principal: credential.principal,
        name: credential.principal_name.clone(),
        role: credential.role,
        scopes: credential.scopes.and(Scopes::at_most(credential.role)),
        project_limit: credential.project.clone(),
        expires_at: credential.expires_at,
        current_project: decoded(headers, "cairn-project"),
        session: None,
        visibility: Visibility::Team,
    }
}

/// The text of a header that travels percent-encoded; an empty one is absent.
fn decoded(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.as_bytes();
    let decoded = percent_encoding::percent_decode(value).decode_utf8_lossy();
    // As it would be kept: a project is found by the name under which it was.
    let text = safe(decoded.trim());
    (!text.is_empty()).then(|| text.into_owned())
}

/// The session that the header names.
///
/// # Errors
/// `invalid_field` for what no session can be named: taken for none, two sessions would be one.
fn session(text: &str) -> Result<SessionKey, Rejection> {
    let read = SessionName::from_header(text).parse();
    read.map_err(|_| {
        let (host, id) = (limits::WORD_BYTES, limits::HOST_ID_BYTES);
        let allowed = format!("Cairn-Session: <host>/<id>, at most {host} and {id} bytes");
        Rejection::invalid_field("", allowed)
    })
}

/// The visibility that the header names.
///
/// # Errors
/// `invalid_field` for any other word: taken for none, what is meant to be private would be shown.
fn visibility(text: &str) -> Result<Visibility, Rejection> {
    let refuse = || Rejection::invalid_field("", "Cairn-Visibility: team or private");
    Visibility::from_name(text).ok_or_else(refuse)
}
