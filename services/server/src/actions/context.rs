//! Context: the text a session starts with.

use cairn_domain::context::{self, Options, Zone};
use cairn_domain::project::ProjectSet;
use cairn_domain::scope::Scope;
use cairn_domain::{Rejection, limits};
use cairn_store::context::ContextPick;
use cairn_wire::context::ContextQuery;

use super::Failure;
use super::projects::place;
use crate::app::App;
use crate::auth::Caller;

/// Renders the context of a project for its reader.
///
/// # Errors
/// As [`place`]; a lacking scope or an unavailable store.
pub async fn render(app: &App, caller: &Caller, query: &ContextQuery) -> Result<String, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "context.render").await?;
    let place = place(&mut tx, caller, query.project.as_deref()).await?;
    let name = match (&place.project, &place.unborn) {
        (Some(project), _) => project.name.clone(),
        (None, Some(name)) => name.clone(),
        (None, None) => "*".to_owned(),
    };
    let pick = ContextPick {
        observations: limits::CONTEXT_OBSERVATIONS,
        summaries: limits::CONTEXT_SUMMARIES,
        main_agent_only: true,
        ..ContextPick::default()
    };
    let rows = match &place.reader.projects {
        ProjectSet::Only(projects) if projects.is_empty() => context::ContextRows::default(),
        ProjectSet::Only(projects) => tx.context(projects, &place.reader, &pick).await?,
        // A session starts in one project; there is no context of all of them.
        ProjectSet::All => return Err(Rejection::ProjectRequired.into()),
    };
    tx.commit().await?;
    let zone = Zone::named(query.tz.as_deref().unwrap_or_default());
    Ok(context::render(
        &name,
        &rows,
        Options::default(),
        app.clock.now(),
        zone,
    ))
}
