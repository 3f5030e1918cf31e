//! `POST /oauth/revoke`: a program gives back what it was given (RFC 7009). Whether there was
//! anything to give back it is not told.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use uuid::Uuid;

use super::error::{OAuthError, Refusal, unkept};
use super::params::Form;
use crate::app::App;
use crate::auth::secret::RefreshToken;

/// Ends the grant of a token, whichever of its tokens it is.
#[utoipa::path(post, path = "/oauth/revoke", tag = "sign-in",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "It is worth nothing now"),
        (status = "4XX", body = OAuthError)))]
pub async fn revoke(State(app): State<Arc<App>>, Form(form): Form) -> Result<Response, Refusal> {
    let shown = form.get("token")?;
    let grant = match RefreshToken::parse(shown) {
        Some(token) => Some((token.grant, Some(token.hash()))),
        None => {
            let issuer = app.sign_in.address.url();
            let claims = app.sign_in.keys.verify(shown, issuer, app.clock.now());
            claims.ok().map(|claims| (claims.sid, None))
        }
    };
    if let Some((grant, hash)) = grant {
        end(&app, grant, hash).await?;
    }
    Ok(unkept(StatusCode::OK))
}

async fn end(app: &App, grant: Uuid, hash: Option<[u8; 32]>) -> Result<(), Refusal> {
    let mut tx = app.store.system("oauth.find_grant").await?;
    let found = tx.find_grant(grant).await?;
    tx.commit().await?;
    let Some(found) = found else {
        return Ok(());
    };
    let (tenant, member) = (found.credential.tenant, found.credential.principal);
    let mut tx = app.store.tenant(tenant, "oauth.revoke").await?;
    let is_its = match hash {
        Some(hash) => tx.has_refresh(grant, hash).await?,
        None => true,
    };
    if is_its {
        tx.revoke_grant(grant, None, Some(member), app.clock.now())
            .await?;
        tx.commit().await?;
        app.rights_changed(tenant);
    }
    Ok(())
}
