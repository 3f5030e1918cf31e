//! The two tools of work state where the service cannot answer: writes wait in the spool, reads
//! come from the last copy and what waits (contract 5.5).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_wire::Problem;
use cairn_wire::domain::Rejection;
use cairn_wire::domain::search::input::{fields, flag, object};
use cairn_wire::work_state::{WorkQuery, WorkWrite};
use serde_json::Value;
use uuid::Uuid;

use super::answer;
use super::bridge::Bridge;
use super::message::Message;
use crate::copies::Copies;
use crate::project;
use crate::spool::{Record, Spool};
use crate::work_state::{Offline, entry, refresh};

const WRITE: &str = "work_state_write";
const READ: &str = "work_state_read";

/// What stands before every answer that a service which is away has not given.
const AWAY: &str = "service_unreachable";

/// Why a call is not sent at all: an excluded folder sends nothing.
pub fn refuse(bridge: &Bridge, message: &Message) -> Option<String> {
    let excluded =
        || project::is_excluded(&bridge.folder, &bridge.settings.exclude, &bridge.dirs.home);
    (tool(message)? == WRITE && excluded())
        .then(|| "Not stored: this folder is excluded.".to_owned())
}

/// Notes the moment that an answer names, and has the lists fetched for the time without the
/// service: after a call, because then they are in use.
pub fn note(bridge: &Bridge, message: &Message, answer: Option<&str>) {
    if tool(message).is_none() {
        return;
    }
    let (Some((service, account)), Some(project)) = (bridge.account(), bridge.project()) else {
        return;
    };
    let key = project.name.key.clone();
    let copies = Copies::of(&bridge.dirs, service, &account, &key);
    copies.note_seen(answer.and_then(answer::moment).as_deref());
    let Some(api) = bridge.signed(&account) else {
        return;
    };
    if !bridge.refreshing.swap(true, Ordering::Relaxed) {
        let done = Arc::clone(&bridge.refreshing);
        tokio::spawn(async move {
            drop(refresh(&api, &copies, &key).await);
            done.store(false, Ordering::Relaxed);
        });
    }
}

/// The answer to a call of one of the two tools that failed because the service is away, and
/// whether it is an error.
pub fn offline(
    bridge: &Bridge,
    message: &Message,
    event_id: Uuid,
    failure: &str,
) -> Option<(String, bool)> {
    let tool = tool(message).filter(|_| failure.starts_with(AWAY))?;
    let arguments = message.arguments.clone().unwrap_or_default();
    let answer = match tool {
        WRITE => write(bridge, arguments, event_id, failure),
        _ => read(bridge, arguments, failure),
    };
    Some(match answer {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    })
}

fn tool(message: &Message) -> Option<&str> {
    let name = message.name.as_deref();
    name.filter(|name| message.method == "tools/call" && [WRITE, READ].contains(name))
}

fn write(
    bridge: &Bridge,
    arguments: Value,
    event_id: Uuid,
    failure: &str,
) -> Result<String, String> {
    let arguments = object(
        arguments,
        &["list", "action", "project"],
        &["fields", "leaseMinutes"],
    );
    let arguments = arguments.map_err(refusal)?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    if text("action").is_some_and(|action| !action.trim().is_empty()) {
        let why = "offline - to claim or release a task needs the service; nothing was stored";
        return Err(why.to_owned());
    }
    let (service, account) = bridge.account().ok_or(failure)?;
    let project = bridge.project().ok_or(failure)?;
    if text("project").is_some_and(|text| !names(text, project)) {
        let why = "offline - another project's lists need the service; nothing was stored";
        return Err(why.to_owned());
    }
    let write = WorkWrite {
        list: text("list").unwrap_or_default().to_owned(),
        fields: fields("fields", arguments.get("fields"))
            .map_err(refusal)?
            .unwrap_or_default(),
        ..WorkWrite::default()
    };
    let seen = Copies::of(&bridge.dirs, service, &account, &project.name.key).seen();
    let session = Some(bridge.session.clone());
    let item = entry(&write, event_id, project, session, seen).map_err(refusal)?;
    let spool = Spool::of(&bridge.dirs, &bridge.settings);
    let record = Record::new(item, service, Some(&account));
    // Entries are never only counted: they are kept however full the spool is.
    let kept = spool.append(&record);
    kept.map_err(|e| format!("offline - not stored: the spool cannot be written: {e}"))?;
    Ok("Stored offline; it will be merged.".to_owned())
}

fn read(bridge: &Bridge, arguments: Value, failure: &str) -> Result<String, String> {
    let arguments = object(arguments, &["list", "project"], &["includeClosed"]);
    let arguments = arguments.map_err(refusal)?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let (service, account) = bridge.account().ok_or(failure)?;
    let project = bridge.project().ok_or(failure)?;
    if text("project").is_some_and(|text| !names(text, project)) {
        return Err("offline - another project's lists need the service".to_owned());
    }
    let spool = Spool::of(&bridge.dirs, &bridge.settings);
    let key = &project.name.key;
    let offline = Offline::read(&bridge.dirs, &spool, service, &account, key);
    if offline.at.is_none() && offline.waiting == 0 {
        return Err(failure.to_owned());
    }
    let query = WorkQuery {
        list: text("list").map(str::to_owned),
        include_closed: flag("includeClosed", arguments.get("includeClosed"))
            .map_err(refusal)?
            .unwrap_or(false),
        ..WorkQuery::default()
    };
    let name = project.name.name.as_deref().unwrap_or(key);
    Ok(offline.render(name, &query))
}

/// Whether a text names this project.
fn names(text: &str, project: &crate::project::Project) -> bool {
    let text = text.trim();
    let own = [
        Some(project.name.key.as_str()),
        project.name.name.as_deref(),
    ];
    text.is_empty() || own.contains(&Some(text))
}

fn refusal(rejection: Rejection) -> String {
    Problem::from(rejection).text()
}
