//! Work state: what lists say, read from the fold that stands beside their entries, and the
//! entries themselves. Appending stands in `events/work_entries.rs`.

use cairn_domain::hlc::Hlc;
use cairn_domain::ids::ProjectId;
use cairn_domain::limits;
use cairn_domain::project::{Project, ProjectSet};
use cairn_domain::work_state::{Held, Item, List, Place, WorkState};
use chrono::{DateTime, Utc};
use serde::Deserialize;
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
/// condition picks the items `i`; `$limit` bounds them, open ones first, and each row says how many
/// lines there are in all, and of what is open. What is counted and sorted is narrow, however much
/// there is of it: the texts are read for the rows that are left. Selects [`ShownItem`].
macro_rules! work_items {
    ($condition:literal, $limit:literal) => {
        concat!(
            "with shown as materialized (
               select i.project_id, i.list, i.task_digest, i.first_ms, i.first_counter,
                 i.first_event, i.is_closed
               from work_items i where i.tenant_id = $1 and ",
            $condition,
            "), total as materialized (
               select count(*) + count(distinct (project_id, list))
                 - count(*) filter (where task_digest = '') as lines,
               count(*) filter (where not is_closed)
                 + count(distinct (project_id, list)) filter (where not is_closed)
                 - count(*) filter (where task_digest = '' and not is_closed) as open_lines
               from shown),
             top as materialized (
               select s.*, l.newest_ms, l.newest_counter, l.newest_event
               from shown s join work_lists l
                 on l.tenant_id = $1 and l.project_id = s.project_id and l.list = s.list
               order by s.is_closed, l.newest_ms desc, l.newest_counter desc,
                 l.newest_event desc, s.project_id, s.list, s.task_digest = '' desc, s.first_ms,
                 s.first_counter, s.first_event
               limit ",
            $limit,
            ")
             select json_build_array(t.project_id, p.name, t.list,
                 json_build_array(t.newest_ms, t.newest_counter, t.newest_event), i.task,
                 json_build_array(t.first_ms, t.first_counter, t.first_event),
                 json_build_array(i.last_ms, i.last_counter, i.last_event), a.name, i.keys,
                 i.holder, (extract(epoch from i.held_until) * 1000)::bigint,
                 (select lines from total), (select open_lines from total))::text as item
             from top t
             join work_items i on i.tenant_id = $1 and i.project_id = t.project_id
               and i.list = t.list and i.task_digest = t.task_digest
             join projects p on p.tenant_id = $1 and p.project_id = t.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = i.author_id
             order by t.newest_ms desc, t.newest_counter desc, t.newest_event desc, t.project_id,
               t.list, t.task_digest = '' desc, t.first_ms, t.first_counter, t.first_event"
        )
    };
}
pub(crate) use work_items;

/// Open items: tenant, projects or null, list or null, at most so many.
pub(crate) const OPEN_ITEMS: &str = work_items!(
    "($2::int[] is null or i.project_id = any ($2))
     and ($3::text is null or i.list = $3) and not i.is_closed and not i.is_blank",
    "$4"
);
/// The same with closed ones.
const ALL_ITEMS: &str = work_items!(
    "($2::int[] is null or i.project_id = any ($2))
     and ($3::text is null or i.list = $3) and not i.is_blank",
    "$4"
);

/// An item as [`work_items`] selects it: an array in this order.
#[derive(Deserialize)]
struct ShownItem {
    project_id: i32,
    project: String,
    list: String,
    newest: Place,
    task: Option<String>,
    first: Place,
    last: Place,
    author: String,
    keys: String,
    holder: Option<String>,
    held_until_ms: Option<i64>,
    lines: usize,
    open_lines: usize,
}

impl ShownItem {
    fn item(self) -> serde_json::Result<Item> {
        let until = self.held_until_ms.and_then(DateTime::from_timestamp_millis);
        let claim = self.holder.zip(until);
        let mut item =
            Item::from_stored(self.task, self.first, self.last, self.author, &self.keys)?;
        item.claim = claim.map(|(holder, until)| Held { holder, until });
        Ok(item)
    }
}

/// The lists that rows of [`work_items`] make up.
pub(crate) fn gather(
    rows: impl Iterator<Item = String>,
    own: Option<ProjectId>,
) -> Result<WorkState, StoreError> {
    let odd = |_| StoreError::inconsistent("work_items", "keys", "an item");
    let mut state = WorkState::default();
    let (mut lines, mut open_lines) = (0, 0);
    let mut last = None;
    for row in rows {
        let row: ShownItem = serde_json::from_str(&row).map_err(odd)?;
        (lines, open_lines) = (row.lines, row.open_lines);
        let at = (row.project_id, row.list.clone());
        if last.as_ref() != Some(&at) {
            let is_own = own.is_some_and(|own| own.key == row.project_id);
            state.lists.push(List {
                name: row.list.clone(),
                project: (!is_own).then(|| row.project.clone()),
                newest: row.newest,
                state: None,
                tasks: Vec::new(),
            });
            last = Some(at);
        }
        let list = state.lists.last_mut().expect("pushed above");
        let item = row.item().map_err(odd)?;
        match item.task {
            None => list.state = Some(item),
            Some(_) => list.tasks.push(item),
        }
    }
    let read = state.lists.iter().map(|list| list.tasks.len() + 1);
    state.unread_lines = lines.saturating_sub(read.sum());
    let read = state.lists.iter().map(List::open_lines);
    state.unread_open_lines = open_lines.saturating_sub(read.sum());
    Ok(state)
}

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEntry {
    /// The project of its list.
    pub project: Project,
    /// Its list.
    pub list: String,
    /// Its moment.
    pub hlc: Hlc,
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
        let statement = if pick.closed { ALL_ITEMS } else { OPEN_ITEMS };
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

    /// Where an entry was appended, by its event id.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn find_work_entry(
        &mut self,
        event_id: Uuid,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let row: Option<(i32, Uuid, String, String, String, i64, i64)> = sqlx::query_as(
            "select p.project_id, p.uid, p.key, p.name, w.list, w.hlc_ms, w.hlc_counter
             from work_entries w
             join projects p on p.tenant_id = $1 and p.project_id = w.project_id
             where w.tenant_id = $1 and w.event_id = $2",
        )
        .bind(self.tenant.key())
        .bind(event_id)
        .fetch_optional(&mut *self.tx)
        .await?;
        Ok(row.map(
            |(key, uuid, project_key, name, list, ms, counter)| StoredEntry {
                project: Project {
                    id: ProjectId { key, uuid },
                    key: project_key,
                    name,
                },
                list,
                hlc: hlc(ms, counter),
            },
        ))
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
