//! `mode="auto"`: index, timeline and details in one call, each chosen by the words of titles. It
//! needs no continuation, so it works without Redis.

use cairn_domain::filter::Filter;
use cairn_domain::ids::RecordId;
use cairn_domain::record::Row;
use cairn_domain::search::auto::{best_titles, render_automatic, union};
use cairn_domain::search::{Options, Reason, Shown, Step, Stored, render_listing};
use cairn_domain::text::{TitleWords, without_stop_words};
use cairn_store::TenantTx;
use cairn_store::continuations::ContinuationError;
use cairn_wire::search::MemSearchAnswer;
use uuid::Uuid;

use super::index::{Index, index};
use super::{Begun, begin, complete, list, new_cursor, selected, timeline};
use crate::actions::Failure;
use crate::app::App;
use crate::auth::Caller;

/// Goes as far as titles lead.
pub(super) async fn auto(
    app: &App,
    caller: &Caller,
    options: Options,
) -> Result<MemSearchAnswer, Failure> {
    let (tx, begun) = begin(app, caller, options).await?;
    let words = TitleWords::of(&begun.options.query);
    let found = candidates(app, tx, &begun, &words).await?;
    let most = begun.options.max_details;
    let anchors: Vec<Shown> = best_titles(&words, &found.rows, most)
        .into_iter()
        .map(|row| Shown {
            id: row.id,
            project: row.project.id.uuid,
        })
        .collect();
    if anchors.is_empty() {
        return nearest(app, begun, found).await;
    }
    let around = (begun.options.depth_before, begun.options.depth_after);
    let tx = app.store.tenant(caller.tenant, "search.auto").await?;
    let rows = timeline(tx, &begun.reader, &anchors, around).await?;
    if rows.is_empty() {
        return Ok(ended(
            Step::Timeline,
            Reason::ContextNotFound,
            found.partial,
        ));
    }
    let best = best_titles(&words, &rows, most);
    if best.is_empty() {
        return Ok(ended(
            Step::Timeline,
            Reason::NoRelevantContext,
            found.partial,
        ));
    }
    let ids: Vec<RecordId> = best.iter().map(|row| row.id).collect();
    let mut tx = app.store.tenant(caller.tenant, "search.auto").await?;
    let records = tx.get_records(&ids, &begun.reader).await?;
    tx.commit().await?;
    let mut answer = selected(caller, &records)?;
    answer.text = render_automatic(Step::Details, &answer.text, None);
    answer.partial = found.partial;
    Ok(answer)
}

/// The index; if no title of it holds a word of the query, together with what the query finds
/// without its stop words.
async fn candidates(
    app: &App,
    tx: TenantTx,
    begun: &Begun,
    words: &TitleWords,
) -> Result<Index, Failure> {
    let tenant = tx.tenant();
    let mut found = begun.index(app, tx).await?;
    let rest = match best_titles(words, &found.rows, 1).is_empty() {
        true => without_stop_words(&begun.options.query),
        false => None,
    };
    if let Some(query) = rest {
        let tx = super::index::begin(app, tenant).await?;
        let (limit, everything) = (begun.options.limit, Filter::default());
        let second = index(app, tx, &query, &everything, limit, &begun.reader).await?;
        found.partial |= second.partial;
        found.rows = union(found.rows, second.rows, limit);
    }
    Ok(found)
}

/// Titles that share no word with the query: the caller chooses, if the search can be continued.
async fn nearest(app: &App, begun: Begun, found: Index) -> Result<MemSearchAnswer, Failure> {
    if found.rows.is_empty() {
        return Ok(ended(Step::Index, Reason::NoResults, found.partial));
    }
    let now = app.clock.now();
    let next = Stored::begin(begun.options, begun.scope, now, Uuid::now_v7().to_string());
    let mut answer = match list(app, &found.rows, next.clone()).await {
        Err(Failure::Continuations(ContinuationError::Unavailable(_))) => {
            without_cursor(&found.rows, next)?
        }
        answer => answer?,
    };
    let reason = Reason::NoRelevantCandidates;
    answer.text = render_automatic(Step::Index, &answer.text, Some(reason));
    answer.reason = Some(reason.code().to_owned());
    answer.partial = found.partial;
    Ok(answer)
}

fn without_cursor(rows: &[Row], next: Stored) -> Result<MemSearchAnswer, Failure> {
    let listing = render_listing(rows, next, &new_cursor())?;
    let text = format!(
        "{}{}",
        &listing.text[..listing.closing],
        Reason::ContinuationUnavailable.sentence()
    );
    let mut answer = super::answer(Step::Index, text, None);
    answer.rows = rows[..listing.shown].iter().map(super::row).collect();
    Ok(answer)
}

fn ended(step: Step, reason: Reason, partial: bool) -> MemSearchAnswer {
    let mut answer = complete(step, reason);
    answer.text = render_automatic(step, &answer.text, None);
    answer.partial = partial;
    answer
}
