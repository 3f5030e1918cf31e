//! `POST /oauth/register`: a program of an older host makes itself known (RFC 7591). It is a
//! public one, whatever it asks to be.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use cairn_store::before_sign_in::KnownClient;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::client::{admit, check_redirects};
use super::error::{OAuthError, Refusal, unkept};
use super::page::one_line;
use super::page::visitor::counted;
use super::params;
use crate::app::App;
use crate::http::peer::Peer;

/// What a program says of itself; the rest means nothing here.
#[derive(Deserialize, ToSchema)]
pub struct Registration {
    /// Where codes may be sent.
    redirect_uris: Vec<String>,
    /// What it calls itself.
    #[serde(default)]
    client_name: String,
    /// `native` or `web`, given back as it came.
    #[serde(default)]
    application_type: Option<String>,
}

/// A program as it is known from now on.
#[derive(Serialize, ToSchema)]
pub struct Registered {
    client_id: String,
    client_id_issued_at: i64,
    client_name: String,
    redirect_uris: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_type: Option<String>,
    token_endpoint_auth_method: String,
    grant_types: Vec<String>,
    response_types: Vec<String>,
}

/// Makes a program known.
#[utoipa::path(post, path = "/oauth/register", tag = "sign-in", request_body = Registration,
    responses((status = 201, body = Registered), (status = "4XX", body = OAuthError)))]
pub async fn register(
    State(app): State<Arc<App>>,
    peer: Peer,
    body: Body,
) -> Result<Response, Refusal> {
    admit(&app, peer).await?;
    let text = params::text(body).await?;
    let read: Registration = serde_json::from_str(&text).map_err(|error| {
        OAuthError::new("invalid_client_metadata", format!("not a program: {error}"))
    })?;
    check_redirects(&read.redirect_uris)?;
    let (id, now) = (Uuid::now_v7().simple().to_string(), app.clock.now());
    let client = KnownClient {
        name: one_line(&read.client_name),
        redirect_uris: read.redirect_uris,
    };
    let mut tx = app.store.system("oauth.register").await?;
    tx.put_client(&id, &client, &counted(peer.0), (now, None))
        .await?;
    tx.commit().await?;
    let registered = Registered {
        client_id: id,
        client_id_issued_at: now.timestamp(),
        client_name: client.name,
        redirect_uris: client.redirect_uris,
        application_type: read.application_type,
        token_endpoint_auth_method: "none".to_owned(),
        grant_types: ["authorization_code", "refresh_token"]
            .map(str::to_owned)
            .to_vec(),
        response_types: vec!["code".to_owned()],
    };
    Ok(unkept((StatusCode::CREATED, Json(registered))))
}
