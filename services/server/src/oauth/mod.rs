//! Sign-in: how members let programs in (contract 14). Every step keeps what it needs in Postgres,
//! so any replica may take the next one.

pub mod address;
pub mod error;
pub mod page;

mod authorize;
#[cfg(feature = "oidc")]
mod choose;
mod client;
mod device;
#[cfg(feature = "oidc")]
mod directory;
mod document;
mod metadata;
#[cfg(feature = "oidc")]
pub mod oidc;
mod params;
mod register;
mod revoke;
mod token;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actions::Failure;
use crate::app::App;
use crate::auth::token::TokenKeys;
use crate::http::{door, stack};
use address::PublicAddress;

/// What sign-in needs to know of this deployment.
pub struct SignIn {
    /// How the service is reached.
    pub address: PublicAddress,
    /// What signs tokens.
    pub keys: TokenKeys,
    /// The team's identity provider, if there is one.
    #[cfg(feature = "oidc")]
    pub oidc: Option<oidc::Oidc>,
}

impl SignIn {
    /// Sign-in with codes alone.
    #[must_use]
    pub fn new(address: PublicAddress, keys: TokenKeys) -> Self {
        Self {
            address,
            keys,
            #[cfg(feature = "oidc")]
            oidc: None,
        }
    }

    /// What pages call the identity provider, if there is one.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        #[cfg(feature = "oidc")]
        let name = self.oidc.as_ref().map(oidc::Oidc::name);
        #[cfg(not(feature = "oidc"))]
        let name = None;
        name
    }
}

/// Addresses that stand in the document.
pub fn documented() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(authorize::show))
        .routes(routes!(token::exchange))
        .routes(routes!(device::begin))
        .routes(routes!(device::show))
        .routes(routes!(register::register))
        .routes(routes!(revoke::revoke))
}

/// All addresses of sign-in, under known host names alone.
pub fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    let (documented, _) = documented().split_for_parts();
    let mut routes = documented
        .route("/oauth/authorize", post(authorize::decide))
        .route("/device", post(device::decide))
        .route(
            "/oauth/sign-in",
            get(page::sign_in::show).post(page::sign_in::enter),
        )
        .route("/oauth/sign-out", post(page::sign_in::leave))
        .route("/.well-known/jwks.json", get(metadata::keys))
        .route(
            "/.well-known/oauth-protected-resource",
            get(metadata::resource),
        )
        .route(
            "/.well-known/oauth-protected-resource/{*behind}",
            get(metadata::resource_part),
        );
    for name in ["oauth-authorization-server", "openid-configuration"] {
        routes = routes
            .route(&format!("/.well-known/{name}"), get(metadata::server))
            .route(
                &format!("/.well-known/{name}/{{*behind}}"),
                get(metadata::server_part),
            );
    }
    #[cfg(feature = "oidc")]
    let routes = routes
        .route("/oauth/oidc/start", post(oidc::start))
        .route("/oauth/oidc/callback", get(oidc::callback))
        .route("/oauth/oidc/choose", post(choose::decide));
    routes
        .layer(middleware::from_fn(stack::answer_whole))
        .layer(middleware::from_fn_with_state(Arc::clone(app), admit))
}

/// Lets callers in under known host names. Forms look at where they come from themselves: a page
/// of ours may be shown under a name that no setting lists as an origin.
async fn admit(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    door::check_host(&app.door, &request)?;
    Ok(next.run(request).await)
}
