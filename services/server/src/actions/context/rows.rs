//! What a context holds, read and rendered.

use cairn_domain::context::{
    ContextObservation, ContextRows, ContextTotals, render_index, render_overview, render_table,
};
use cairn_domain::filter::Filter;
use cairn_domain::ids::{PrincipalId, RecordId, RecordKind};
use cairn_domain::project::{Family, ProjectSet, Reader};
use cairn_domain::record::{Record, RecordBody};
use cairn_domain::room::Room;
use cairn_domain::template::Template;
use cairn_domain::text::terms;
use cairn_domain::work_state::{WorkState, render_block};
use cairn_domain::{Rejection, bounds, limits};
use cairn_store::TenantTx;
use cairn_store::search::Question;
use cairn_wire::context::{ContextAsk, Format};

use crate::actions::Failure;
use crate::actions::search::index;
use crate::app::App;
use crate::auth::Caller;
use crate::contexts::Rendered;

/// The context of a project that nothing was written to yet.
pub(super) fn nothing(name: &str, ask: &ContextAsk) -> Rendered {
    let rows = ContextRows::default();
    match ask.format {
        Format::Index | Format::Full => index(name, &rows, &WorkState::default(), ask),
        Format::Table(_) => alone("table", render_table(name, None, &[], ask.zone)),
        Format::Overview(_) => overview(name, &rows, &ContextTotals::default(), ask),
    }
}

/// The context of a project as a principal sees it.
pub(super) async fn rows(
    tx: &mut TenantTx,
    family: &Family,
    principal: PrincipalId,
    ask: &ContextAsk,
    session: Option<&str>,
) -> Result<Rendered, Failure> {
    let Family { project, members } = family;
    let reader = Reader {
        principal,
        projects: ProjectSet::Only(members.clone()),
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
        // Without its words: see `matching`.
        Format::Overview(_) => {
            let picked = tx.context(project.id, members, &reader, &ask.selection);
            let (rows, _) = picked.await?;
            let totals = tx.context_totals(members, &reader).await?;
            Ok(overview(&project.name, &rows, &totals, ask))
        }
    }
}

/// The overview of the observations that match some words, and what they come to.
pub(super) async fn matching(
    app: &App,
    caller: &Caller,
    family: &Family,
    ask: &ContextAsk,
    query: &str,
) -> Result<Rendered, Failure> {
    if bounds::units(query) > limits::QUERY_UNITS || query.len() > limits::QUERY_BYTES {
        let allowed = format!("at most {} UTF-16 code units", limits::QUERY_UNITS);
        return Err(Rejection::invalid_field("/query", allowed).into());
    }
    let reader = Reader {
        principal: caller.principal,
        projects: ProjectSet::Only(family.members.clone()),
    };
    let wanted = ask.selection.observations.min(limits::READ_IDS as u32);
    let (terms, filter) = (
        terms(query),
        Filter {
            kinds: vec![RecordKind::Observation],
            types: ask.selection.types.clone(),
            concepts: ask.selection.concepts.clone(),
            ..Filter::default()
        },
    );
    let tx = index::begin(app, caller.tenant).await?;
    let (mut tx, found) = index::ranked(app, tx, &Question::new(&terms, &filter), &reader).await?;
    let best = found.ranked.iter().take(wanted as usize);
    let ids: Vec<RecordId> = best.map(|(id, _)| *id).collect();
    let records = tx.get_records(&ids, &reader).await?;
    tx.commit().await?;
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
    Ok(overview(&family.project.name, &rows, &totals, ask))
}

fn overview(
    project: &str,
    rows: &ContextRows,
    totals: &ContextTotals,
    ask: &ContextAsk,
) -> Rendered {
    alone("overview", render_overview(project, rows, totals, ask.zone))
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
