//! What observations there are, page by page or by file.

use cairn_domain::Rejection;
use cairn_domain::ids::RecordId;
use cairn_domain::listing::ListPlace;
use cairn_domain::scope::Scope;
use cairn_domain::text::SearchTerms;
use cairn_store::page_cursor::PageScope;
use cairn_store::search::{Question, Walk};
use cairn_wire::observations::{FileAnswer, FileAsk, ListAnswer, ListAsk, ListItem};

use crate::actions::Failure;
use crate::actions::projects::place;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "observations";

/// A page of a project's observations, newest first.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; as [`place`]; a lacking scope or an unavailable
/// store.
pub async fn list(app: &App, caller: &Caller, ask: &ListAsk) -> Result<ListAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "observations.list").await?;
    let place = place(&mut tx, caller, ask.project.as_deref()).await?;
    let ring = app.continuations.ring();
    let conditions = (
        place.project.as_ref().map(|project| project.id.uuid),
        &ask.filter,
    );
    let scope = PageScope::of(LIST, caller.tenant, caller.principal, &conditions);
    let read = |cursor| ring.read_page::<ListPlace>(&scope, cursor);
    let after = ask.cursor.as_deref();
    let after = after.map(|cursor| read(cursor).ok_or(Rejection::InvalidCursor));
    let (nothing, filter) = (SearchTerms::default(), &ask.filter);
    // One more than asked for tells whether there is another page.
    let walk = Walk {
        after: after.transpose()?,
        limit: ask.limit + 1,
        ..Walk::default()
    };
    let question = Question::new(&nothing, filter);
    let mut found = tx.search_in_time(&question, &walk, &place.reader).await?;
    let wanted = usize::try_from(ask.limit).unwrap_or(usize::MAX);
    let more = found.len() > wanted;
    found.truncate(wanted);
    let next = found.last().filter(|_| more);
    let next = next.map(|last| ring.seal_page(&scope, last));
    let ids: Vec<RecordId> = found.iter().map(|place| place.id).collect();
    let found = tx.get_listed(&ids, &place.reader).await?;
    tx.commit().await?;
    Ok(ListAnswer {
        items: found.into_iter().map(ListItem::from).collect(),
        next_cursor: next,
    })
}

/// What is known of some files of a project.
///
/// # Errors
/// As [`place`]; a lacking scope or an unavailable store.
pub async fn by_file(app: &App, caller: &Caller, ask: &FileAsk) -> Result<FileAnswer, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app
        .store
        .tenant(caller.tenant, "observations.by_file")
        .await?;
    let place = place(&mut tx, caller, ask.project.as_deref()).await?;
    let found = tx.observations_by_file(&ask.paths, ask.limit, &place.reader);
    let found = found.await?;
    tx.commit().await?;
    Ok(found.into())
}
