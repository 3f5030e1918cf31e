//! The audit log, read page by page.

use cairn_domain::scope::Scope;
use cairn_store::audit::{AuditLine, AuditPick};
use cairn_wire::audit::{AuditAsk, AuditItem, AuditList};

use super::Failure;
use super::pages::Paging;
use crate::app::App;
use crate::auth::Caller;

/// The name of the list that its cursors are bound to.
const LIST: &str = "audit";

/// A page of the audit log, the newest first.
///
/// # Errors
/// `invalid_cursor` for a cursor of another list; a lacking scope or an unavailable store.
pub async fn list(app: &App, caller: &Caller, ask: &AuditAsk) -> Result<AuditList, Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let conditions = (&ask.period, &ask.actor, &ask.action);
    let paging = Paging::of(app, caller, LIST, &conditions, &ask.page);
    let pick = AuditPick {
        from: ask.period.from,
        until: ask.period.until,
        actor: ask.actor.as_deref(),
        action: ask.action.as_deref(),
        after: paging.after()?,
        limit: paging.limit(),
    };
    let mut tx = app.store.tenant(caller.tenant, "audit.list").await?;
    let mut found = tx.list_audit(&pick).await?;
    tx.commit().await?;
    let next_cursor = paging.cut(&mut found, AuditLine::place);
    let item = |line: AuditLine| AuditItem {
        at: line.at,
        actor: line.actor,
        action: line.action,
        target: line.target,
        detail: line.detail,
    };
    Ok(AuditList {
        items: found.into_iter().map(item).collect(),
        next_cursor,
    })
}
