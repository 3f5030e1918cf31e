//! Pages of lists: where a page begins, and the cursor of the next. A cursor is good for its own
//! list, caller and conditions alone, and on any replica.

use std::fmt::Debug;

use cairn_domain::Rejection;
use cairn_store::page_cursor::PageScope;
use cairn_wire::pages::PageAsk;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::auth::Caller;

/// A page of a list that somebody asks for.
pub(super) struct Paging<'a> {
    app: &'a App,
    scope: PageScope,
    ask: &'a PageAsk,
}

impl<'a> Paging<'a> {
    /// A page of the list of this name under these conditions.
    pub fn of(
        app: &'a App,
        caller: &Caller,
        list: &str,
        conditions: &impl Debug,
        ask: &'a PageAsk,
    ) -> Self {
        let scope = PageScope::of(list, caller.tenant, caller.principal, conditions);
        Self { app, scope, ask }
    }

    /// The place behind which it begins; none for the first.
    ///
    /// # Errors
    /// `invalid_cursor` for a cursor of another list.
    pub fn after<T: DeserializeOwned>(&self) -> Result<Option<T>, Rejection> {
        let Some(cursor) = &self.ask.cursor else {
            return Ok(None);
        };
        let place = self.app.continuations.ring().read_page(&self.scope, cursor);
        place.map(Some).ok_or(Rejection::InvalidCursor)
    }

    /// How many rows to ask for: one more than are shown tells whether there is another page.
    pub const fn limit(&self) -> u32 {
        self.ask.limit + 1
    }

    /// Cuts the rows to the page; the cursor of the next one, if there is any.
    pub fn cut<T, P: Serialize>(
        &self,
        rows: &mut Vec<T>,
        place: impl Fn(&T) -> P,
    ) -> Option<String> {
        let wanted = usize::try_from(self.ask.limit).unwrap_or(usize::MAX);
        let more = rows.len() > wanted;
        rows.truncate(wanted);
        let last = rows.last().filter(|_| more)?;
        let ring = self.app.continuations.ring();
        Some(ring.seal_page(&self.scope, &place(last)))
    }
}
