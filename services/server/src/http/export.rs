//! `GET /v1/export`: lines that are written while they are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use cairn_store::StoreError;
use cairn_wire::Problem;
use cairn_wire::export::ExportQuery;
use hyper::body::Frame;

use super::extract::ApiQuery;
use crate::actions::Failure;
use crate::actions::export::{self, Part};
use crate::app::App;
use crate::auth::Caller;

/// What the lines are.
pub const NDJSON: &str = "application/x-ndjson";

/// What the caller may read, as lines: what others keep private is not in it. The last line has
/// counts and a digest; an answer without it was cut off.
#[utoipa::path(get, path = "/v1/export", tag = "rights", params(ExportQuery),
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiQuery(query): ApiQuery<ExportQuery>,
) -> Result<Response, Failure> {
    let parts = export::begin(&app, &caller, &query).await?;
    let mut response = Response::new(Body::new(Lines {
        parts,
        is_whole: false,
    }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A body of parts as they come.
struct Lines {
    parts: export::Parts,
    is_whole: bool,
}

impl HttpBody for Lines {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        self.parts.poll_recv(context).map(|part| match part {
            Some(Part::Lines(lines)) => Some(Ok(Frame::data(lines))),
            Some(Part::End(line)) => {
                self.is_whole = true;
                Some(Ok(Frame::data(line)))
            }
            // Breaks the connection off, so that nobody takes what there is for the whole.
            None => (!self.is_whole).then_some(Err(StoreError::Unavailable)),
        })
    }
}
