//! The HTTP door: every route on one page. Layers stand in [`stack`].

pub mod door;
pub mod extract;
pub mod peer;
pub mod problem;
pub mod stack;

mod base;

mod audit;
mod auth;
mod changes;
pub mod compat;
mod context;
mod events;
mod export;
mod grants;
mod health;
mod import;
mod keys;
mod members;
mod observations;
mod projects;
mod purge;
mod search;
mod sessions;
mod sign_in;
mod sse;
mod tenant;
mod tenant_deletion;
mod timeline;
mod tool_uses;
mod usage;
pub mod work_state;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{any_service, get};
use cairn_wire::{Code, Problem};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::{mcp, oauth};

/// The document's head; paths and schemas come from the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cairn",
        description = "Shared memory for teams of coding agents.",
        license(name = "Apache-2.0")
    ),
    modifiers(&BearerKey)
)]
struct Document;

struct BearerKey;

impl utoipa::Modify for BearerKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{
            Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
        };
        let components = document.components.get_or_insert_default();
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("key", bearer);
        document.security = Some(vec![SecurityRequirement::new("key", Vec::<String>::new())]);
    }
}

/// Routes for verified callers.
fn verified() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(events::record))
        .routes(routes!(events::check))
        .routes(routes!(context::show))
        .routes(routes!(context::clear))
        .routes(routes!(work_state::write))
        .routes(routes!(work_state::show))
        .routes(routes!(work_state::history))
        .routes(routes!(search::mem_search))
        .routes(routes!(search::find, search::find_posted))
        .routes(routes!(timeline::show))
        .routes(routes!(changes::list))
        .routes(routes!(changes::stream))
        .routes(routes!(observations::add, observations::list))
        .routes(routes!(observations::by_file))
        .routes(routes!(
            observations::get_observation,
            observations::patch_observation,
            observations::delete_observation
        ))
        .routes(routes!(
            observations::get_summary,
            observations::patch_summary,
            observations::delete_summary
        ))
        .routes(routes!(
            observations::get_prompt,
            observations::delete_prompt
        ))
        .routes(routes!(observations::batch))
        .routes(routes!(tool_uses::batch))
        .routes(routes!(tool_uses::delete))
        .routes(routes!(usage::list))
        .routes(routes!(auth::me))
        .routes(routes!(export::show))
        .routes(routes!(tenant_deletion::delete))
        .routes(routes!(grants::list))
        .routes(routes!(grants::revoke))
        .routes(routes!(sign_in::make_code))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::get))
        .routes(routes!(projects::list))
        .routes(routes!(projects::resolve))
        .routes(routes!(projects::change))
        .routes(routes!(members::list, members::add))
        .routes(routes!(members::change, members::remove))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(tenant::show, tenant::change))
        .routes(routes!(audit::list))
}

/// Routes for verified callers that take as long as there is something to do.
fn long() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(import::store))
        .routes(routes!(purge::remove))
}

/// Routes for anybody.
fn open() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
}

/// The whole service as one router.
pub fn router(app: Arc<App>) -> Router {
    let (verified, _) = verified().split_for_parts();
    let tools = any_service(mcp::service(Arc::clone(&app))).layer(middleware::from_fn(mcp::front));
    let verified = verified
        .merge(compat::routes())
        .merge(sse::routes(tools.clone()))
        .route("/mcp", tools.with_state(()));
    let guarded = stack::guarded(verified, &app);
    let (long, _) = long().split_for_parts();
    let long = stack::guarded_long(long, &app);
    let (open, _) = open().split_for_parts();
    let document = get(|| async { axum::Json(document()) });
    let routes = guarded
        .merge(long)
        .merge(open)
        .merge(oauth::routes(&app))
        .route("/openapi/v1.json", document)
        .fallback(|| async { problem::respond(Problem::new(Code::NotFound, "not found")) })
        .method_not_allowed_fallback(|| async {
            let detail = "see the Allow header for what this address accepts";
            problem::respond(Problem::new(Code::MethodNotAllowed, detail))
        });
    let routes = stack::outer(routes, &app).with_state(Arc::clone(&app));
    base::below(app.sign_in.address.base_path(), routes)
}

/// The OpenAPI document, made from the routes.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    let (_, verified) = verified().split_for_parts();
    let (_, long) = long().split_for_parts();
    let (_, mut open) = open().merge(oauth::documented()).split_for_parts();
    for path in open.paths.paths.values_mut() {
        for operation in [&mut path.get, &mut path.post].into_iter().flatten() {
            operation.security = Some(Vec::new());
        }
    }
    document.merge(verified);
    document.merge(long);
    document.merge(open);
    document
}
