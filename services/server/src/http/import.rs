//! `POST /v1/import`: lines that are stored while they arrive.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use cairn_domain::scope::Scope;
use cairn_wire::import::{ImportAnswer, ImportQuery};
use cairn_wire::{Code, Problem};

use super::export::NDJSON;
use super::extract::ApiQuery;
use crate::actions::{Failure, import};
use crate::app::App;
use crate::auth::Caller;

/// Stores the lines of an export, of this tenant or another. Again it stores nothing. A file that
/// was cut off or changed is told at its end, with what was stored of it; `dry_run` tells before.
#[utoipa::path(post, path = "/v1/import", tag = "rights", params(ImportQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = ImportAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn store(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiQuery(query): ApiQuery<ImportQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ImportAnswer>, Failure> {
    caller.require(Scope::MemoryWrite)?;
    if let Some(kind) = headers.get(CONTENT_TYPE) {
        let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if kind != NDJSON {
            let detail = format!("Content-Type: {NDJSON}");
            return Err(Problem::new(Code::MalformedBody, detail).into());
        }
    }
    import::import(&app, &caller, &query, body).await.map(Json)
}
