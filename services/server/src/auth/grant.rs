//! From an access token to the credential of its grant, as its row stands now.

use std::sync::Arc;

use cairn_store::Credential;
use cairn_wire::{Code, Problem};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::token::Invalid;
use crate::actions::Failure;
use crate::app::App;

/// The credential that a token stands for at the address `path`.
///
/// # Errors
/// 401 for a token that is not ours, not for this address, or over.
pub(super) async fn find(
    app: &App,
    token: &str,
    path: &str,
    now: DateTime<Utc>,
) -> Result<Arc<Credential>, Failure> {
    let sign_in = &app.sign_in;
    let verified = sign_in.keys.verify(token, sign_in.address.url(), now);
    let claims = verified.map_err(|invalid| match invalid {
        Invalid::Unknown => unknown("the token is not one of this service"),
        Invalid::Expired => Problem::new(Code::CredentialExpired, "token expired"),
    })?;
    if !sign_in.address.admits(&claims.aud, path) {
        return Err(unknown("the token is for another address").into());
    }
    let found = app
        .credentials
        .get_or_find(cache_key(claims.sid), || async {
            let found = find_row(app, claims.sid).await;
            found.map(Arc::new).map_err(|failure| {
                if let Some(cause) = failure.cause() {
                    tracing::warn!(cause, "a grant could not be looked up");
                }
                failure.into_problem()
            })
        })
        .await?;
    Ok(found)
}

async fn find_row(app: &App, grant: Uuid) -> Result<Credential, Failure> {
    let mut tx = app.store.system("auth.find_grant").await?;
    let found = tx.find_grant(grant).await?;
    tx.commit().await?;
    let found = found.ok_or_else(|| unknown("the grant of the token is gone"))?;
    Ok(found.credential)
}

/// All tokens of a grant share what is known of it.
fn cache_key(grant: Uuid) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(b"cairn:grant:v1\0");
    hasher.update(grant.as_bytes());
    hasher.finalize().into()
}

fn unknown(why: &str) -> Problem {
    Problem::new(Code::Unauthenticated, why)
}
