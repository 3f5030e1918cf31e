//! Work state: what lists say, read from the fold that stands beside their entries, and the
//! entries themselves. Appending stands in `events/work_entries.rs`.

use cairn_domain::hlc::Hlc;
use cairn_domain::ids::ProjectId;
use cairn_domain::limits;
use cairn_domain::project::ProjectSet;
use cairn_domain::work_state::{Held, Item, List, Place, WorkState};
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use crate::records::row::project_keys;
use crate::{StoreError, TenantTx};

/// Which lists are wanted.
#[derive(Clone, Copy, Debug)]
pub struct WorkPick<'a> {
    /// In these projects.
    pub projects: &'a ProjectSet,
    /// The project whose lists need no mention of it.
    pub project: Option<ProjectId>,
    /// This list alone.
    pub list: Option<&'a str>,
    /// Closed lists and tasks too.
    pub closed: bool,
}

/// The items of lists, one JSON value a row: newest list first, its state before its tasks. The
/// condition picks the items `i`; `$limit` bounds them, and each row says how many lines there
/// are in all.
macro_rules! work_items {
    ($condition:literal, $limit:literal) => {
        concat!(
            "with shown as (
               select i.project_id, i.list, i.task_digest, i.task, i.first_ms, i.first_counter,
                 i.first_event, i.last_ms, i.last_counter, i.last_event, i.author_id, i.keys,
                 i.holder, i.held_until
               from work_items i where i.tenant_id = $1 and ",
            $condition,
            "), total as (
               select count(*) + count(distinct (project_id, list))
                 - count(*) filter (where task_digest = '') as lines from shown)
             select json_build_array(i.project_id, p.name, i.list,
                 json_build_array(l.newest_ms, l.newest_counter, l.newest_event), i.task,
                 json_build_array(i.first_ms, i.first_counter, i.first_event),
                 json_build_array(i.last_ms, i.last_counter, i.last_event), a.name, i.keys,
                 i.holder, (extract(epoch from i.held_until) * 1000)::bigint, total.lines)::text
               as item
             from total, shown i
             join work_lists l on l.tenant_id = $1 and l.project_id = i.project_id
               and l.list = i.list
             join projects p on p.tenant_id = $1 and p.project_id = i.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = i.author_id
             order by l.newest_ms desc, l.newest_counter desc, l.newest_event desc, i.project_id,
               i.list, i.task_digest = '' desc, i.first_ms, i.first_counter, i.first_event
             limit ",
            $limit
        )
    };
}
pub(crate) use work_items;

/// An item as [`work_items`] selects it.
type ItemRow = (
    i32,
    String,
    String,
    Place,
    Option<String>,
    Place,
    Place,
    String,
    String,
    Option<String>,
    Option<i64>,
    usize,
);

/// The lists that rows of [`work_items`] make up.
pub(crate) fn gather(
    rows: impl Iterator<Item = String>,
    own: Option<ProjectId>,
) -> Result<WorkState, StoreError> {
    let mut state = WorkState::default();
    let mut lines = 0;
    for row in rows {
        let odd = |_| StoreError::inconsistent("work_items", "keys", "an item");
        let read: ItemRow = serde_json::from_str(&row).map_err(odd)?;
        let (project, project_name, name, newest, task, first, last, author, keys, ..) = read;
        let mut item = Item::from_stored(task, first, last, author, &keys).map_err(odd)?;
        let until = read.10.and_then(DateTime::from_timestamp_millis);
        item.claim = read
            .9
            .zip(until)
            .map(|(holder, until)| Held { holder, until });
        lines = read.11;
        let label = (own.map(|own| own.key) != Some(project)).then_some(project_name);
        let list = match state.lists.last_mut() {
            Some(list) if list.name == name && list.project == label && list.newest == newest => {
                list
            }
            _ => {
                state.lists.push(List {
                    name,
                    project: label,
                    newest,
                    state: None,
                    tasks: Vec::new(),
                });
                state.lists.last_mut().expect("pushed just now")
            }
        };
        match item.task {
            None => list.state = Some(item),
            Some(_) => list.tasks.push(item),
        }
    }
    let read = state.lists.iter().map(|list| list.tasks.len() + 1);
    state.unread_lines = lines.saturating_sub(read.sum());
    Ok(state)
}

