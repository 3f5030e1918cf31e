//! Context: the text a session starts with.

mod rows;

use std::sync::Arc;

use cairn_domain::Rejection;
use cairn_domain::context::Zone;
use cairn_domain::ids::PrincipalId;
use cairn_domain::project::Family;
use cairn_domain::scope::Scope;
use cairn_wire::context::{Builder, ContextAsk, ContextQuery, Format};
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::Failure;
use super::projects::place;
use crate::app::App;
use crate::auth::Caller;
use crate::contexts::{Known, Rendered};
use rows::{matching, nothing, rows};

/// A context at an instant.
#[derive(Debug)]
pub struct Filled {
    rendered: Arc<Rendered>,
    now: DateTime<Utc>,
    zone: Zone,
}

impl Filled {
    /// The whole text, its parts set off by a blank line.
    #[must_use]
    pub fn text(&self) -> String {
        let parts = self.rendered.parts.iter();
        let size: usize = parts.map(|(_, template)| template.bytes() + 2).sum();
        let mut text = String::with_capacity(size);
        for (_, template) in &self.rendered.parts {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            template.fill_into(&mut text, self.now, self.zone);
        }
        text
    }

    /// Its parts with their names.
    pub fn parts(&self) -> impl Iterator<Item = (&str, String)> {
        let parts = self.rendered.parts.iter();
        parts.map(|(name, template)| (name.as_str(), template.fill(self.now, self.zone)))
    }

    /// The highest moment of the work state in it, `<ms>.<counter>`.
    #[must_use]
    pub fn hlc(&self) -> Option<&str> {
        self.rendered.hlc.as_deref()
    }
}

/// Renders the context of a project for its reader. `anew` renders what is kept once more.
///
/// # Errors
/// As [`place`]; `invalid_field`, a lacking scope or an unavailable store.
pub async fn render(
    app: &App,
    caller: &Caller,
    query: &ContextQuery,
    anew: bool,
) -> Result<Filled, Failure> {
    caller.require(Scope::MemoryRead)?;
    let ask = query.parse()?;
    let now = app.clock.now();
    // What is one reader's alone, or a search, is not kept.
    let is_kept = !anew && !ask.last_reply && !matches!(ask.format, Format::Overview(Some(_)));
    let rendered = if is_kept {
        kept(app, caller, query, &ask, now).await?
    } else {
        Arc::new(Box::pin(fresh(app, caller, query, &ask)).await?)
    };
    let zone = ask.zone;
    Ok(Filled {
        rendered,
        now,
        zone,
    })
}

/// Makes every kept part of the tenant worthless, on every replica.
///
/// # Errors
/// A lacking scope or an unavailable store.
pub async fn clear(app: &App, caller: &Caller, builder: Builder) -> Result<(), Failure> {
    caller.require_for_tenant(Scope::TenantAdmin)?;
    let Builder::Context = builder;
    let mut tx = app.store.tenant(caller.tenant, "context.clear").await?;
    tx.clear_contexts().await?;
    let (actor, now) = (Some(caller.principal), app.clock.now());
    tx.append_audit(actor, "cache.clear", "context", json!({}), now)
        .await?;
    Ok(tx.commit().await?)
}

async fn kept(
    app: &App,
    caller: &Caller,
    query: &ContextQuery,
    ask: &ContextAsk,
    now: DateTime<Utc>,
) -> Result<Arc<Rendered>, Failure> {
    let text = named(caller, query).ok_or(Rejection::ProjectRequired)?;
    let known = match app.contexts.find(caller, text).await? {
        Some(known) => known,
        None => match Box::pin(find(app, caller, text, query.project.as_deref())).await? {
            Found::Project(known) => known,
            Found::Unborn(name) => return Ok(Arc::new(nothing(&name, ask))),
        },
    };
    let make = || async {
        let mut tx = app.store.tenant(caller.tenant, "context.render").await?;
        // Whoever sees nothing of their own is read for as nobody: should they write something
        // private meanwhile, it must not get into what all others are shown.
        let principal = if known.is_own {
            caller.principal
        } else {
            NOBODY
        };
        let rendered = rows(&mut tx, &known.family, principal, ask, None).await?;
        tx.commit().await?;
        Ok(rendered)
    };
    app.contexts
        .get_or_render(caller, &known, ask.clone(), now, make)
        .await
}

/// What a caller named.
enum Found {
    Project(Arc<Known>),
    /// One that nothing was written to yet, by the name to show for it.
    Unborn(String),
}

/// Finds the place of a call in the database, and where it stands.
async fn find(
    app: &App,
    caller: &Caller,
    text: &str,
    argument: Option<&str>,
) -> Result<Found, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "context.place").await?;
    let place = place(&mut tx, caller, argument).await?;
    let members = place.members();
    let Some(project) = place.project else {
        return place
            .unborn
            .map(Found::Unborn)
            .ok_or_else(|| Rejection::ProjectRequired.into());
    };
    let (revision, is_own) = tx
        .context_revision(project.id, &members, &place.reader)
        .await?;
    tx.commit().await?;
    let known = Arc::new(Known {
        family: Family { project, members },
        revision,
        is_own,
    });
    app.contexts.note(caller, text, Arc::clone(&known)).await;
    Ok(Found::Project(known))
}

/// A principal that nobody is.
const NOBODY: PrincipalId = PrincipalId {
    key: -1,
    uuid: Uuid::nil(),
};

/// The text by which a caller names the project.
fn named<'a>(caller: &'a Caller, query: &'a ContextQuery) -> Option<&'a str> {
    let argument = query.project.as_deref().map(str::trim);
    let argument = argument.filter(|text| !text.is_empty());
    let limit = caller.project_limit.as_ref();
    argument
        .or(caller.current_project.as_deref())
        .or_else(|| limit.map(|project| project.key.as_str()))
}

async fn fresh(
    app: &App,
    caller: &Caller,
    query: &ContextQuery,
    ask: &ContextAsk,
) -> Result<Rendered, Failure> {
    let mut tx = app.store.tenant(caller.tenant, "context.render").await?;
    let place = place(&mut tx, caller, query.project.as_deref()).await?;
    let members = place.members();
    let Some(project) = place.project else {
        let name = place.unborn.ok_or(Rejection::ProjectRequired)?;
        return Ok(nothing(&name, ask));
    };
    let family = Family { project, members };
    if let Format::Overview(Some(words)) = &ask.format {
        // A search has a transaction of its own, with a limit of its own.
        drop(tx);
        return matching(app, caller, &family, ask, words).await;
    }
    let session = caller.session.as_ref().map(|session| session.id.as_str());
    let rendered = rows(&mut tx, &family, caller.principal, ask, session).await?;
    tx.commit().await?;
    Ok(rendered)
}
