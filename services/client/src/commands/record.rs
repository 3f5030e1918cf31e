//! `cairn record`: events that no hook reports, such as the commits of a repository, on their
//! way through the spool like any others.

use std::io::BufRead;

use cairn_wire::domain::event::Visibility;
use cairn_wire::domain::{json_text, redact};
use chrono::Utc;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Client, say};
use crate::exit::Failure;
use crate::spool::{Item, Record, Spool};

/// Spools the events that standard input names, one JSON object a line. What a line leaves out
/// is a new event id, the present moment and this folder's project. Sends nothing itself.
pub fn record(client: &Client) -> Result<(), Failure> {
    client.check_folder()?;
    let service = client.settings.service()?;
    let account = client.account(service);
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
        let item = item(client, &line).map_err(|e| unreadable(&e))?;
        let mut record = Record::new(item, service, account.as_ref());
        if record.item.project.is_none() {
            record.item.project = Some(client.project.name.clone());
            record.checkout_root = client.project.unnamed.clone();
        }
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

/// The item that a line names: of a request, but only the kind must be there.
fn item(client: &Client, line: &str) -> serde_json::Result<Item> {
    let mended = json_text::mend_escapes(line);
    let mut given: Map<String, Value> = serde_json::from_str(&redact::safe_json(&mended))?;
    given.retain(|_, value| !value.is_null());
    let mut default = |name: &str, value: Value| {
        given.entry(name).or_insert(value);
    };
    default("event_id", Uuid::now_v7().to_string().into());
    default("at", cairn_wire::time::text(Utc::now()).into());
    default("checkout", client.project.checkout().into());
    if client.settings.visibility == Visibility::Private {
        given.insert("visibility".to_owned(), Visibility::Private.name().into());
    }
    let mut item: Item = serde_json::from_value(Value::Object(given))?;
    let id = Uuid::parse_str(&item.event_id).map_err(serde::de::Error::custom)?;
    item.event_id = id.to_string();
    Ok(item)
}
