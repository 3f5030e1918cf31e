//! Addresses that callers of an older service know (contract 9.2): second doors to the same
//! actions. They are in no document; [`names`] lists them.

mod names;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use cairn_wire::Problem;
use cairn_wire::observations::{FileAnswer, FileAsk, RecordBatch, RecordBatchAnswer};
use cairn_wire::query::Pairs;
use cairn_wire::reading::whole;
use cairn_wire::timeline::TimelineAsk;
use cairn_wire::work_state::{WorkQuery, WorkWrite};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::extract::{ApiJson, ApiPairs, idempotency_key};
use super::{context, observations, search, tool_uses};
use crate::actions::projects::last_known;
use crate::actions::{self, Failure, timeline, work_state};
use crate::app::App;
use crate::auth::Caller;

type Alias = (&'static str, &'static str, MethodRouter<Arc<App>>);

/// Every alias on one page: method, address, handler.
fn table() -> [Alias; 11] {
    [
        ("GET", "/api/search", get(find)),
        ("GET", "/api/timeline", get(show_timeline)),
        ("POST", "/api/observations/batch", post(batch)),
        ("GET", "/api/observations/by-file", get(by_file)),
        ("GET", "/api/context/inject", get(inject)),
        ("POST", "/api/work-state/entries", post(append)),
        ("POST", "/api/work-state", post(append_or_read)),
        ("GET", "/api/work-state", get(read)),
        ("POST", "/api/mem-search", post(search::mem_search)),
        ("POST", "/api/memory/save", post(observations::add)),
        ("POST", "/api/tool-uses/batch", post(tool_uses::batch)),
    ]
}

/// The aliases as routes.
pub fn routes() -> Router<Arc<App>> {
    let add = |routes: Router<Arc<App>>, (_, path, handler): Alias| routes.route(path, handler);
    table().into_iter().fold(Router::new(), add)
}

/// The aliases by name, as `GET /api/timeline`.
pub fn names() -> Vec<String> {
    let name = |(method, path, _): Alias| format!("{method} {path}");
    table().into_iter().map(name).collect()
}

/// As text if nothing else is asked for; what tool uses hold has no such form.
async fn find(
    state: State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Response, Failure> {
    let mut pairs = ours(&state, &caller, pairs).await?;
    if pairs.text("format").is_none() && pairs.text("kind") != Some("tool_use") {
        pairs.0.push(("format".to_owned(), "table".to_owned()));
    }
    search::find(state, caller, ApiPairs(pairs)).await
}

async fn show_timeline(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Response, Failure> {
    let pairs = ours(&app, &caller, pairs).await?;
    let answer = timeline::show(&app, &caller, &TimelineAsk::read(&pairs)?).await?;
    Ok(match pairs.text("format") {
        Some("json") => Json(answer).into_response(),
        _ => plain(StatusCode::OK, answer.text),
    })
}

async fn batch(
    state: State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<Value>,
) -> Result<Json<RecordBatchAnswer>, Failure> {
    let batch: RecordBatch = read_ours(body)?;
    observations::batch(state, caller, ApiJson(batch)).await
}

async fn by_file(
    state: State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Json<FileAnswer>, Failure> {
    let mut pairs = ours(&state, &caller, pairs).await?;
    // Theirs may stand between commas; ours come one by one, as a path may hold a comma.
    let files: Vec<String> = pairs.list("file").map(str::to_owned).collect();
    let files = files.into_iter().map(|file| ("path".to_owned(), file));
    pairs.0.extend(files);
    let ask = FileAsk::read(&pairs)?;
    actions::observations::by_file(&state, &caller, &ask)
        .await
        .map(Json)
}

async fn inject(
    state: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ApiPairs(pairs): ApiPairs,
) -> Result<Response, Failure> {
    let mut pairs = ours(&state, &caller, pairs).await?;
    if pairs.flag("full")? == Some(true) && pairs.text("format").is_none() {
        pairs.0.push(("format".to_owned(), "full".to_owned()));
    }
    // The names of types and concepts are plural here.
    for (name, _) in &mut pairs.0 {
        match name.as_str() {
            "type" => *name = "types".to_owned(),
            "concept" => *name = "concepts".to_owned(),
            _ => {}
        }
    }
    context::show(state, caller, headers, pairs.try_into()?).await
}

async fn append(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ApiJson(body): ApiJson<Value>,
) -> Result<Response, Failure> {
    let write: WorkWrite = read_ours(body)?;
    let event_id = idempotency_key(&headers)?;
    let written = work_state::write(&app, &caller, write, event_id).await?;
    Ok(plain(StatusCode::CREATED, written.text))
}

/// An entry if the body has fields, else the question that GET asks.
async fn append_or_read(
    state: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ApiJson(body): ApiJson<Value>,
) -> Result<Response, Failure> {
    if body.get("fields").is_some() {
        return append(state, caller, headers, ApiJson(body)).await;
    }
    let query: WorkQuery = read_ours(body)?;
    let answer = work_state::read(&state, &caller, &query).await?;
    Ok(plain(StatusCode::OK, answer.text))
}

async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiPairs(pairs): ApiPairs,
) -> Result<Response, Failure> {
    let pairs = ours(&app, &caller, pairs).await?;
    let query = WorkQuery {
        project: pairs.text("project").map(str::to_owned),
        list: pairs.text("list").map(str::to_owned),
        include_closed: pairs.flag("include_closed")?.unwrap_or(false),
        snapshot: false,
    };
    let answer = work_state::read(&app, &caller, &query).await?;
    Ok(plain(StatusCode::OK, answer.text))
}

/// Parameters by our names, the project among them: of several the last that is known, since
/// their callers name a worktree behind its repository.
async fn ours(app: &App, caller: &Caller, pairs: Pairs) -> Result<Pairs, Failure> {
    let mut pairs = names::ours(pairs);
    let named = names::projects(&pairs);
    let project = match named.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(last_known(app, caller, several).await?.to_owned()),
    };
    pairs
        .0
        .retain(|(name, _)| name != "project" && name != "projects");
    let project = project.map(|project| ("project".to_owned(), project));
    pairs.0.extend(project);
    Ok(pairs)
}

/// Reads a body by our names.
fn read_ours<T: DeserializeOwned>(body: Value) -> Result<T, Failure> {
    let read = whole(&names::our_body(body).to_string());
    read.map_err(|unreadable| Problem::from(unreadable).into())
}

fn plain(status: StatusCode, text: String) -> Response {
    let plain = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, plain, text).into_response()
}
