//! `cairn record`: events that no hook reports, such as the commits of a repository, on their
//! way through the spool like any others.

use std::io::BufRead;

use cairn_wire::domain::{json_text, wrapper_tags};
use cairn_wire::events::{ProjectName, SessionName};
use chrono::Utc;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Client, say};
use crate::exit::Failure;
use crate::spool::{Item, Record, Spool, VERSION};

/// One line of the input: an item of a request, of which only the kind must be named.
#[derive(Deserialize)]
struct Given {
    kind: String,
    event_id: Option<Uuid>,
    at: Option<String>,
    project: Option<ProjectName>,
    session: Option<SessionName>,
    #[serde(default)]
    body: Map<String, Value>,
}

/// Spools the events that standard input names, one JSON object a line. What a line leaves out
/// is a new event id, the present moment and this folder's project. Sends nothing itself.
pub fn record(client: &Client) -> Result<(), Failure> {
    let service = client.settings.service()?;
    let tenant = client.account(service).and_then(|account| account.tenant);
    let spool = Spool::of(&client.dirs, &client.settings);
    let mut count = 0;
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let unreadable = |why: &dyn std::fmt::Display| {
            Failure::Unreadable(format!(
                "line {}: {why}; the lines before it are spooled",
                at + 1
            ))
        };
        let line = line.map_err(|e| unreadable(&e))?;
        if line.trim().is_empty() {
            continue;
        }
        let record = Record {
            v: VERSION,
            service: Some(service.to_owned()),
            tenant: tenant.clone(),
            item: item(client, &line).map_err(|e| unreadable(&e))?,
        };
        spool
            .append(&record)
            .map_err(|cause| Failure::CannotWrite {
                what: "the spool".to_owned(),
                cause,
            })?;
        count += 1;
    }
    say(&format!("{count} spooled"));
    Ok(())
}

fn item(client: &Client, line: &str) -> serde_json::Result<Item> {
    let mended = json_text::mend_escapes(line);
    let given: Given = serde_json::from_str(&wrapper_tags::strip_json(&mended))?;
    let private = client.settings.visibility == cairn_wire::domain::event::Visibility::Private;
    Ok(Item {
        event_id: given.event_id.unwrap_or_else(Uuid::now_v7).to_string(),
        kind: given.kind,
        at: given
            .at
            .unwrap_or_else(|| cairn_wire::time::text(Utc::now())),
        project: Some(given.project.unwrap_or_else(|| client.project.name.clone())),
        session: given.session,
        after: None,
        agent_id: None,
        agent_type: None,
        branch: None,
        checkout: Some(client.project.checkout()),
        visibility: private.then(|| "private".to_owned()),
        body: given.body,
    })
}
