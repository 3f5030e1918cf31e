//! Context: the text a session starts with.

use std::sync::Arc;

use cairn_domain::context::{
    ContextObservation, ContextRows, ContextTotals, Zone, render_index, render_overview,
    render_table,
};
use cairn_domain::ids::{PrincipalId, RecordId, RecordKind};
use cairn_domain::project::{Family, Reader};
use cairn_domain::record::{Record, RecordBody};
use cairn_domain::room::Room;
use cairn_domain::scope::Scope;
use cairn_domain::template::Template;
use cairn_domain::text::terms;
use cairn_domain::work_state::{WorkState, render_block};
use cairn_domain::{Rejection, limits};
use cairn_store::TenantTx;
use cairn_wire::context::{Builder, ContextAsk, ContextQuery, Format};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::Failure;
use super::projects::place;
use crate::app::App;
use crate::auth::Caller;
use crate::contexts::{Known, Rendered};

/// A context at an instant.
#[derive(Debug)]
pub struct Filled {
    rendered: Arc<Rendered>,
    now: DateTime<Utc>,
    zone: Zone,
}

impl Filled {
    /// The whole text, its parts set off by a blank line.
    #[must_use]
    pub fn text(&self) -> String {
        let parts = self.rendered.parts.iter();
        let size: usize = parts.map(|(_, template)| template.bytes() + 2).sum();
        let mut text = String::with_capacity(size);
        for (_, template) in &self.rendered.parts {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            template.fill_into(&mut text, self.now, self.zone);
        }
        text
    }

    /// Its parts with their names.
    pub fn parts(&self) -> impl Iterator<Item = (&str, String)> {
        let parts = self.rendered.parts.iter();
        parts.map(|(name, template)| (name.as_str(), template.fill(self.now, self.zone)))
    }

    /// The highest moment of the work state in it, `<ms>.<counter>`.
    #[must_use]
    pub fn hlc(&self) -> Option<&str> {
        self.rendered.hlc.as_deref()
    }
}

/// Renders the context of a project for its reader. `anew` renders what is kept once more.
///
/// # Errors
/// As [`place`]; `invalid_field`, a lacking scope or an unavailable store.
pub async fn render(
    app: &App,
    caller: &Caller,
    query: &ContextQuery,
    anew: bool,
) -> Result<Filled, Failure> {
    caller.require(Scope::MemoryRead)?;
    let ask = query.parse()?;
    let now = app.clock.now();
    // What is one reader's alone, or a search, is not kept.
    let is_kept = !anew && !ask.last_reply && !matches!(ask.format, Format::Overview(Some(_)));
    let rendered = if is_kept {
        kept(app, caller, query, &ask, now).await?
    } else {
        Arc::new(Box::pin(fresh(app, caller, query, &ask)).await?)
    };
    let zone = ask.zone;
    Ok(Filled {
        rendered,
        now,
        zone,
    })
}

/// Makes every kept part of the tenant worthless, on every replica.
///
/// # Errors
/// A lacking scope or an unavailable store.
pub async fn clear(app: &App, caller: &Caller, builder: Builder) -> Result<(), Failure> {
    caller.require(Scope::TenantAdmin)?;
    let Builder::Context = builder;
    let mut tx = app.store.tenant(caller.tenant, "context.clear").await?;
    tx.clear_contexts().await?;
    Ok(tx.commit().await?)
}

async fn kept(
    app: &App,
    caller: &Caller,
    query: &ContextQuery,
    ask: &ContextAsk,
    now: DateTime<Utc>,
) -> Result<Arc<Rendered>, Failure> {
    let text = named(caller, query).ok_or(Rejection::ProjectRequired)?;
    let known = match app.contexts.find(caller, text).await? {
        Some(known) => known,
        None => match Box::pin(find(app, caller, text, query.project.as_deref())).await? {
            Found::Project(known) => known,
            Found::Unborn(name) => return Ok(Arc::new(nothing(&name, ask))),
        },
    };
    let make = || async {
        let mut tx = app.store.tenant(caller.tenant, "context.render").await?;
        // Whoever sees nothing of their own is read for as nobody: should they write something
        // private meanwhile, it must not get into what all others are shown.
        let principal = if known.is_own {
            caller.principal
        } else {
            NOBODY
        };
        let rendered = rows(&mut tx, &known.family, principal, ask, None).await?;
        tx.commit().await?;
        Ok(rendered)
    };
    app.contexts
        .get_or_render(caller, &known, ask.clone(), now, make)
        .await
}

/// What a caller named.
enum Found {
    Project(Arc<Known>),
    /// One that nothing was written to yet, by the name to show for it.
    Unborn(String),
}

/// Finds the place of a call in the database, and where it stands.
async fn find(
    app: &App,
    caller: &Caller,
    text: &str,
    argument: Option<&str>,
) -> Result<Found, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "context.place").await?;
    let place = place(&mut tx, caller, argument).await?;
    let members = place.members();
    let Some(project) = place.project else {
        return place
            .unborn
            .map(Found::Unborn)
            .ok_or_else(|| Rejection::ProjectRequired.into());
    };
    let (revision, is_own) = tx
        .context_revision(project.id, &members, &place.reader)
        .await?;
    tx.commit().await?;
    let known = Arc::new(Known {
        family: Family { project, members },
        revision,
        is_own,
    });
    app.contexts.note(caller, text, Arc::clone(&known)).await;
    Ok(Found::Project(known))
}

/// A principal that nobody is.
const NOBODY: PrincipalId = PrincipalId {
    key: -1,
    uuid: Uuid::nil(),
};

