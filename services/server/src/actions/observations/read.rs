//! Records by id: one, several, and the text of `get_observations`.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::record::Record;
use cairn_domain::scope::Scope;
use cairn_domain::search::input::{ids, number, object};
use cairn_domain::search::{Records, render_part, render_records};
use cairn_domain::{Rejection, limits};
use serde_json::Value;

use crate::actions::Failure;
use crate::actions::projects::place_by_id;
use crate::app::App;
use crate::auth::Caller;

/// The record of this id.
///
/// # Errors
/// `not_found` if it is missing or not the caller's to see; a lacking scope or an unavailable
/// store.
pub async fn get(app: &App, caller: &Caller, id: RecordId) -> Result<Record, Failure> {
    let mut found = read(app, caller, &[id], None).await?;
    found.pop().ok_or_else(|| Rejection::NotFound.into())
}

/// Those of these records that the caller may read, in the order given.
///
/// # Errors
/// A lacking scope, an unknown project, or an unavailable store.
pub async fn read(
    app: &App,
    caller: &Caller,
    ids: &[RecordId],
    project: Option<&str>,
) -> Result<Vec<Record>, Failure> {
    caller.require(Scope::MemoryRead)?;
    let mut tx = app.store.tenant(caller.tenant, "observations.read").await?;
    let place = place_by_id(&mut tx, caller, project).await?;
    let records = tx.get_records(ids, &place.reader).await?;
    tx.commit().await?;
    Ok(records)
}

/// The text of `get_observations`: full records by id, a long one in parts.
///
/// # Errors
/// `invalid_input` naming the argument; otherwise as [`read`].
pub async fn render(app: &App, caller: &Caller, arguments: Value) -> Result<String, Failure> {
    caller.require(Scope::MemoryRead)?;
    let asked = Asked::read(arguments)?;
    let records = read(app, caller, &asked.ids, asked.project.as_deref()).await?;
    let view = caller.view();
    if let (Some(part), Some(record)) = (asked.part, records.first()) {
        return render_part(record, view, part)
            .ok_or_else(|| Rejection::invalid_input("part", "a part that the record has").into());
    }
    let is_missing = |id: &&RecordId| !records.iter().any(|record| record.row.id == **id);
    let missing: Vec<RecordId> = asked.ids.iter().filter(is_missing).copied().collect();
    let (found, asked) = (records.as_slice(), asked.ids.len());
    Ok(render_records(
        Records {
            found,
            asked,
            missing: &missing,
        },
        view,
    ))
}

/// The arguments of `get_observations`.
struct Asked {
    ids: Vec<RecordId>,
    project: Option<String>,
    part: Option<u32>,
}

impl Asked {
    fn read(arguments: Value) -> Result<Self, Rejection> {
        let arguments = object(arguments, &["project"], &["ids", "part"])?;
        let wanted = ids("ids", arguments.get("ids"))?.unwrap_or_default();
        let is_prompt = |id: &RecordId| id.kind == RecordKind::Prompt;
        if wanted.is_empty() || wanted.len() > limits::READ_IDS || wanted.iter().any(is_prompt) {
            let allowed = format!("1 to {} ids such as 41 or S7", limits::READ_IDS);
            return Err(Rejection::invalid_input("ids", &allowed));
        }
        let part = number("part", arguments.get("part"), 1, u32::MAX)?;
        if part.is_some() && wanted.len() != 1 {
            return Err(Rejection::invalid_input("part", "only with one id"));
        }
        let project = arguments
            .get("project")
            .and_then(Value::as_str)
            .map(str::to_owned);
        Ok(Self {
            ids: wanted,
            project,
            part,
        })
    }
}
