//! `cairn work`: the team's lists, for people.

use std::time::{Duration, Instant};

use cairn_wire::domain::work_state::Action;
use cairn_wire::work_state::{
    HistoryAnswer, HistoryQuery, WorkAnswer, WorkQuery, WorkWrite, WorkWritten,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Client, flush, say};
use crate::api::{self, Api, query_string};
use crate::cli::{Work, WorkCommand, WorkEntry};
use crate::copies::Copies;
use crate::exit::Failure;
use crate::hooks;
use crate::spool::{Record, Spool};
use crate::work_state::{Offline, entry, is_waiting, refresh};

/// How long a person waits for the copy that is kept.
const COPY_PATIENCE: Duration = Duration::from_secs(2);

/// How long a person waits for what is looked up in the spool.
const OFFLINE_PATIENCE: Duration = Duration::from_secs(5);

/// Runs what is asked; without more words it lists what is open.
pub fn work(client: &Client, what: Work) -> Result<(), Failure> {
    match what.command {
        None => read(client, what.list, what.all, what.project),
        Some(WorkCommand::Add(add)) => write(client, add, None, None),
        Some(WorkCommand::Done { list, task }) => {
            let closing = WorkEntry::of(&list, &task, &["status=done"]);
            write(client, closing, None, None)
        }
        Some(WorkCommand::Claim {
            list,
            task,
            minutes,
        }) => {
            let claim = Action::Claim { minutes: 0 };
            write(
                client,
                WorkEntry::of(&list, &task, &[]),
                Some(claim),
                minutes,
            )
        }
        Some(WorkCommand::Release { list, task }) => write(
            client,
            WorkEntry::of(&list, &task, &[]),
            Some(Action::Release),
            None,
        ),
        Some(WorkCommand::History { list, limit }) => history(client, list, limit),
    }
}

fn read(
    client: &Client,
    list: Option<String>,
    all: bool,
    project: Option<String>,
) -> Result<(), Failure> {
    let query = WorkQuery {
        project,
        list,
        include_closed: all,
        snapshot: false,
    };
    let api = client.api()?;
    let ask = || {
        let request = api.get(&format!("/v1/work-state?{}", query_string(&query)));
        api::block_on(api.json::<WorkAnswer>(request))
    };
    match ask() {
        Ok(mut answer) => {
            // The service is back: what was written without it is read with the rest.
            if is_waiting(&Spool::of(&client.dirs, &client.settings)) {
                flush::in_a_moment(&client.dirs, &client.settings);
                answer = ask().unwrap_or(answer);
            }
            say(&answer.text);
            keep_copy(client, &api);
            Ok(())
        }
        // Better than nothing, and marked as what it is.
        Err(failure @ Failure::Unreachable(_)) if query.project.is_none() => {
            let offline = offline(client, &query)?;
            offline.map_or(Err(failure), |text| {
                say(&text);
                Ok(())
            })
        }
        Err(failure) => Err(failure),
    }
}

/// What this machine knows of the lists; `None` if that is nothing.
fn offline(client: &Client, query: &WorkQuery) -> Result<Option<String>, Failure> {
    let service = client.settings.service()?;
    let Some(account) = client.account(service) else {
        return Ok(None);
    };
    let name = client.named_project()?.name;
    let spool = Spool::of(&client.dirs, &client.settings);
    let end = Instant::now() + OFFLINE_PATIENCE;
    let lists = Offline::read(&client.dirs, &spool, (service, &account), &name.key, end);
    let known = lists.at.is_some() || lists.waiting > 0;
    let name = name.name.unwrap_or(name.key);
    Ok(known.then(|| lists.render(&name, query)))
}

