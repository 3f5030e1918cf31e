//! `POST /oauth/token`: a code, a refresh token or an approved device becomes tokens.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_domain::scope::Scopes;
use cairn_store::Credential;
use cairn_store::before_sign_in::{FoundGrant, PollState};
use cairn_store::grants::{Authorization, FirstToken, Presented, Rotation};
use cairn_wire::sign_in::TokenAnswer;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::error::{OAuthError, Refusal, unkept};
use super::params::{Form, Params};
use crate::app::App;
use crate::auth::secret::{self, Purpose, RefreshToken};
use crate::auth::token::Claims;

/// The kind of grant that a device asks for (RFC 8628).
pub const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Gives tokens for a code, a refresh token or an approved device.
#[utoipa::path(post, path = "/oauth/token", tag = "sign-in",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = TokenAnswer), (status = "4XX", body = OAuthError)))]
pub async fn exchange(State(app): State<Arc<App>>, Form(form): Form) -> Result<Response, Refusal> {
    let answer = match form.get("grant_type")? {
        "authorization_code" => of_code(&app, &form).await?,
        "refresh_token" => of_refresh(&app, &form).await?,
        DEVICE => of_device(&app, &form).await?,
        _ => {
            let known = format!("authorization_code, refresh_token or {DEVICE}");
            return Err(OAuthError::new("unsupported_grant_type", known).into());
        }
    };
    Ok(unkept(Json(answer)))
}

async fn of_code(app: &App, form: &Params) -> Result<TokenAnswer, Refusal> {
    let client = form.get("client_id")?;
    let verifier = form.get("code_verifier")?;
    let redirect = form.find("redirect_uri")?;
    let check = |found: &Authorization| {
        let wrong = |what: &str| Err(OAuthError::invalid_grant(what));
        if found.client_id != client {
            return wrong("the code was given to another program");
        }
        if redirect.is_some() && redirect != found.redirect_uri.as_deref() {
            return wrong("redirect_uri differs from the one of the code");
        }
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let challenge = found.challenge.as_deref().unwrap_or_default();
        if !bool::from(hash.as_bytes().ct_eq(challenge.as_bytes())) {
            return wrong("code_verifier does not fit");
        }
        Ok(())
    };
    take_up(app, form, form.get("code")?, check).await
}

async fn of_device(app: &App, form: &Params) -> Result<TokenAnswer, Refusal> {
    let (client, code) = (form.get("client_id")?, form.get("device_code")?);
    let now = app.clock.now();
    let mut tx = app.store.system("oauth.poll_device").await?;
    let poll = tx
        .poll_device_request(Purpose::Approval.hash(code), now)
        .await?;
    tx.commit().await?;
    let poll = poll.filter(|poll| poll.client_id == client);
    let poll = poll.ok_or_else(|| OAuthError::invalid_grant("no such device_code"))?;
    let wait = |code: &str, what: &str| Err(OAuthError::new(code, what).into());
    match poll.state {
        _ if poll.expires_at <= now => wait("expired_token", "nobody let the device in in time"),
        PollState::Denied => wait("access_denied", "the device was not let in"),
        _ if poll.too_soon => wait("slow_down", "ask 5 seconds less often"),
        PollState::Pending => wait("authorization_pending", "nobody has decided yet"),
        PollState::Approved => take_up(app, form, code, |_| Ok(())).await,
    }
}

/// Makes the grant that a member has agreed to. A code that comes a second time has been copied:
/// what the first one got ends.
async fn take_up(
    app: &App,
    form: &Params,
    code: &str,
    check: impl Fn(&Authorization) -> Result<(), OAuthError>,
) -> Result<TokenAnswer, Refusal> {
    let (hash, now) = (Purpose::Approval.hash(code), app.clock.now());
    let unknown = || OAuthError::invalid_grant("the code is unknown or over its time");
    let mut tx = app.store.system("oauth.find_code").await?;
    let tenant = tx.find_code(hash).await?;
    tx.commit().await?;
    let tenant = tenant.ok_or_else(unknown)?;
    let mut tx = app.store.tenant(tenant, "oauth.take_up").await?;
    let found = tx.lock_authorization(hash).await?.ok_or_else(unknown)?;
    if let Some(grant) = found.grant {
        tx.revoke_grant(grant, None, None, now).await?;
        tx.commit().await?;
        app.rights_changed(tenant);
        return Err(OAuthError::invalid_grant("the code was used before").into());
    }
    if found.expires_at <= now {
        return Err(unknown().into());
    }
    check(&found)?;
    let address = &app.sign_in.address;
    let asked = form.resource(address)?;
    let resource = asked.unwrap_or_else(|| found.resource.clone());
    if !address.is_within(&resource, &found.resource) {
        let what = "another resource was agreed to";
        return Err(OAuthError::new("invalid_target", what).into());
    }
    let token = RefreshToken::first(Uuid::now_v7());
    let first = FirstToken {
        grant: token.grant,
        hash: token.hash(),
        resource: &resource,
        now,
    };
    tx.begin_grant(&found, &first).await?;
    tx.commit().await?;
    let grant = find(app, token.grant).await?.ok_or_else(unknown)?;
    Ok(issue(app, &grant, &resource, &token))
}

