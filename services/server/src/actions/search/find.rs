//! `search`: what matches words and filters, page by page, as items or as one text.

use cairn_domain::Rejection;
use cairn_domain::ids::RecordId;
use cairn_domain::limits;
use cairn_domain::listing::{ListPlace, Listed};
use cairn_domain::project::Reader;
use cairn_domain::record::Record;
use cairn_domain::scope::Scope;
use cairn_domain::search::pages::{Matched, Progress, Total};
use cairn_domain::search::render_detail;
use cairn_domain::search::results::{Form, Results, render_results};
use cairn_domain::text::terms;
use cairn_store::StoreError;
use cairn_store::cursor_keys::KeyRing;
use cairn_store::page_cursor::PageScope;
use cairn_wire::search::{FindAsk, SearchAnswer, SearchItem};

use super::index::{begin, begin_again};
use super::sequence::{Part, Placed, Sequence};
use crate::actions::Failure;
use crate::actions::projects::places;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "search";
/// Records whose text is read at once: an answer seldom has room for more.
const TEXTS_AT_ONCE: usize = 10;

/// A page of results as items.
///
/// # Errors
/// `invalid_cursor` for a cursor of another search; as [`places`]; a lacking scope or an
/// unavailable store.
pub async fn find(app: &App, caller: &Caller, ask: &FindAsk) -> Result<SearchAnswer, Failure> {
    let page = page(app, caller, ask).await?;
    let next_cursor = page.cursor(app.continuations.ring(), page.listed.len());
    let scores = page.placed.into_iter().map(|placed| placed.score);
    let items = page.listed.into_iter().zip(scores);
    Ok(SearchAnswer {
        items: items
            .map(|(hit, score)| SearchItem::new(hit, score))
            .collect(),
        matched: page.matched.name().to_owned(),
        next_cursor,
        total: page.total.into(),
        partial: page.before.recent,
    })
}

/// A page of results as one text, with the records themselves if they are wanted.
///
/// # Errors
/// As [`find`].
pub async fn render(app: &App, caller: &Caller, ask: &FindAsk) -> Result<String, Failure> {
    let page = page(app, caller, ask).await?;
    let details = match ask.full {
        true => Some(details(app, caller, &page).await?),
        false => None,
    };
    let shown = details.as_ref().map_or(page.listed.len(), Vec::len);
    let results = Results {
        query: ask.query.as_deref(),
        hits: &page.listed[..shown],
        details: details.as_deref(),
        form: ask.form.unwrap_or(Form::Table),
        zone: ask.zone,
    };
    let ring = app.continuations.ring();
    Ok(render_results(results, |shown| page.cursor(ring, shown)))
}

/// A page of results, and where it stands.
struct Page {
    listed: Vec<Listed>,
    /// The same results in their places.
    placed: Vec<Placed>,
    matched: Matched,
    total: Total,
    before: Progress,
    more: bool,
    scope: PageScope,
    reader: Reader,
}

impl Page {
    /// The cursor of the page behind its first results; `None` if nothing is there.
    fn cursor(&self, ring: &KeyRing, shown: usize) -> Option<String> {
        if shown == 0 || (shown == self.listed.len() && !self.more) {
            return None;
        }
        let mut progress = self.before.clone();
        for (hit, placed) in self.listed.iter().zip(&self.placed).take(shown) {
            progress.pass(ListPlace::from(&hit.row), placed.score.is_some());
        }
        Some(ring.seal_page(&self.scope, &progress))
    }
}

async fn page(app: &App, caller: &Caller, ask: &FindAsk) -> Result<Page, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = begin(app, caller.tenant).await?;
    let (reader, named) = places(&mut tx, caller, &ask.projects).await?;
    let conditions = (named, &ask.query, &ask.filter, ask.order);
    let scope = PageScope::of(LIST, caller.tenant, caller.principal, &conditions);
    let before = match &ask.cursor {
        Some(cursor) => {
            let read = app.continuations.ring().read_page(&scope, cursor);
            read.ok_or(Rejection::InvalidCursor)?
        }
        None => Progress::begin(tx.horizon().await?),
    };
    let terms = ask.query.as_deref().map(terms).unwrap_or_default();
    let sequence = Sequence {
        ask,
        terms: &terms,
        reader: &reader,
    };
    let part = match sequence.page(&mut tx, before.clone()).await {
        Err(StoreError::Timeout) => {
            tx = begin_again(app, tx).await?;
            let recent = Progress {
                recent: true,
                ..before
            };
            sequence.page(&mut tx, recent).await
        }
        part => part,
    };
    let Part {
        mut placed,
        before,
        matched,
        total,
        more,
    } = part?;
    let ids: Vec<RecordId> = placed.iter().map(|placed| placed.id).collect();
    let listed = tx.get_listed(&ids, &reader).await?;
    tx.commit().await?;
    // One that was deleted since it was found is left out.
    placed.retain(|placed| listed.iter().any(|hit| hit.row.id == placed.id));
    Ok(Page {
        listed,
        placed,
        matched,
        total,
        before,
        more,
        scope,
        reader,
    })
}

/// The texts of the first records of a page, until there are more than an answer has room for.
async fn details(app: &App, caller: &Caller, page: &Page) -> Result<Vec<Option<String>>, Failure> {
    let view = caller.view();
    let mut tx = app.store.tenant(caller.tenant, "search.details").await?;
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for hits in page.listed.chunks(TEXTS_AT_ONCE) {
        let ids: Vec<RecordId> = hits.iter().map(|hit| hit.row.id).collect();
        let records = tx.get_records(&ids, &page.reader).await?;
        for id in ids {
            let record = records.iter().find(|record: &&Record| record.row.id == id);
            let text = record.map(|record| render_detail(record, view));
            bytes += text.as_ref().map_or(0, String::len);
            texts.push(text);
        }
        if bytes > limits::RESULTS_BYTES {
            break;
        }
    }
    tx.commit().await?;
    Ok(texts)
}