fn write(
    client: &Client,
    what: WorkEntry,
    action: Option<Action>,
    minutes: Option<u32>,
) -> Result<(), Failure> {
    client.check_folder()?;
    let write = WorkWrite {
        fields: what.fields()?,
        list: what.list,
        action: action.map(|action| action.name().to_owned()),
        lease_minutes: minutes,
        event_id: Some(Uuid::now_v7()),
        ..WorkWrite::default()
    };
    let api = client.api()?;
    match api::block_on(send(&api, &write)) {
        Ok(written) => {
            say(&written.text);
            hooks::start_flusher(&Spool::of(&client.dirs, &client.settings), &client.dirs);
            keep_copy(client, &api);
            Ok(())
        }
        Err(Failure::Unreachable(_)) if action.is_none() => spool(client, &write),
        Err(failure) => Err(failure),
    }
}

/// Keeps the lists for the time without the service; nobody waits long for it.
fn keep_copy(client: &Client, api: &Api) {
    let (Ok(service), Ok(project)) = (client.settings.service(), client.named_project()) else {
        return;
    };
    let Some(account) = client.account(service) else {
        return;
    };
    let key = &project.name.key;
    let copies = Copies::of(&client.dirs, service, &account, key);
    drop(api::block_on(async {
        let kept = tokio::time::timeout(COPY_PATIENCE, refresh(api, &copies, key)).await;
        Ok(kept)
    }));
}

async fn send(api: &Api, write: &WorkWrite) -> Result<WorkWritten, Failure> {
    let body = serde_json::to_vec(write).expect("texts and scalars serialise");
    api.json(api.post("/v1/work-state/entries", body)).await
}

/// Keeps the entry for when the service is back.
fn spool(client: &Client, write: &WorkWrite) -> Result<(), Failure> {
    let service = client.settings.service()?;
    let account = client.account(service);
    let project = client.named_project()?;
    let seen = account
        .as_ref()
        .and_then(|account| Copies::of(&client.dirs, service, account, &project.name.key).seen());
    let id = write.event_id.unwrap_or_else(Uuid::now_v7);
    let item = entry(write, id, &project, None, seen);
    let item = item.map_err(|refusal| Failure::Usage(refusal.to_string()))?;
    let spool = Spool::of(&client.dirs, &client.settings);
    spool
        .append(&Record::new(item, service, account.as_ref()))
        .map_err(|cause| Failure::CannotWrite {
            what: "the spool".to_owned(),
            cause,
        })?;
    say("Stored offline; it will be merged.");
    Ok(())
}

fn history(client: &Client, list: Option<String>, limit: Option<u32>) -> Result<(), Failure> {
    let query = HistoryQuery {
        list,
        limit,
        ..HistoryQuery::default()
    };
    let api = client.api()?;
    let request = api.get(&format!("/v1/work-state/history?{}", query_string(&query)));
    let page: HistoryAnswer = api::block_on(api.json(request))?;
    for item in &page.items {
        let action = item.action.as_deref().map(|action| format!(" ({action})"));
        say(&format!(
            "{}  {}  {}{}  {}",
            cairn_wire::time::text(item.at),
            item.author,
            item.list,
            action.unwrap_or_default(),
            item.fields
        ));
    }
    if page.next_cursor.is_some() {
        say("More: --limit shows up to 200.");
    }
    Ok(())
}

impl WorkEntry {
    /// An entry of a task.
    fn of(list: &str, task: &str, pairs: &[&str]) -> Self {
        let task = format!("task={task}");
        Self {
            list: list.to_owned(),
            fields: pairs
                .iter()
                .map(|pair| (*pair).to_owned())
                .chain([task])
                .collect(),
        }
    }

    /// Pairs `key=value` as fields: a value that reads as a number, true, false or null is one.
    fn fields(&self) -> Result<Map<String, Value>, Failure> {
        let pair = |text: &String| {
            let (key, value) = text.split_once('=')?;
            let scalar = serde_json::from_str::<Value>(value).ok();
            let scalar = scalar.filter(|value| !value.is_object() && !value.is_array());
            let is_name = key == "task";
            let value = scalar
                .filter(|_| !is_name)
                .unwrap_or_else(|| Value::from(value));
            Some((key.to_owned(), value))
        };
        let fields: Option<Map<String, Value>> = self.fields.iter().map(pair).collect();
        fields.ok_or_else(|| Failure::Usage("give fields as key=value".to_owned()))
    }
}
