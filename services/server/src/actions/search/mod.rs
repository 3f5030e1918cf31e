//! `mem_search`: the only orchestration of its steps. What may follow what, and what a step says,
//! is decided in the domain; here rows are found, state is kept and loaded. The search with filters
//! and pages stands in `find.rs`.

mod auto;
mod evidence;
mod find;
pub(super) mod index;
mod sequence;

pub use evidence::find_tool_uses;
pub use find::{find, render};

use cairn_domain::Rejection;
use cairn_domain::filter::Filter;
use cairn_domain::ids::RecordId;
use cairn_domain::project::{ProjectSet, Reader};
use cairn_domain::record::{Record, Row};
use cairn_domain::scope::Scope;
use cairn_domain::search::input::Input;
use cairn_domain::search::scope::{ScopeProjects, scope};
use cairn_domain::search::{
    Call, Continue, Cursor, Options, Plan, Reason, Shown, Step, Stored, join_timelines,
    render_complete, render_listing, render_selection, title,
};
use cairn_store::TenantTx;
use cairn_store::continuations::Loaded;
use cairn_wire::search::{MemSearchAnswer, SearchDetail, SearchRow};
use serde_json::Value;
use uuid::Uuid;

use super::Failure;
use super::projects::{Place, current_place, place};
use crate::app::App;
use crate::auth::Caller;
use index::{Index, index};

/// Takes one step of a search.
///
/// # Errors
/// The refusals of contract 7.8, a lacking scope, or an unavailable store.
pub async fn mem_search(
    app: &App,
    caller: &Caller,
    arguments: Value,
) -> Result<MemSearchAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    match Call::parse(&Input::read(arguments)?)? {
        Call::Start(options) => start(app, caller, options).await,
        Call::Continue(call) => follow(app, caller, &call).await,
        Call::Auto(options) => auto::auto(app, caller, options).await,
    }
}

async fn start(app: &App, caller: &Caller, options: Options) -> Result<MemSearchAnswer, Failure> {
    let now = app.clock.now();
    let (tx, begun) = begin(app, caller, options).await?;
    // No connection is held while the continuation is kept.
    let found = begun.index(app, tx).await?;
    let next = Stored::begin(begun.options, begun.scope, now, Uuid::now_v7().to_string());
    let answer = list(app, &found.rows, next).await?;
    Ok(MemSearchAnswer {
        partial: found.partial,
        ..answer
    })
}

/// A search whose place is known.
struct Begun {
    options: Options,
    reader: Reader,
    scope: String,
}

impl Begun {
    /// The rows of its index step.
    async fn index(&self, app: &App, tx: TenantTx) -> Result<Index, Failure> {
        let Options { query, limit, .. } = &self.options;
        index(app, tx, query, &Filter::default(), *limit, &self.reader).await
    }
}

async fn begin(
    app: &App,
    caller: &Caller,
    mut options: Options,
) -> Result<(TenantTx, Begun), Failure> {
    let mut tx = index::begin(app, caller.tenant).await?;
    let here = current_place(&mut tx, caller).await?;
    let scope = scope_of(caller, here.as_ref());
    let reader = match &options.project {
        None => here.ok_or(Rejection::ProjectRequired)?.reader,
        Some(argument) => {
            let named = place(&mut tx, caller, Some(argument)).await?;
            options.named = named.project.map(|project| project.id.uuid);
            named.reader
        }
    };
    let begun = Begun {
        options,
        reader,
        scope,
    };
    Ok((tx, begun))
}

async fn follow(app: &App, caller: &Caller, call: &Continue) -> Result<MemSearchAnswer, Failure> {
    let now = app.clock.now();
    let mut tx = app.store.tenant(caller.tenant, "search.scope").await?;
    let here = current_place(&mut tx, caller).await?;
    tx.commit().await?;
    let scope = scope_of(caller, here.as_ref());
    let stored = match app.continuations.load(&scope, &call.cursor, now).await? {
        Loaded::State(json) => Stored::from_json(&json)?,
        Loaded::Expired => return Err(Rejection::ExpiredContinuation.into()),
        Loaded::Unknown => return Err(Rejection::InvalidContinuation.into()),
    };
    let call = &named_alike(app, caller, call, here.as_ref(), &stored).await?;
    match stored.advance(call, &scope, now)? {
        Plan::Stop => Ok(complete(stored.step, Reason::CallerStopped)),
        Plan::Timeline {
            anchors,
            before,
            after,
        } => {
            let (tx, reader) = read_again(app, caller, here, &stored.options).await?;
            let rows = timeline(tx, &reader, &anchors, (before, after)).await?;
            list(app, &rows, stored.follow()).await
        }
        Plan::Details { records } => {
            let (tx, reader) = read_again(app, caller, here, &stored.options).await?;
            details(tx, caller, &reader, &records).await
        }
    }
}

/// The call with its project as the search was started with it, if it means the same one: a key, a
/// name and the current project may stand for one another.
async fn named_alike(
    app: &App,
    caller: &Caller,
    call: &Continue,
    here: Option<&Place>,
    stored: &Stored,
) -> Result<Continue, Failure> {
    let mut call = call.clone();
    let sent = call.conditions.project.as_deref();
    let Some(sent) = sent.filter(|_| call.conditions.project != stored.options.project) else {
        return Ok(call);
    };
    let meant = match &stored.options.project {
        Some(_) => stored.options.named,
        None => here.and_then(|here| Some(here.project.as_ref()?.id.uuid)),
    };
    let mut tx = app.store.tenant(caller.tenant, "search.named").await?;
    let named = match place(&mut tx, caller, Some(sent)).await {
        Ok(place) => place.project.map(|project| project.id.uuid),
        Err(Failure::Rejected(_)) => None,
        Err(failure) => return Err(failure),
    };
    if named.is_some() && named == meant {
        call.conditions.project.clone_from(&stored.options.project);
    }
    Ok(call)
}

