//! Work state while the service is away: entries wait in the spool like all records, and are
//! shown merged into the last copy of the lists.

use std::time::{Duration, Instant};

use cairn_wire::domain::hlc::{Arrival, Hlc};
use cairn_wire::domain::room::{Room, Size};
use cairn_wire::domain::work_state::{Lines, Place, WorkEntry, WorkState, render_read};
use cairn_wire::domain::{Rejection, context::Zone, limits};
use cairn_wire::session::SessionName;
use cairn_wire::time;
use cairn_wire::work_state::{WorkAnswer, WorkQuery, WorkWrite};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::account::{Account, Tenants};
use crate::api::{Api, query_string};
use crate::config::Dirs;
use crate::copies::{Copies, WorkCopy};
use crate::exit::Failure;
use crate::project::Project;
use crate::spool::{Addressee, Item, Record, Spool};

/// The kind of an entry on the wire.
const KIND: &str = "work_entry";

/// How long the spool is looked through for entries while the service is there.
const GLANCE: Duration = Duration::from_millis(500);

/// Whether entries wait that a service which answers does not know yet.
#[must_use]
pub fn is_waiting(spool: &Spool) -> bool {
    !spool.is_empty() && !spool.waiting_of(KIND, Instant::now() + GLANCE).is_empty()
}

/// An entry that is to wait in the spool; it makes and moves no claim.
///
/// # Errors
/// What the service would refuse it for.
pub fn entry(
    write: &WorkWrite,
    event_id: Uuid,
    project: &Project,
    session: Option<SessionName>,
    seen: Option<Hlc>,
) -> Result<Item, Rejection> {
    let draft = write.parse()?;
    let mut body = Map::new();
    body.insert("list".to_owned(), Value::String(draft.list));
    // As they were checked: what is private in them is gone.
    let fields = serde_json::from_str(&draft.fields).expect("written as JSON");
    body.insert("fields".to_owned(), fields);
    Ok(Item {
        event_id: event_id.to_string(),
        kind: KIND.to_owned(),
        at: time::text(Utc::now()),
        project: Some(project.name.clone()),
        session,
        after: seen.map(|seen| seen.to_string()),
        agent_id: None,
        agent_type: None,
        branch: project.branch.clone(),
        checkout: Some(project.checkout()),
        visibility: None,
        body,
    })
}

/// The lists of a project as this machine knows them: the last copy, and what waits for the
/// service merged into it.
#[derive(Debug, Default)]
pub struct Offline {
    /// When the copy was made; none if there is none.
    pub at: Option<DateTime<Utc>>,
    /// The lists.
    pub work: WorkState,
    /// Entries that wait.
    pub waiting: usize,
}

impl Offline {
    /// Reads the copy and merges what is found waiting until `end`.
    #[must_use]
    pub fn read(
        dirs: &Dirs,
        spool: &Spool,
        (service, account): (&str, &Account),
        key: &str,
        end: Instant,
    ) -> Self {
        let copy = Copies::of(dirs, service, account, key).work();
        let mut offline = Self {
            at: copy.as_ref().map(|copy| copy.at),
            work: copy.map(|copy| copy.work).unwrap_or_default(),
            waiting: 0,
        };
        let to = Addressee {
            service: service.to_owned(),
            account: account.clone(),
            tenants: Tenants::of(dirs, service),
            machine: String::new(),
        };
        let now = Utc::now();
        let mut previous = None;
        for record in spool.waiting_of(KIND, end) {
            let project = record.item.project.as_ref();
            if project.is_none_or(|project| project.key != key) || !to.is_for(&record) {
                continue;
            }
            if let Some(entry) = waiting(&record, now, &mut previous) {
                offline.work.add(&entry);
                offline.waiting += 1;
            }
        }
        offline
    }

    /// The lines of the lists, below the time of the copy.
    #[must_use]
    pub fn render(&self, project: &str, query: &WorkQuery) -> String {
        let mut work = self.work.clone();
        if let Some(list) = query
            .list
            .as_deref()
            .map(str::trim)
            .filter(|list| !list.is_empty())
        {
            work.lists.retain(|own| own.name == list);
            (work.unread_lines, work.unread_open_lines) = (0, 0);
        }
        let which = Lines {
            closed: query.include_closed,
            authors: true,
        };
        let head = match self.at {
            Some(at) => format!("Offline copy of {}:\n", time::text(at)),
            None => "Offline; no copy yet, only what waits to be sent:\n".to_owned(),
        };
        let room = Room::units(limits::WORK_READ_UNITS).less(Size::of(&head));
        head + &render_read(project, &work, which, room).fill(Utc::now(), Zone::UTC)
    }
}

/// A record as an entry of the fold, at the moment that the service will give it at the earliest.
fn waiting(record: &Record, now: DateTime<Utc>, previous: &mut Option<Hlc>) -> Option<WorkEntry> {
    let item = &record.item;
    let write = WorkWrite {
        list: item.body.get("list")?.as_str()?.to_owned(),
        fields: item.body.get("fields")?.as_object()?.clone(),
        after: item.after.clone(),
        ..WorkWrite::default()
    };
    let draft = write.parse().ok()?;
    let hlc = Hlc::of(Arrival {
        at: item.at.parse().ok()?,
        sent_at: now,
        arrived_at: now,
        after: draft.after,
        previous: *previous,
    });
    *previous = Some(hlc);
    Some(WorkEntry {
        list: draft.list,
        task: draft.task,
        fields: serde_json::from_str(&draft.fields).ok()?,
        place: Place {
            hlc,
            event: item.event_id.parse().ok()?,
        },
        author: "you".to_owned(),
    })
}

/// Fetches the lists of a project for the time without the service.
///
/// # Errors
/// As [`Api::json`].
pub async fn refresh(api: &Api, copies: &Copies, project_key: &str) -> Result<(), Failure> {
    let query = WorkQuery {
        include_closed: true,
        snapshot: true,
        ..WorkQuery::default()
    };
    let api = api.clone().within(project_key);
    let request = api.get(&format!("/v1/work-state?{}", query_string(&query)));
    let answer: WorkAnswer = api.json(request).await?;
    copies.note_seen(answer.hlc.as_deref());
    if let Some(work) = answer.snapshot {
        copies.keep_work(&WorkCopy {
            at: Utc::now(),
            work,
        });
    }
    Ok(())
}
