//! The contents of positions: what was at each of them a moment ago. What has moved on since is
//! left out here, and stands at a later position.

use std::collections::HashMap;

use cairn_domain::change::{Audience, ChangeKind};
use cairn_domain::ids::RecordId;
use cairn_domain::record::{Record, RecordBody};
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::{Change, Head, StandingProject, Stands, Told, source};
use crate::work_state::HistoryEntry;
use crate::{StoreError, TenantTx};

#[derive(FromRow)]
struct Tombstone {
    position: i64,
    event_id: Uuid,
    at: DateTime<Utc>,
    project: String,
    author: String,
}

#[derive(FromRow)]
struct Entry {
    position: i64,
    #[sqlx(flatten)]
    entry: HistoryEntry,
}

impl TenantTx {
    /// Appends the changes of some heads, in order; gives about how many bytes their texts have.
    pub(super) async fn append_contents(
        &mut self,
        heads: &[(Head, Audience)],
        items: &mut Vec<Change>,
    ) -> Result<usize, StoreError> {
        let of = |wanted| heads.iter().filter(move |(head, _)| head.source == wanted);
        let positions =
            |wanted| -> Vec<i64> { of(wanted).map(|(head, _)| head.position).collect() };
        let ids: Vec<RecordId> = of(source::RECORD)
            .filter_map(|(head, audience)| record_id(head, audience))
            .collect();
        let mut told: HashMap<i64, Told> = HashMap::new();
        if !ids.is_empty() {
            let records = self.get_unguarded(&ids).await?;
            told.extend(records.into_values().map(of_record));
        }
        let gone = self.tombstones(&positions(source::TOMBSTONE)).await?;
        let mut gone: HashMap<i64, Tombstone> = gone
            .into_iter()
            .map(|stone| (stone.position, stone))
            .collect();
        for (head, audience) in of(source::TOMBSTONE) {
            let stone = gone.remove(&head.position);
            told.extend(stone.map(|stone| of_tombstone(stone, record_id(head, audience))));
        }
        let entries = self.entries(&positions(source::WORK_ENTRY)).await?;
        told.extend(entries.into_iter().map(of_entry));
        let projects = self.projects_at(&positions(source::PROJECT)).await?;
        told.extend(projects.into_iter().map(of_project));
        let mut bytes = 0;
        for (head, audience) in heads {
            if let Some(told) = told.remove(&head.position) {
                let own = told.now.as_ref().map_or(0, text_bytes);
                bytes += own;
                items.push(Change {
                    position: head.position,
                    audience: *audience,
                    told,
                    bytes: own,
                });
            }
        }
        Ok(bytes)
    }

    async fn tombstones(&mut self, positions: &[i64]) -> Result<Vec<Tombstone>, StoreError> {
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        Ok(sqlx::query_as(
            "select t.position, t.event_id, t.at, p.key as project, a.name as author
             from tombstones t
             join projects p on p.tenant_id = $1 and p.project_id = t.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = t.author_id
             where t.tenant_id = $1 and t.position = any ($2)",
        )
        .bind(self.tenant.key())
        .bind(positions)
        .fetch_all(&mut *self.tx)
        .await?)
    }

    async fn entries(&mut self, positions: &[i64]) -> Result<Vec<Entry>, StoreError> {
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        Ok(sqlx::query_as(
            "select w.position, w.event_id, w.list, w.fields, w.action, w.hlc_ms, w.hlc_counter,
               w.after_ms, w.after_counter, w.at, w.arrived_at, a.name as author,
               s.host_session_id as session, p.key as project
             from work_entries w
             join projects p on p.tenant_id = $1 and p.project_id = w.project_id
             join principals a on a.tenant_id = $1 and a.principal_id = w.author_id
             left join sessions s on s.tenant_id = $1 and s.session_id = w.session_id
             where w.tenant_id = $1 and w.position = any ($2)",
        )
        .bind(self.tenant.key())
        .bind(positions)
        .fetch_all(&mut *self.tx)
        .await?)
    }

    async fn projects_at(&mut self, positions: &[i64]) -> Result<Vec<StandingProject>, StoreError> {
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        Ok(sqlx::query_as(
            "select p.position, p.uid as id, p.key, p.name, m.key as merged_into, p.created_at
             from projects p
             left join projects m on m.tenant_id = $1 and m.project_id = p.merged_into
             where p.tenant_id = $1 and p.position = any ($2)",
        )
        .bind(self.tenant.key())
        .bind(positions)
        .fetch_all(&mut *self.tx)
        .await?)
    }
}

fn record_id(head: &Head, audience: &Audience) -> Option<RecordId> {
    let ChangeKind::Record(kind) = audience.kind else {
        return None;
    };
    Some(RecordId {
        kind,
        number: head.number,
    })
}

fn of_record(record: Record) -> (i64, Told) {
    let told = Told {
        kind: ChangeKind::Record(record.row.id.kind),
        id: record.row.id.to_string(),
        event_id: Some(record.event_id),
        project: record.row.project.key.clone(),
        author: Some(record.row.author.clone()),
        at: record.row.at,
        now: None,
    };
    let position = record.position;
    let now = Some(Stands::Record(Box::new(record)));
    (position, Told { now, ..told })
}

/// What is left of a record, or of an entry of a work list, which is named by its event.
fn of_tombstone(stone: Tombstone, id: Option<RecordId>) -> (i64, Told) {
    let told = Told {
        kind: id.map_or(ChangeKind::WorkEntry, |id| ChangeKind::Record(id.kind)),
        id: id.map_or_else(|| stone.event_id.to_string(), |id| id.to_string()),
        event_id: Some(stone.event_id),
        project: stone.project,
        author: Some(stone.author),
        at: stone.at,
        now: None,
    };
    (stone.position, told)
}

fn of_entry(Entry { position, entry }: Entry) -> (i64, Told) {
    let told = Told {
        kind: ChangeKind::WorkEntry,
        id: entry.event_id.to_string(),
        event_id: Some(entry.event_id),
        project: entry.project.clone(),
        author: Some(entry.author.clone()),
        at: entry.at,
        now: Some(Stands::WorkEntry(entry)),
    };
    (position, told)
}

fn of_project(project: StandingProject) -> (i64, Told) {
    let told = Told {
        kind: ChangeKind::Project,
        id: project.id.to_string(),
        event_id: None,
        project: project.key.clone(),
        author: None,
        at: project.created_at,
        now: None,
    };
    let position = project.position;
    let now = Some(Stands::Project(project));
    (position, Told { now, ..told })
}

/// The bytes of the texts that may be long.
fn text_bytes(now: &Stands) -> usize {
    let lengths = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    match now {
        Stands::WorkEntry(entry) => entry.fields.len(),
        Stands::Project(_) => 0,
        Stands::Record(record) => match &record.body {
            RecordBody::Prompt { text, .. } => text.len(),
            RecordBody::Observation(own) => {
                let files = lengths(&own.files_read) + lengths(&own.files_modified);
                own.subtitle.len() + own.narrative.len() + lengths(&own.facts) + files
            }
            RecordBody::Summary(own) => {
                let investigated = own.request.len() + own.investigated.len() + own.learned.len();
                investigated + own.completed.len() + own.next_steps.len() + own.notes.len()
            }
        },
    }
}