async fn timeline(
    mut tx: TenantTx,
    reader: &Reader,
    anchors: &[Shown],
    (before, after): (u32, u32),
) -> Result<Vec<Row>, Failure> {
    let ids: Vec<RecordId> = anchors.iter().map(|anchor| anchor.id).collect();
    let timelines = tx.timeline(&ids, before, after, reader).await?;
    tx.commit().await?;
    let still_there = |(anchor, rows): (&Shown, Vec<Row>)| {
        let is_same = |row: &Row| row.id == anchor.id && row.project.id.uuid == anchor.project;
        rows.iter().any(is_same).then_some(rows)
    };
    let timelines = anchors.iter().zip(timelines).filter_map(still_there);
    Ok(join_timelines(timelines.collect()))
}

async fn details(
    mut tx: TenantTx,
    caller: &Caller,
    reader: &Reader,
    chosen: &[Shown],
) -> Result<MemSearchAnswer, Failure> {
    let ids: Vec<RecordId> = chosen.iter().map(|shown| shown.id).collect();
    let mut records = tx.get_records(&ids, reader).await?;
    tx.commit().await?;
    records.retain(|record| chosen.iter().any(|shown| is_shown(record, shown)));
    selected(caller, &records)
}

fn selected(caller: &Caller, records: &[Record]) -> Result<MemSearchAnswer, Failure> {
    let selection = render_selection(records, caller.view())?;
    let detail = |(record, text): (&Record, String)| SearchDetail {
        row: row(&record.row),
        text,
    };
    Ok(MemSearchAnswer {
        details: records.iter().zip(selection.blocks).map(detail).collect(),
        ..answer(Step::Details, selection.text, selection.reason)
    })
}

fn is_shown(record: &Record, shown: &Shown) -> bool {
    record.row.id == shown.id && record.row.project.id.uuid == shown.project
}

/// Renders a step that lists rows and keeps what the next one needs.
async fn list(app: &App, rows: &[Row], next: Stored) -> Result<MemSearchAnswer, Failure> {
    let step = next.listed_step();
    let cursor = new_cursor();
    let listing = render_listing(rows, next, &cursor)?;
    let mut answer = answer(step, listing.text, listing.reason);
    answer.rows = rows[..listing.shown].iter().map(row).collect();
    if let Some(next) = listing.next {
        let (state, now) = (next.to_json(), app.clock.now());
        app.continuations
            .save(&next.scope, &cursor, &state, next.expires_at, now)
            .await?;
        answer.status = "continue".to_owned();
        answer.continuation = Some(cursor.to_string());
        answer.expires_at = Some(next.expires_at);
    }
    Ok(answer)
}

fn new_cursor() -> Cursor {
    #[expect(
        clippy::disallowed_methods,
        reason = "a cursor is drawn from the system's randomness"
    )]
    Cursor::from_random(rand::random())
}

fn complete(step: Step, reason: Reason) -> MemSearchAnswer {
    answer(step, render_complete(step, reason), Some(reason))
}

fn answer(step: Step, text: String, reason: Option<Reason>) -> MemSearchAnswer {
    MemSearchAnswer {
        step: step.number(),
        phase: step.title().to_owned(),
        status: "complete".to_owned(),
        reason: reason.map(|reason| reason.code().to_owned()),
        partial: false,
        rows: Vec::new(),
        details: Vec::new(),
        continuation: None,
        expires_at: None,
        text,
    }
}

fn row(row: &Row) -> SearchRow {
    SearchRow {
        id: row.id.to_string(),
        kind: row.id.kind.word().to_owned(),
        title: title(&row.title),
        observation_type: row.kind.map(|kind| kind.name().to_owned()),
        project: row.project.key.clone(),
        author: row.author.clone(),
        at: row.at,
    }
}

/// Who may continue the search, and over which projects.
fn scope_of(caller: &Caller, here: Option<&Place>) -> String {
    let projects = match here.map(|here| &here.reader.projects) {
        Some(ProjectSet::Only(ids)) => ScopeProjects::Only(ids.iter().map(|id| id.uuid).collect()),
        Some(ProjectSet::All) | None => ScopeProjects::All,
    };
    scope(caller.tenant.uuid(), caller.principal.uuid, &projects)
}

/// The rights of a continued call, read anew, and the transaction they hold in. A project that is
/// gone leaves nothing to read.
async fn read_again(
    app: &App,
    caller: &Caller,
    here: Option<Place>,
    options: &Options,
) -> Result<(TenantTx, Reader), Failure> {
    let mut tx = app.store.tenant(caller.tenant, "search.follow").await?;
    let Some(argument) = &options.project else {
        return Ok((tx, here.ok_or(Rejection::ProjectRequired)?.reader));
    };
    let named = options.named.map(|named| named.to_string());
    let named = named.as_deref().unwrap_or(argument);
    let reader = match place(&mut tx, caller, Some(named)).await {
        Ok(place) => place.reader,
        Err(Failure::Rejected(Rejection::NotFound)) => Reader {
            principal: caller.principal,
            projects: ProjectSet::Only(Vec::new()),
        },
        Err(failure) => return Err(failure),
    };
    Ok((tx, reader))
}
