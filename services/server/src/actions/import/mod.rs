//! Import: an export read back line by line, batch by batch (contract 20.4). What was stored stays
//! stored, whatever comes after it; the same lines again store nothing.

mod batch;
mod lines;
mod pace;

use axum::body::Body;
use cairn_domain::Rejection;
use cairn_domain::bounds::head_bytes;
use cairn_domain::redact::safe;
use cairn_domain::scope::Scope;
use cairn_store::credentials::Noted;
use cairn_wire::events::ProjectName;
use cairn_wire::export::ExportHead;
use cairn_wire::import::{ImportAnswer, ImportQuery};
use cairn_wire::{Code, Problem};
use serde_json::json;

use super::Failure;
use super::export::ME;
use super::projects::{place, project_key};
use crate::app::App;
use crate::auth::Caller;
use batch::Importer;
use lines::{Ending, Lines, Step};

/// Seconds after which a caller may come back to a replica that is still there.
const RETRY_SECONDS: u32 = 2;

/// Stores the lines of a body, and says what became of them.
///
/// # Errors
/// `malformed_body` for what is no export; `digest_mismatch` for one that is cut off or differs
/// from its last line: then the detail says what was stored of it, and stays so; a lacking scope,
/// an unknown project, or an unavailable store.
pub async fn import(
    app: &App,
    caller: &Caller,
    query: &ImportQuery,
    body: Body,
) -> Result<ImportAnswer, Failure> {
    caller.require(Scope::MemoryWrite)?;
    let as_oneself = query.author.as_deref() == Some(ME) || !caller.is_admin();
    if query.author.as_deref().is_some_and(|author| author != ME) {
        return Err(Rejection::invalid_field("/author", "me, or absent").into());
    }
    let project = target(app, caller, query).await?;
    let mut lines = Lines::of(body);
    let done = store_lines(app, caller, query, &mut lines, (project, as_oneself)).await;
    if done.is_err() {
        // Whoever is still sending would not see the answer.
        lines.discard().await;
    }
    done
}

async fn store_lines(
    app: &App,
    caller: &Caller,
    query: &ImportQuery,
    lines: &mut Lines,
    (project, as_oneself): (Option<ProjectName>, bool),
) -> Result<ImportAnswer, Failure> {
    let head = lines.head().await?;
    note(app, caller, query, &head).await?;
    let mut importer = Importer::new(app, caller, project, &head, as_oneself);
    importer.dry_run = query.dry_run.unwrap_or(false);
    loop {
        match lines.next().await? {
            Step::Line { number, text } => {
                importer.take(number, text).await?;
            }
            Step::End(Ending::Whole) => {
                importer.flush().await?;
                return Ok(importer.answer());
            }
            Step::End(Ending::Broken(why)) => {
                importer.flush().await?;
                let stored = importer.answer();
                return Err(broken(why, &stored).into());
            }
        }
        if app.is_draining() {
            return Err(Problem::fault(Code::ShuttingDown)
                .retry_after(RETRY_SECONDS)
                .into());
        }
    }
}

/// The project that everything goes into, if one is named: a key in full may be a new one.
async fn target(
    app: &App,
    caller: &Caller,
    query: &ImportQuery,
) -> Result<Option<ProjectName>, Failure> {
    let named = query.project.as_deref().map(str::trim);
    let Some(text) = named.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // Found as the current one is: that need not exist yet.
    let there = Caller {
        current_project: Some(text.to_owned()),
        ..caller.clone()
    };
    let mut tx = app.store.tenant(caller.tenant, "import.project").await?;
    let place = place(&mut tx, &there, None).await?;
    tx.commit().await?;
    if place.project.is_none() && !text.contains(':') {
        return Err(Rejection::NotFound.into());
    }
    let key = project_key(&place, &there)?;
    Ok(Some(ProjectName {
        key: key.key,
        name: Some(key.name),
    }))
}

async fn note(
    app: &App,
    caller: &Caller,
    query: &ImportQuery,
    head: &ExportHead,
) -> Result<(), Failure> {
    if query.dry_run.unwrap_or(false) {
        return Ok(());
    }
    let mut tx = app.store.tenant(caller.tenant, "import.begin").await?;
    tx.note(Noted {
        actor: Some(caller.principal),
        action: "import",
        target: head_bytes(&safe(&head.tenant), 256),
        detail: json!({"source": head.source, "project": query.project.as_deref().map(safe),
            "author": query.author}),
        at: app.clock.now(),
    })
    .await?;
    Ok(tx.commit().await?)
}

fn broken(why: &str, stored: &ImportAnswer) -> Problem {
    let counts = stored.counts.iter().map(|(kind, counts)| {
        format!(
            "{kind}: {} stored, {} duplicate, {} deleted, {} refused",
            counts.stored, counts.duplicate, counts.deleted, counts.refused
        )
    });
    let counts = counts.collect::<Vec<_>>().join("; ");
    let counts = match counts.as_str() {
        "" => "nothing",
        some => some,
    };
    Problem::new(
        Code::DigestMismatch,
        format!("{why}; of what came before: {counts}"),
    )
}
