//! Timeline: what happened around a record.

use cairn_domain::Rejection;
use cairn_domain::filter::Filter;
use cairn_domain::ids::RecordId;
use cairn_domain::scope::Scope;
use cairn_domain::text::terms;
use cairn_domain::timeline::{TimelineRow, render_no_anchor, render_timeline};
use cairn_store::search::Question;
use cairn_wire::timeline::{Anchor, TimelineAnswer, TimelineAsk, TimelineItem};

use super::Failure;
use super::projects::{place, place_by_id};
use super::search::index;
use crate::app::App;
use crate::auth::Caller;

/// The rows around a record, or around the best match of some words, all of its project.
///
/// # Errors
/// `not_found` for an anchor that is missing or not the caller's to see; for words as [`place`];
/// a lacking scope or an unavailable store.
pub async fn show(
    app: &App,
    caller: &Caller,
    ask: &TimelineAsk,
) -> Result<TimelineAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    let named = ask.project.as_deref();
    let (mut tx, anchor, reader) = match &ask.anchor {
        Anchor::Record(id) => {
            let mut tx = app.store.tenant(caller.tenant, "timeline.show").await?;
            let reader = place_by_id(&mut tx, caller, named).await?.reader;
            (tx, Some(*id), reader)
        }
        Anchor::Query(query) => {
            let mut tx = index::begin(app, caller.tenant).await?;
            let reader = place(&mut tx, caller, named).await?.reader;
            let (terms, everything) = (terms(query), Filter::default());
            let question = Question::new(&terms, &everything);
            let (tx, found) = index::ranked(app, tx, &question, &reader).await?;
            (tx, found.ranked.first().map(|(id, _)| *id), reader)
        }
    };
    let rows = match anchor {
        Some(anchor) => {
            tx.surroundings(anchor, ask.before, ask.after, &reader)
                .await?
        }
        None => Vec::new(),
    };
    tx.commit().await?;
    // A match may be gone before its neighbours are read; an anchor may not be the caller's.
    match (&ask.anchor, anchor.filter(|_| !rows.is_empty())) {
        (_, Some(anchor)) => {
            let text = render_timeline(anchor, &rows, ask.zone);
            Ok(answer(Some(anchor), rows, text))
        }
        (Anchor::Query(query), None) => Ok(answer(None, rows, render_no_anchor(query))),
        (Anchor::Record(_), None) => Err(Rejection::NotFound.into()),
    }
}

fn answer(anchor: Option<RecordId>, rows: Vec<TimelineRow>, text: String) -> TimelineAnswer {
    TimelineAnswer {
        anchor: anchor.map(|anchor| anchor.to_string()),
        rows: rows.into_iter().map(TimelineItem::from).collect(),
        text,
    }
}
