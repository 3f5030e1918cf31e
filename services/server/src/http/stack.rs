//! Every layer on one page, in the order a request meets them.

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use cairn_domain::limits;
use cairn_store::StoreError;
use cairn_wire::{Code, Problem};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::decompression::RequestDecompressionLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use uuid::Uuid;

use super::{door, extract, problem};
use crate::actions::Failure;
use crate::app::App;
use crate::{auth, rates};

/// The oldest client that this service understands.
const MIN_CLIENT: &str = "0.1.0";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What stands before the routes of verified callers. Each layer costs every request; those that
/// stand together are one.
pub fn guarded(routes: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    routes.layer(
        ServiceBuilder::new()
            .layer(middleware::from_fn_with_state(Arc::clone(app), admit))
            .map_request(name_encoding)
            .layer(RequestDecompressionLayer::new())
            .map_request(|request: Request<_>| request.map(Body::new))
            .layer(middleware::from_fn(answer_whole)),
    )
}

/// What stands before routes whose bodies are of any length, or whose answers take as long as there
/// is something to do: each of them bounds what it reads.
pub fn guarded_long(routes: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    routes.layer(
        ServiceBuilder::new()
            .layer(middleware::from_fn_with_state(Arc::clone(app), admit_long))
            .map_request(name_encoding)
            .layer(RequestDecompressionLayer::new())
            .map_request(|request: Request<_>| request.map(Body::new)),
    )
}

/// Lets in known callers under known names who do not come too fast.
async fn admit_long(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let_in(&app, request, next, Ok).await
}

/// Routes of [`guarded_long`].
const LONG: [&str; 2] = ["/v1/import", "/v1/purge"];

/// How long a request may take.
fn time_of(request: &Request) -> std::time::Duration {
    match LONG.contains(&request.uri().path()) {
        true => limits::LONG_REQUEST_TIME,
        false => limits::REQUEST_TIME,
    }
}

/// Lets in known callers under known names who do not come too fast, with a body that is not too
/// large already.
async fn admit(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let_in(&app, request, next, extract::refuse_large).await
}

async fn let_in(
    app: &Arc<App>,
    mut request: Request,
    next: Next,
    bounded: fn(Request) -> Result<Request, Failure>,
) -> Result<Response, Failure> {
    door::check(&app.door, &request)?;
    let caller = auth::layer::authenticate(app, &mut request).await?;
    let (taken, allowed) = rates::take_request(app, &caller).await;
    let mut response = match allowed {
        Ok(()) => {
            app.usage.count(app, &caller);
            match bounded(request) {
                Ok(request) => next.run(request).await,
                Err(failure) => failure.into_response(),
            }
        }
        Err(problem) => {
            extract::leave_body(request);
            problem::respond(problem)
        }
    };
    app.callers.show(&taken, &mut response);
    Ok(response)
}

/// Receives a request whole; what is whole is answered in time, even if the database says nothing
/// more: then the call is dropped, and with it its transaction.
pub async fn answer_whole(request: Request, next: Next) -> Result<Response, Failure> {
    let request = extract::receive(request).await?;
    let response = tokio::time::timeout(limits::ANSWER_TIME, next.run(request)).await;
    response.map_err(|_| Failure::Store(StoreError::Timeout))
}

/// What stands before every route.
pub fn outer(routes: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    let version = HeaderValue::from_static(env!("CARGO_PKG_VERSION"));
    routes.layer(
        ServiceBuilder::new()
            .map_request(strip_request_id)
            .layer(SetRequestIdLayer::new(REQUEST_ID, FreshId))
            .layer(PropagateRequestIdLayer::new(REQUEST_ID))
            .layer(SetResponseHeaderLayer::overriding(
                HeaderName::from_static("cairn-service"),
                version,
            ))
            .layer(SetResponseHeaderLayer::overriding(
                HeaderName::from_static("cairn-min-client"),
                HeaderValue::from_static(MIN_CLIENT),
            ))
            .layer(TraceLayer::new_for_http().make_span_with(span))
            .layer(middleware::from_fn_with_state(Arc::clone(app), finish))
            .layer(CatchPanicLayer::custom(panicked)),
    )
}

/// Bounds the address and the time of a request, and writes out the problem it may end in.
async fn finish(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    let part = app.sign_in.address.part_of(request.uri().path());
    let response = match too_long(&request) {
        Some(problem) => problem::respond(problem),
        None => {
            let time = time_of(&request);
            let response = tokio::time::timeout(time, next.run(request)).await;
            response.unwrap_or_else(|_| Failure::Store(StoreError::Timeout).into_response())
        }
    };
    problem::finish(id, response, |refused| {
        app.sign_in.address.challenge(part, refused)
    })
}

/// Takes off the id that a caller sent: the next layer would keep it.
fn strip_request_id<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    request.headers_mut().remove(REQUEST_ID);
    request
}

/// Request ids are ours, so that a caller cannot forge one into the log.
#[derive(Clone)]
struct FreshId;

impl MakeRequestId for FreshId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::from_str(&Uuid::now_v7().to_string())
            .ok()
            .map(RequestId::new)
    }
}

/// One span a request; it names the path but never a query string, which may hold memory text.
fn span<B>(request: &axum::http::Request<B>) -> tracing::Span {
    let id = request.extensions().get::<RequestId>();
    let id = id
        .and_then(|id| id.header_value().to_str().ok())
        .unwrap_or("-");
    tracing::info_span!("http", method = %request.method(), path = request.uri().path(), request_id = id)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands the payload over"
)]
fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("panic");
    Failure::fault(format!("panic: {text}")).into_response()
}

fn too_long(request: &Request) -> Option<Problem> {
    let address = request.uri().path_and_query();
    let is_long = address.is_some_and(|path| path.as_str().len() > limits::ADDRESS_BYTES);
    is_long.then(|| {
        let detail = format!("at most {} bytes; POST longer ones", limits::ADDRESS_BYTES);
        Problem::new(Code::UriTooLong, detail)
    })
}

/// Names of encodings are told apart without regard to case; the next layer compares bytes.
fn name_encoding(mut request: Request) -> Request {
    if let Some(name) = request.headers_mut().get_mut(CONTENT_ENCODING)
        && let Ok(lower) = HeaderValue::from_bytes(&name.as_bytes().to_ascii_lowercase())
    {
        *name = lower;
    }
    request
}
