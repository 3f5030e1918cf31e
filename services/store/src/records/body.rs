//! The whole of a record, as it is selected and read.

use cairn_domain::event::Visibility;
use cairn_domain::ids::{RecordKind, ToolUseId};
use cairn_domain::observation::Concept;
use cairn_domain::record::{Imported, ObservationBody, Record, RecordBody};
use cairn_domain::summary::SummaryDraft;
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::row::RowColumns;
use crate::StoreError;

#[derive(FromRow)]
pub(super) struct RecordColumns {
    #[sqlx(flatten)]
    row: RowColumns,
    position: i64,
    private: bool,
    concepts: Vec<String>,
    read_tokens: i32,
    work_tokens: i32,
    host_session_id: Option<String>,
    host: Option<String>,
    event_id: Option<Uuid>,
    arrived_at: Option<DateTime<Utc>>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    branch: Option<String>,
    checkout: Option<String>,
    origin: Option<String>,
    subtitle: Option<String>,
    narrative: Option<String>,
    facts: Option<Vec<String>>,
    files_read: Option<Vec<String>>,
    files_read_more: Option<i32>,
    files_modified: Option<Vec<String>>,
    files_modified_more: Option<i32>,
    tool_uses: Option<Vec<i64>>,
    request: Option<String>,
    investigated: Option<String>,
    learned: Option<String>,
    completed: Option<String>,
    next_steps: Option<String>,
    notes: Option<String>,
    text: Option<String>,
    session_number: Option<i32>,
    is_imported: bool,
    imported_id: Option<String>,
    imported_author: Option<String>,
}

impl RecordColumns {
    pub(super) fn read(mut self) -> Result<Record, StoreError> {
        let row = self.row.clone().read()?;
        // A record and its body are written and deleted together.
        let odd = || StoreError::inconsistent("records", "body", row.id);
        let event_id = self.event_id.ok_or_else(odd)?;
        let arrived_at = self.arrived_at.ok_or_else(odd)?;
        let origin = self.origin.take().ok_or_else(odd)?;
        let visibility = if self.private {
            Visibility::Private
        } else {
            Visibility::Team
        };
        Ok(Record {
            event_id,
            arrived_at,
            position: self.position,
            visibility,
            session: self.host_session_id.take(),
            host: self.host.take(),
            agent_id: self.agent_id.take(),
            agent_type: self.agent_type.take(),
            branch: self.branch.take(),
            checkout: self.checkout.take(),
            origin,
            imported: self.is_imported.then(|| Imported {
                id: self.imported_id.take(),
                author: self.imported_author.take(),
            }),
            body: match row.id.kind {
                RecordKind::Observation => RecordBody::Observation(self.observation()?),
                RecordKind::Summary => RecordBody::Summary(self.summary()),
                RecordKind::Prompt => RecordBody::Prompt {
                    text: self.text.unwrap_or_default(),
                    number: self.session_number.unwrap_or_default(),
                },
            },
            row,
        })
    }

    fn observation(self) -> Result<ObservationBody, StoreError> {
        let tool_uses = self.tool_uses.unwrap_or_default();
        Ok(ObservationBody {
            concepts: read_concepts(&self.concepts)?,
            subtitle: self.subtitle.unwrap_or_default(),
            narrative: self.narrative.unwrap_or_default(),
            facts: self.facts.unwrap_or_default(),
            files_read: self.files_read.unwrap_or_default(),
            files_read_more: count(self.files_read_more.unwrap_or_default()),
            files_modified: self.files_modified.unwrap_or_default(),
            files_modified_more: count(self.files_modified_more.unwrap_or_default()),
            work_tokens: count(self.work_tokens),
            read_tokens: count(self.read_tokens),
            tool_uses: tool_uses.into_iter().map(ToolUseId).collect(),
        })
    }

    fn summary(self) -> SummaryDraft {
        SummaryDraft {
            request: self.request.unwrap_or_default(),
            investigated: self.investigated.unwrap_or_default(),
            learned: self.learned.unwrap_or_default(),
            completed: self.completed.unwrap_or_default(),
            next_steps: self.next_steps.unwrap_or_default(),
            notes: self.notes.unwrap_or_default(),
        }
    }
}

pub(super) fn read_concepts(names: &[String]) -> Result<Vec<Concept>, StoreError> {
    let known = |name: &String| {
        Concept::from_name(name)
            .ok_or_else(|| StoreError::inconsistent("records", "concepts", name))
    };
    names.iter().map(known).collect()
}

fn count(stored: i32) -> u32 {
    u32::try_from(stored).unwrap_or_default()
}