/// The text by which a caller names the project.
fn named<'a>(caller: &'a Caller, query: &'a ContextQuery) -> Option<&'a str> {
    let argument = query.project.as_deref().map(str::trim);
    let argument = argument.filter(|text| !text.is_empty());
    let limit = caller.project_limit.as_ref();
    argument
        .or(caller.current_project.as_deref())
        .or_else(|| limit.map(|project| project.key.as_str()))
}

async fn fresh(
    app: &App,
    caller: &Caller,
    query: &ContextQuery,
    ask: &ContextAsk,
) -> Result<Rendered, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "context.render").await?;
    let place = place(&mut tx, caller, query.project.as_deref()).await?;
    let members = place.members();
    let Some(project) = place.project else {
        let name = place.unborn.ok_or(Rejection::ProjectRequired)?;
        return Ok(nothing(&name, ask));
    };
    let family = Family { project, members };
    let session = caller.session.as_ref().map(|session| session.id.as_str());
    let rendered = rows(&mut tx, &family, caller.principal, ask, session).await?;
    tx.commit().await?;
    Ok(rendered)
}

/// The context of a project that nothing was written to yet.
fn nothing(name: &str, ask: &ContextAsk) -> Rendered {
    let rows = ContextRows::default();
    match ask.format {
        Format::Index | Format::Full => index(name, &rows, &WorkState::default(), ask),
        Format::Table(_) => alone("table", render_table(name, None, &[], ask.zone)),
        Format::Overview(_) => {
            let totals = ContextTotals::default();
            alone("overview", render_overview(name, &rows, &totals, ask.zone))
        }
    }
}

async fn rows(
    tx: &mut TenantTx,
    family: &Family,
    principal: PrincipalId,
    ask: &ContextAsk,
    session: Option<&str>,
) -> Result<Rendered, Failure> {
    let Family { project, members } = family;
    let reader = Reader {
        principal,
        projects: cairn_domain::project::ProjectSet::Only(members.clone()),
    };
    match &ask.format {
        Format::Index | Format::Full => {
            let picked = tx.context(project.id, members, &reader, &ask.selection);
            let (mut rows, work) = picked.await?;
            if ask.last_reply {
                rows.last_reply = tx.last_reply(members, &reader, session).await?;
            }
            Ok(index(&project.name, &rows, &work, ask))
        }
        Format::Table(folder) => {
            let picked = tx.context_by_file(members, &reader, &ask.selection, folder.as_deref());
            let rows = picked.await?;
            let table = render_table(&project.name, folder.as_deref(), &rows, ask.zone);
            Ok(alone("table", table))
        }
        Format::Overview(query) => {
            let (rows, totals) = match query {
                None => {
                    let picked = tx.context(project.id, members, &reader, &ask.selection);
                    let (rows, _) = picked.await?;
                    (rows, tx.context_totals(members, &reader).await?)
                }
                Some(query) => matching(tx, &reader, ask, query).await?,
            };
            let text = render_overview(&project.name, &rows, &totals, ask.zone);
            Ok(alone("overview", text))
        }
    }
}

/// The observations that match some words, and what they come to.
async fn matching(
    tx: &mut TenantTx,
    reader: &Reader,
    ask: &ContextAsk,
    query: &str,
) -> Result<(ContextRows, ContextTotals), Failure> {
    if cairn_domain::bounds::units(query) > limits::QUERY_UNITS || query.len() > limits::QUERY_BYTES
    {
        let allowed = format!("at most {} UTF-16 code units", limits::QUERY_UNITS);
        return Err(Rejection::invalid_field("/query", allowed).into());
    }
    let wanted = ask.selection.observations.min(limits::READ_IDS as u32);
    let found = tx.search_index(&terms(query), reader, wanted).await?;
    let is_wanted = |id: &RecordId| id.kind == RecordKind::Observation;
    let ids: Vec<RecordId> = found.iter().map(|row| row.id).filter(is_wanted).collect();
    let records = tx.get_records(&ids, reader).await?;
    let mut sessions: Vec<_> = records
        .iter()
        .map(|record| record.session.clone())
        .collect();
    sessions.sort_unstable();
    sessions.dedup();
    let observations: Vec<_> = records.iter().filter_map(observation).collect();
    let totals = ContextTotals {
        observations: observations.len() as u64,
        sessions: sessions.len() as u64,
        read_tokens: observations.iter().map(|o| u64::from(o.read_tokens)).sum(),
    };
    let rows = ContextRows {
        observations,
        ..ContextRows::default()
    };
    Ok((rows, totals))
}

fn observation(record: &Record) -> Option<ContextObservation> {
    let RecordBody::Observation(body) = &record.body else {
        return None;
    };
    Some(ContextObservation {
        number: record.row.id.number,
        at: record.row.at,
        kind: record.row.kind?,
        title: record.row.title.clone(),
        narrative: None,
        facts: None,
        read_tokens: body.read_tokens,
        work_tokens: body.work_tokens,
        author: record.row.author.clone(),
    })
}

/// Work state first, then the index in the room that it leaves.
fn index(name: &str, rows: &ContextRows, work: &WorkState, ask: &ContextAsk) -> Rendered {
    let is_endless = ask.format == Format::Full;
    let room = |room: Room| if is_endless { Room::ENDLESS } else { room };
    let block = render_block(work, room(ask.budget.work_state()));
    let left = room(ask.budget.index(block.size()));
    let index = render_index(name, rows, ask.options, ask.zone, left);
    Rendered {
        parts: vec![
            ("work_state".to_owned(), block),
            ("index".to_owned(), index),
        ],
        hlc: work.newest().map(|hlc| hlc.to_string()),
    }
}

/// A context of one part that holds no hour.
fn alone(name: &str, text: String) -> Rendered {
    Rendered {
        parts: vec![(name.to_owned(), Template::text(text))],
        hlc: None,
    }
}