/// An entry of the history.
#[derive(Clone, Debug, FromRow, PartialEq)]
pub struct HistoryEntry {
    /// The client's id of the event.
    pub event_id: Uuid,
    /// Its list.
    pub list: String,
    /// Its fields, exact JSON.
    pub fields: String,
    /// `claim`, `release` or none.
    pub action: Option<String>,
    hlc_ms: i64,
    hlc_counter: i64,
    after_ms: Option<i64>,
    after_counter: Option<i64>,
    /// When it was made, by its machine's clock.
    pub at: DateTime<Utc>,
    /// When it arrived.
    pub arrived_at: DateTime<Utc>,
    /// Who wrote it.
    pub author: String,
    /// The host's id of the session it was written in.
    pub session: Option<String>,
    /// The key of its project.
    pub project: String,
}

impl HistoryEntry {
    /// Its place in the fold.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            hlc: hlc(self.hlc_ms, self.hlc_counter),
            event: self.event_id,
        }
    }

    /// The highest moment its writer had seen.
    #[must_use]
    pub fn after(&self) -> Option<Hlc> {
        let both = self.after_ms.zip(self.after_counter);
        both.map(|(ms, counter)| hlc(ms, counter))
    }
}

pub(crate) fn hlc(ms: i64, counter: i64) -> Hlc {
    let counter = u32::try_from(counter).unwrap_or(u32::MAX);
    Hlc { ms, counter }
}

macro_rules! history {
    ($list:literal) => {
        concat!(
            "select w.event_id, w.list, w.fields, w.action, w.hlc_ms, w.hlc_counter, w.after_ms,
               w.after_counter, w.at, w.arrived_at, a.name as author,
               s.host_session_id as session, p.key as project
             from projects p
             cross join lateral (
               select e.* from work_entries e
               where e.tenant_id = $1 and e.project_id = p.project_id and ",
            $list,
            "    and (e.hlc_ms, e.hlc_counter, e.event_id) > ($4, $5, $6)
               order by e.hlc_ms, e.hlc_counter, e.event_id limit $7) w
             join principals a on a.tenant_id = $1 and a.principal_id = w.author_id
             left join sessions s on s.tenant_id = $1 and s.session_id = w.session_id
             where p.tenant_id = $1 and ($2::int[] is null or p.project_id = any ($2))
             order by w.hlc_ms, w.hlc_counter, w.event_id limit $7"
        )
    };
}

impl TenantTx {
    /// What the picked lists say, at most so many of their items as any answer has room for.
    ///
    /// # Errors
    /// `Inconsistent` if an item holds what it cannot; as any call of the store.
    pub async fn work_state(&mut self, pick: WorkPick<'_>) -> Result<WorkState, StoreError> {
        let statement = if pick.closed {
            work_items!(
                "($2::int[] is null or i.project_id = any ($2))
                 and ($3::text is null or i.list = $3) and not i.is_blank",
                "$4"
            )
        } else {
            work_items!(
                "($2::int[] is null or i.project_id = any ($2))
                 and ($3::text is null or i.list = $3) and not i.is_closed and not i.is_blank",
                "$4"
            )
        };
        let rows: Vec<(String,)> = sqlx::query_as(statement)
            .bind(self.tenant.key())
            .bind(project_keys(pick.projects))
            .bind(pick.list)
            .bind(i64::from(limits::WORK_ITEMS))
            .fetch_all(&mut *self.tx)
            .await?;
        gather(rows.into_iter().map(|row| row.0), pick.project)
    }

    /// The highest moment among the lists of these projects.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn newest_work_entry(
        &mut self,
        projects: &ProjectSet,
    ) -> Result<Option<Hlc>, StoreError> {
        let newest: Option<(i64, i64)> = sqlx::query_as(
            "select newest_ms, newest_counter from work_lists
             where tenant_id = $1 and ($2::int[] is null or project_id = any ($2))
             order by newest_ms desc, newest_counter desc limit 1",
        )
        .bind(self.tenant.key())
        .bind(project_keys(projects))
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(newest.map(|(ms, counter)| hlc(ms, counter)))
    }

    /// Entries in the order of the fold, those after a place, at most `limit`.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn work_history(
        &mut self,
        projects: &ProjectSet,
        list: Option<&str>,
        after: Option<Place>,
        limit: u32,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        let statement = match list {
            Some(_) => history!("e.list = $3"),
            None => history!("$3::text is null"),
        };
        let (ms, counter, event) = after.map_or((i64::MIN, 0, Uuid::nil()), Into::into);
        Ok(sqlx::query_as(statement)
            .bind(self.tenant.key())
            .bind(project_keys(projects))
            .bind(list)
            .bind(ms)
            .bind(i64::from(counter))
            .bind(event)
            .bind(i64::from(limit))
            .fetch_all(&mut *self.tx)
            .await?)
    }
}
