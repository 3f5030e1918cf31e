//! Searching tool uses: the newest are looked through one by one, for as long as a caller waits.
//! Nothing of what went in or came out is shown; the ids are for `get_tool_uses`.

use std::time::Instant;

use cairn_domain::ids::ToolUseId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::scope::Scope;
use cairn_domain::search::pages::{Matched, Order, Total};
use cairn_domain::text::{Held, SearchTerms, terms};
use cairn_domain::tool_use::ListedToolUse;
use cairn_domain::{Rejection, filter::Filter};
use cairn_store::page_cursor::PageScope;
use cairn_store::tool_uses::EvidenceRead;
use cairn_wire::search::{FindAsk, SearchAnswer, SearchItem};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::actions::Failure;
use crate::actions::projects::places;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "search.tool_uses";
/// Tool uses whose texts are in memory at once.
const AT_ONCE: usize = 50;

/// Where a page ended: the newest that was there at the first one, the last that was shown, and
/// what was found.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place(i64, i64, Matched, Total);

/// A page of the tool uses that hold some words, or that a filter lets pass.
///
/// # Errors
/// `invalid_cursor` for a cursor of another search; as [`places`]; a lacking scope or an
/// unavailable store.
pub async fn find_tool_uses(
    app: &App,
    caller: &Caller,
    ask: &FindAsk,
) -> Result<SearchAnswer, Failure> {
    caller.require_all(&[Scope::MemoryRead, Scope::EvidenceRead])?;
    let mut tx = app.store.tenant(caller.tenant, "search.tool_uses").await?;
    let (reader, named) = places(&mut tx, caller, &ask.projects).await?;
    let conditions = (named, &ask.query, &ask.filter, ask.order);
    let scope = PageScope::of(LIST, caller.tenant, caller.principal, &conditions);
    let ring = app.continuations.ring();
    let before: Option<Place> = match &ask.cursor {
        Some(cursor) => Some(
            ring.read_page(&scope, cursor)
                .ok_or(Rejection::InvalidCursor)?,
        ),
        None => None,
    };
    let read = EvidenceRead {
        at: app.clock.now(),
        detail: json!({"query": ask.query, "projects": ask.projects}),
    };
    let top = before.map(|Place(top, ..)| ToolUseId(top));
    let newest = tx.newest_tool_uses(&ask.filter, top, &reader, &read);
    let newest = newest.await?;
    tx.commit().await?;
    let mut listed = newest.listed;
    if is_of_observations(&ask.filter) {
        listed.clear();
    }
    if ask.order == Order::DateAscending {
        listed.reverse();
    }
    if let Some(Place(_, last, ..)) = before {
        listed.retain(|one| match ask.order {
            Order::DateAscending => one.id.0 > last,
            _ => one.id.0 < last,
        });
    }
    let looking = Looking {
        app,
        caller,
        reader: &reader,
        most: before.map(|_| ask.limit as usize + 1),
    };
    let (found, is_over) = match ask.query.as_deref() {
        None => (
            listed.into_iter().map(|one| (one, Held::All)).collect(),
            false,
        ),
        Some(query) => looking.through(listed, &terms(query)).await?,
    };
    let (matched, total) = match before {
        Some(Place(_, _, matched, total)) => (matched, total),
        None => counted(&found),
    };
    let least = match matched {
        Matched::All => Held::All,
        Matched::Any => Held::Any,
    };
    let wanted = found
        .into_iter()
        .filter(|(_, held)| *held >= least)
        .map(|(one, _)| one);
    let mut page: Vec<ListedToolUse> = wanted
        .skip(ask.offset as usize)
        .take(ask.limit as usize + 1)
        .collect();
    let more = page.len() > ask.limit as usize;
    page.truncate(ask.limit as usize);
    let top = top.or(newest.top).filter(|_| more);
    let next = top.zip(page.last());
    let next =
        next.map(|(top, last)| ring.seal_page(&scope, &Place(top.0, last.id.0, matched, total)));
    Ok(SearchAnswer {
        items: page.into_iter().map(SearchItem::from).collect(),
        matched: matched.name().to_owned(),
        next_cursor: next,
        total: total.into(),
        partial: newest.more || is_over,
    })
}

/// Whether it asks for what only observations have.
fn is_of_observations(filter: &Filter) -> bool {
    !filter.types.is_empty() || !filter.concepts.is_empty()
}

fn counted(found: &[(ListedToolUse, Held)]) -> (Matched, Total) {
    let count = |least: Held| found.iter().filter(|(_, held)| *held >= least).count();
    let (matched, count) = match count(Held::All) {
        0 => (Matched::Any, count(Held::Any)),
        all => (Matched::All, all),
    };
    (matched, u32::try_from(count).unwrap_or(u32::MAX).into())
}

/// Looks through texts, as many as there is time for.
struct Looking<'a> {
    app: &'a App,
    caller: &'a Caller,
    reader: &'a Reader,
    /// Found so many, it is enough.
    most: Option<usize>,
}

impl Looking<'_> {
    /// Those that hold something of the words, in their order, and whether the time was over.
    async fn through(
        &self,
        listed: Vec<ListedToolUse>,
        terms: &SearchTerms,
    ) -> Result<(Vec<(ListedToolUse, Held)>, bool), Failure> {
        let began = Instant::now();
        let mut found = Vec::new();
        if terms.is_empty() {
            return Ok((found, false));
        }
        let mut listed = listed.into_iter().peekable();
        while listed.peek().is_some() {
            if began.elapsed() > limits::EVIDENCE_SEARCH_TIME {
                return Ok((found, true));
            }
            if self.most.is_some_and(|most| found.len() >= most) {
                break;
            }
            let some: Vec<ListedToolUse> = listed.by_ref().take(AT_ONCE).collect();
            let ids: Vec<ToolUseId> = some.iter().map(|one| one.id).collect();
            let mut tx = self
                .app
                .store
                .tenant(self.caller.tenant, "search.tool_uses")
                .await?;
            let texts = tx.searched_tool_uses(&ids, self.reader).await?;
            tx.commit().await?;
            let terms = terms.clone();
            let held = tokio::task::spawn_blocking(move || {
                let held = texts
                    .iter()
                    .map(|texts| Ok((texts.id(), texts.holds(&terms)?)));
                held.collect::<Result<Vec<_>, Failure>>()
            });
            let held = held.await.map_err(|e| Failure::fault(e.to_string()))??;
            let held_by = |id| {
                held.iter()
                    .find(|(other, _)| *other == id)
                    .map(|(_, held)| *held)
            };
            let some = some
                .into_iter()
                .filter_map(|one| Some((held_by(one.id)?, one)));
            let some = some.filter(|(held, _)| *held > Held::Nothing);
            found.extend(some.map(|(held, one)| (one, held)));
        }
        Ok((found, false))
    }
}
