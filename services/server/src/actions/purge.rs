//! Purge: removing for good what an admin names, acknowledged once all of it is gone (contract
//! 20.3).

use cairn_domain::Rejection;
use cairn_domain::ids::TenantId;
use cairn_domain::kind::{Counts, Kind};
use cairn_domain::scope::Scope;
use cairn_store::Store;
use cairn_store::purge::{PurgeFilter, Purger, Span};
use cairn_wire::export::counts_by_kind;
use cairn_wire::purge::{PurgeAnswer, PurgeAsk};

use super::projects::{place, widest_reader};
use super::still::may_still;
use super::{Attempts, Failure};
use crate::app::App;
use crate::auth::Caller;

/// Removes what stood when the call came. One that fails half way is ended by calling again.
///
/// # Errors
/// `invalid_field` if nothing is named, `not_found` for an unknown author or project, a lacking
/// scope, `credential_revoked` if the caller's rights end meanwhile, or an unavailable store.
pub async fn purge(app: &App, caller: &Caller, ask: &PurgeAsk) -> Result<PurgeAnswer, Failure> {
    caller.require(Scope::TenantAdmin)?;
    ask.check()?;
    let kinds = Kind::parse_all("/kinds", ask.kinds.iter().map(String::as_str))?;
    let mut tx = app.store.tenant(caller.tenant, "purge.begin").await?;
    let projects = match ask.project.as_deref().map(str::trim) {
        // Unlike a read's, its width never depends on where the caller stands.
        None | Some("") => widest_reader(&mut tx, caller).await?.projects,
        named => place(&mut tx, caller, named).await?.reader.projects,
    };
    let author = match ask.author.as_deref() {
        Some(name) => Some(tx.find_author(name).await?.ok_or(Rejection::NotFound)?),
        None => None,
    };
    tx.commit().await?;
    let filter = PurgeFilter {
        projects,
        author,
        before: ask.before.map(cairn_wire::time::within),
        kinds,
    };
    let purger = Purger {
        actor: Some(caller.principal),
        asked: &ask.words(),
        at: app.clock.now(),
    };
    let counts = match ask.dry_run {
        true => count_all(&app.store, caller.tenant, &filter).await?,
        false => {
            let by = Some((app, caller));
            remove_all(&app.store, caller.tenant, &filter, purger, by).await?
        }
    };
    Ok(PurgeAnswer {
        counts: counts_by_kind(&counts),
        dry_run: ask.dry_run,
    })
}

/// How much a purge would remove now.
///
/// # Errors
/// The store's.
pub async fn count_all(
    store: &Store,
    tenant: TenantId,
    filter: &PurgeFilter,
) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let mut tx = store.tenant(tenant, "purge.span").await?;
    let whole = tx.whole_span().await?;
    tx.commit().await?;
    for part in whole.parts() {
        let mut tx = store.tenant(tenant, "purge.count").await?;
        counts += tx.count_purge(filter, part).await?;
        tx.commit().await?;
    }
    Ok(counts)
}

/// Removes all that meets a filter now, in small transactions, as long as whoever it is `by` may;
/// the operator always does.
///
/// # Errors
/// `credential_revoked`, and the store's: what was removed until then stays so.
pub async fn remove_all(
    store: &Store,
    tenant: TenantId,
    filter: &PurgeFilter,
    purger: Purger<'_>,
    by: Option<(&App, &Caller)>,
) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let mut tx = store.tenant(tenant, "purge.span").await?;
    let whole = tx.whole_span().await?;
    tx.commit().await?;
    for part in whole.parts() {
        loop {
            let removed = step(store, tenant, Some((part, purger)), filter, by).await?;
            if removed.0.total() == 0 {
                break;
            }
            counts += removed.0;
        }
    }
    while step(store, tenant, None, filter, by).await?.1 > 0 {}
    Ok(counts)
}

/// One transaction of a writer, tried again if another was quicker: some of a span, or else of what
/// was said in sessions. How much it was, of what is counted and of the rest.
async fn step(
    store: &Store,
    tenant: TenantId,
    part: Option<(Span, Purger<'_>)>,
    filter: &PurgeFilter,
    by: Option<(&App, &Caller)>,
) -> Result<(Counts, u64), Failure> {
    let _turn = store.turn(tenant).await?;
    let mut attempts = Attempts::default();
    loop {
        let done = async {
            let mut tx = store.tenant(tenant, "purge.remove").await?;
            if let Some((app, caller)) = by {
                may_still(&mut tx, caller, Scope::TenantAdmin, app.clock.now()).await?;
            }
            let done = match part {
                Some((span, purger)) => (tx.purge_some(filter, span, purger).await?, 0),
                None => (Counts::default(), tx.scrub_sessions(filter).await?),
            };
            tx.commit().await?;
            Ok::<_, Failure>(done)
        };
        match done.await {
            Err(failure) if attempts.go_on_after(&failure).await => {}
            done => return done,
        }
    }
}
