//! What a tenant's members used.

use cairn_domain::Rejection;
use cairn_domain::scope::Scope;
use cairn_store::page_cursor::PageScope;
use cairn_store::usage::{DayUsage, UsagePick, UsagePlace};
use cairn_wire::usage::{UsageAnswer, UsageAsk, UsageItem};

use super::Failure;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "usage";

/// A page of what members used, the newest day first.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; a lacking scope or an unavailable store.
pub async fn list(app: &App, caller: &Caller, ask: &UsageAsk) -> Result<UsageAnswer, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let ring = app.continuations.ring();
    let scope = PageScope::of(LIST, caller.tenant, caller.principal, &(ask.from, ask.to));
    let read = |cursor| ring.read_page::<UsagePlace>(&scope, cursor);
    let after = ask.cursor.as_deref();
    let after = after.map(|cursor| read(cursor).ok_or(Rejection::InvalidCursor));
    // One more than asked for tells whether there is another page.
    let pick = UsagePick {
        from: ask.from,
        to: ask.to,
        after: after.transpose()?,
        limit: ask.limit + 1,
    };
    let mut tx = app.store.tenant(caller.tenant, "usage.list").await?;
    let mut found = tx.usage(&pick).await?;
    tx.commit().await?;
    let wanted = usize::try_from(ask.limit).unwrap_or(usize::MAX);
    let more = found.len() > wanted;
    found.truncate(wanted);
    let next = found.last().filter(|_| more).map(|last| UsagePlace {
        day: last.day,
        member: last.member.clone(),
    });
    Ok(UsageAnswer {
        items: found.into_iter().map(item).collect(),
        next_cursor: next.map(|place| ring.seal_page(&scope, &place)),
    })
}

fn item(used: DayUsage) -> UsageItem {
    UsageItem {
        day: used.day,
        member: used.member,
        requests: used.requests,
        events: used.events,
        bytes: used.bytes,
        tokens: used.tokens,
    }
}
