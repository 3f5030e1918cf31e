//! Observations, summaries and prompts: storing one, and what can be done to one by its id.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use cairn_domain::Rejection;
use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::scope::Scope;
use cairn_wire::Problem;
use cairn_wire::observations::{
    FileAnswer, FileAsk, FileQuery, ListAnswer, ListAsk, ListQuery, ObservationWrite, Record,
    RecordBatch, RecordBatchAnswer, RecordOrder, RecordPatch, RecordWritten,
};

use super::extract::{ApiJson, ApiPairs, ApiPath, JsonText, idempotency_key};
use crate::actions::{Failure, observations};
use crate::app::App;
use crate::auth::Caller;

/// Reads an id in the path of one kind: `7` and `S7` are the same in `/v1/summaries/`.
fn parse_id(kind: RecordKind, text: &str) -> Result<RecordId, Rejection> {
    let id: RecordId = text.parse().map_err(|_| Rejection::NotFound)?;
    let is_bare = id.kind == RecordKind::Observation;
    if id.kind != kind && !is_bare {
        return Err(Rejection::NotFound);
    }
    Ok(RecordId {
        kind,
        number: id.number,
    })
}

/// A record as this caller may see it.
fn shown(caller: &Caller, record: cairn_domain::record::Record) -> Record {
    let record = Record::from(record);
    if caller.scopes.contains(Scope::EvidenceRead) {
        record
    } else {
        record.without_evidence()
    }
}

/// Stores an observation: its fields, or a text with or without a title.
#[utoipa::path(post, path = "/v1/observations", tag = "observations",
    request_body = ObservationWrite, responses((status = 201, body = RecordWritten),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonText(json): JsonText,
) -> Result<(StatusCode, Json<RecordWritten>), Failure> {
    let write = ObservationWrite::read(&json).map_err(Problem::from)?;
    let event_id = idempotency_key(&headers)?;
    let added = observations::add(&app, &caller, write, event_id).await?;
    let written = RecordWritten {
        record: shown(&caller, added.record),
        event_id_reused: added.event_id_reused,
    };
    Ok((StatusCode::CREATED, Json(written)))
}

/// What observations there are, newest first, page by page.
#[utoipa::path(get, path = "/v1/observations", tag = "observations", params(ListQuery),
    responses((status = 200, body = ListAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<ListAnswer>, Failure> {
    let ask = ListAsk::read(&pairs)?;
    observations::list(&app, &caller, &ask).await.map(Json)
}

/// What is known of some files, newest first.
#[utoipa::path(get, path = "/v1/observations/by-file", tag = "observations", params(FileQuery),
    responses((status = 200, body = FileAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn by_file(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<FileAnswer>, Failure> {
    let ask = FileAsk::read(&pairs)?;
    observations::by_file(&app, &caller, &ask).await.map(Json)
}

macro_rules! patch {
    ($path:literal, $kind:expr, $patch:ident) => {
        /// Lets the team read a record that its author kept private. There is no way back.
        #[utoipa::path(patch, path = $path, tag = "observations",
                    params(("id" = String, Path, description = "The record's id")),
                    request_body = RecordPatch, responses((status = 200, body = Record),
                        (status = "4XX", body = Problem, content_type = "application/problem+json"),
                        (status = 503, body = Problem, content_type = "application/problem+json")))]
        pub async fn $patch(
            State(app): State<Arc<App>>,
            caller: Caller,
            ApiPath(id): ApiPath<String>,
            ApiJson(patch): ApiJson<RecordPatch>,
        ) -> Result<Json<Record>, Failure> {
            let id = parse_id($kind, &id)?;
            let record = observations::promote(&app, &caller, id, patch.parse()?).await?;
            Ok(Json(shown(&caller, record)))
        }
    };
}

patch!(
    "/v1/observations/{id}",
    RecordKind::Observation,
    patch_observation
);
patch!("/v1/summaries/{id}", RecordKind::Summary, patch_summary);

macro_rules! by_id {
    ($path:literal, $kind:expr, $get:ident, $delete:ident) => {
        /// The record, if the caller may read it.
        #[utoipa::path(get, path = $path, tag = "observations",
                    params(("id" = String, Path, description = "The record's id")),
                    responses((status = 200, body = Record),
                        (status = "4XX", body = Problem, content_type = "application/problem+json"),
                        (status = 503, body = Problem, content_type = "application/problem+json")))]
        pub async fn $get(
            State(app): State<Arc<App>>,
            caller: Caller,
            ApiPath(id): ApiPath<String>,
        ) -> Result<Json<Record>, Failure> {
            let record = observations::get(&app, &caller, parse_id($kind, &id)?).await?;
            Ok(Json(shown(&caller, record)))
        }

        /// Deletes the record for good; again is no error.
        #[utoipa::path(delete, path = $path, tag = "observations",
                    params(("id" = String, Path, description = "The record's id")),
                    responses((status = 204),
                        (status = "4XX", body = Problem, content_type = "application/problem+json"),
                        (status = 503, body = Problem, content_type = "application/problem+json")))]
        pub async fn $delete(
            State(app): State<Arc<App>>,
            caller: Caller,
            ApiPath(id): ApiPath<String>,
        ) -> Result<StatusCode, Failure> {
            observations::delete(&app, &caller, parse_id($kind, &id)?).await?;
            Ok(StatusCode::NO_CONTENT)
        }
    };
}

by_id!(
    "/v1/observations/{id}",
    RecordKind::Observation,
    get_observation,
    delete_observation
);
by_id!(
    "/v1/summaries/{id}",
    RecordKind::Summary,
    get_summary,
    delete_summary
);
by_id!(
    "/v1/prompts/{id}",
    RecordKind::Prompt,
    get_prompt,
    delete_prompt
);

/// Several records at once, in the order asked for.
#[utoipa::path(post, path = "/v1/observations/batch", tag = "observations",
    request_body = RecordBatch, responses((status = 200, body = RecordBatchAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(batch): ApiJson<RecordBatch>,
) -> Result<Json<RecordBatchAnswer>, Failure> {
    let ids = batch.parse()?;
    let order = RecordOrder::parse(batch.order.as_deref())?;
    let mut records = observations::read(&app, &caller, &ids, batch.project.as_deref()).await?;
    let missing = ids
        .iter()
        .filter(|id| !records.iter().any(|record| record.row.id == **id));
    let missing = missing.map(ToString::to_string).collect();
    let when = |record: &cairn_domain::record::Record| (record.row.at, record.row.id);
    match order {
        RecordOrder::Given => {}
        RecordOrder::DateAscending => records.sort_by_key(when),
        RecordOrder::DateDescending => records.sort_by_key(|record| Reverse(when(record))),
    }
    Ok(Json(RecordBatchAnswer {
        items: records
            .into_iter()
            .map(|record| shown(&caller, record))
            .collect(),
        missing,
    }))
}