async fn of_refresh(app: &App, form: &Params) -> Result<TokenAnswer, Refusal> {
    let refused = || OAuthError::invalid_grant("the refresh token is unknown, used or over");
    let client = form.get("client_id")?;
    let shown = RefreshToken::parse(form.get("refresh_token")?).ok_or_else(refused)?;
    let grant = find(app, shown.grant).await?.ok_or_else(refused)?;
    let address = &app.sign_in.address;
    let asked = form.resource(address)?;
    let resource = asked.unwrap_or_else(|| grant.resource.clone());
    if !address.is_within(&resource, &grant.resource) {
        let what = "another resource was agreed to";
        return Err(OAuthError::new("invalid_target", what).into());
    }
    if form.find("scope")?.is_some() {
        let asked = form.scopes()?;
        if asked.and(grant.credential.scopes) != asked {
            let what = "more than was agreed to";
            return Err(OAuthError::new("invalid_scope", what).into());
        }
    }
    let tenant = grant.credential.tenant;
    let token = rotate(app, tenant, client, &shown)
        .await?
        .ok_or_else(refused)?;
    let grant = find(app, shown.grant).await?.ok_or_else(refused)?;
    Ok(issue(app, &grant, &resource, &token))
}

/// The successor of a refresh token; none for one that is worth nothing.
async fn rotate(
    app: &App,
    tenant: TenantId,
    client: &str,
    shown: &RefreshToken,
) -> Result<Option<RefreshToken>, Refusal> {
    let salt = secret::random();
    let next = shown.successor(&salt);
    let mut tx = app.store.tenant(tenant, "oauth.rotate").await?;
    let rotation = tx
        .rotate_refresh(&Presented {
            grant: shown.grant,
            client_id: client,
            hash: shown.hash(),
            salt,
            successor: next.hash(),
            now: app.clock.now(),
        })
        .await?;
    tx.commit().await?;
    Ok(match rotation {
        Rotation::Done { .. } => Some(next),
        Rotation::Repeated { salt, .. } => Some(shown.successor(&salt)),
        Rotation::Reused => {
            app.rights_changed(tenant);
            tracing::warn!(grant = %shown.grant, "a refresh token was used twice; its grant ended");
            None
        }
        Rotation::Refused => None,
    })
}

async fn find(app: &App, grant: Uuid) -> Result<Option<FoundGrant>, Refusal> {
    let mut tx = app.store.system("oauth.find_grant").await?;
    let found = tx.find_grant(grant).await?;
    tx.commit().await?;
    let now = app.clock.now();
    Ok(found.filter(|found| is_good(&found.credential, now)))
}

fn is_good(credential: &Credential, now: DateTime<Utc>) -> bool {
    !credential.revoked && !credential.member_removed && credential.expires_at > now
}

fn issue(app: &App, grant: &FoundGrant, resource: &str, token: &RefreshToken) -> TokenAnswer {
    let now = app.clock.now();
    let credential = &grant.credential;
    let ends = (now + limits::ACCESS_TOKEN_TIME).min(credential.expires_at);
    let most = credential.role.map(|role| role.scopes());
    let scopes: Scopes = credential.scopes.and(most.unwrap_or_default());
    let scope = scopes.names().join(" ");
    let claims = Claims {
        iss: app.sign_in.address.url().to_owned(),
        aud: resource.to_owned(),
        sub: credential.principal.uuid,
        sid: credential.credential,
        scope: scope.clone(),
        exp: ends.timestamp(),
        iat: now.timestamp(),
        jti: Uuid::now_v7(),
    };
    TokenAnswer {
        access_token: app.sign_in.keys.sign(&claims),
        token_type: "Bearer".to_owned(),
        expires_in: (ends - now).num_seconds().max(0),
        refresh_token: token.reveal(),
        scope,
    }
}
