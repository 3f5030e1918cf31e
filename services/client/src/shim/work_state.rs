//! The two tools of work state where the service cannot answer: writes wait in the spool, reads
//! come from the last copy and what waits (contract 5.5).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cairn_wire::Problem;
use cairn_wire::domain::Rejection;
use cairn_wire::work_state::{WorkQuery, WorkWrite};
use serde_json::Value;
use uuid::Uuid;

use super::answer;
use super::bridge::Bridge;
use super::message::Message;
use crate::commands::flush;
use crate::copies::Copies;
use crate::hooks::start_flusher;
use crate::project::Project;
use crate::spool::{Record, Spool};
use crate::work_state::{Offline, entry, is_waiting, refresh};

const WRITE: &str = "work_state_write";
const READ: &str = "work_state_read";

/// How long a read may take to be answered once more.
const AGAIN: Duration = Duration::from_secs(4);

/// How long the spool is looked through for a call: the service may have taken most of its time.
const PATIENCE: Duration = Duration::from_millis(300);

/// The answer once more, if entries of this machine waited for the service, which is back: a read
/// shows them with the rest. All else that waits is sent behind it.
pub async fn with_waiting(
    bridge: &Bridge,
    message: &Message,
    answer: Option<String>,
) -> Option<String> {
    if message.method != "tools/call" {
        return answer;
    }
    let spool = Spool::of(&bridge.dirs, &bridge.settings);
    if tool(message) != Some(READ) || !is_waiting(&spool) {
        start_flusher(&spool, &bridge.dirs);
        return answer;
    }
    let (dirs, settings) = (bridge.dirs.clone(), bridge.settings.clone());
    let again = async {
        let flush = move || flush::in_a_moment(&dirs, &settings);
        drop(tokio::task::spawn_blocking(flush).await);
        bridge.send(message, Uuid::now_v7()).await.ok().flatten()
    };
    match tokio::time::timeout(AGAIN, again).await {
        Ok(Some(again)) => Some(again),
        Ok(None) | Err(_) => answer,
    }
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
    let tool = tool(message)?;
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
    let write = WorkWrite::from_arguments(arguments).map_err(refusal)?;
    let action = write.action.as_deref().unwrap_or_default();
    if !action.trim().is_empty() {
        let why = "offline - to claim or release a task needs the service; nothing was stored";
        return Err(why.to_owned());
    }
    let (service, account) = bridge.account().ok_or(failure)?;
    let project = bridge.project().ok_or(failure)?;
    if !is_own(write.project.as_deref(), project) {
        let why = "offline - another project's lists need the service; nothing was stored";
        return Err(why.to_owned());
    }
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
    let query = WorkQuery::from_arguments(arguments).map_err(refusal)?;
    let (service, account) = bridge.account().ok_or(failure)?;
    let project = bridge.project().ok_or(failure)?;
    if !is_own(query.project.as_deref(), project) {
        return Err("offline - another project's lists need the service".to_owned());
    }
    let spool = Spool::of(&bridge.dirs, &bridge.settings);
    let (key, end) = (&project.name.key, Instant::now() + PATIENCE);
    let offline = Offline::read(&bridge.dirs, &spool, (service, &account), key, end);
    if offline.at.is_none() && offline.waiting == 0 {
        return Err(failure.to_owned());
    }
    let name = project.name.name.as_deref().unwrap_or(key);
    Ok(offline.render(name, &query))
}

/// Whether an argument names this project, or none.
fn is_own(argument: Option<&str>, project: &Project) -> bool {
    let text = argument.unwrap_or_default().trim();
    let name = &project.name;
    text.is_empty() || text == name.key || name.name.as_deref() == Some(text)
}

fn refusal(rejection: Rejection) -> String {
    Problem::from(rejection).text()
}
