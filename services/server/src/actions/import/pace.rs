//! What an import asks before each batch: whether it still may, and whether it comes too fast.

use std::time::Duration;

use cairn_domain::scope::Scope;
use cairn_wire::Code;

use crate::actions::Failure;
use crate::actions::still::may_still;
use crate::app::App;
use crate::auth::Caller;
use crate::rates::take_events;

/// An import may take an hour, and its credential may end meanwhile.
///
/// # Errors
/// `credential_revoked` if it has; the store's.
pub(super) async fn may_go_on(app: &App, caller: &Caller, scope: Scope) -> Result<(), Failure> {
    let mut tx = app.store.tenant(caller.tenant, "import.rights").await?;
    may_still(&mut tx, caller, scope, app.clock.now()).await?;
    Ok(tx.commit().await?)
}

/// Lines count as events that come as fast as any; an import waits where a batch would be refused.
///
/// # Errors
/// The store's.
pub(super) async fn keep_pace(app: &App, caller: &Caller, lines: usize) -> Result<(), Failure> {
    loop {
        match take_events(app, caller, lines).await {
            Err(Failure::Problem(problem)) if problem.code == Code::RateLimited => {
                let seconds = problem.retry_after.unwrap_or(1).clamp(1, 60);
                tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
            }
            taken => return taken,
        }
    }
}
