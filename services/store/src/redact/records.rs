//! Observations, summaries and prompts: texts, titles, vectors, counts of words.

use std::collections::BTreeSet;

use cairn_domain::ids::{PrincipalId, RecordId, RecordKind};
use cairn_domain::observation::{ObservationDraft, ObservationType, title_of};
use cairn_domain::project::{ProjectSet, Reader};
use cairn_domain::record::{ObservationBody, Record, RecordBody};
use cairn_domain::redact::{VERSION, safe};
use cairn_domain::text::{ANALYSER, record_texts, vector};
use serde_json::json;
use uuid::Uuid;

use super::{Rescan, Rescanned, RowKey};
use crate::events::face::one_line_head;
use crate::{StoreError, TenantTx};

impl TenantTx {
    pub(super) async fn redact_records(
        &mut self,
        rescan: &Rescan,
    ) -> Result<Rescanned, StoreError> {
        let RowKey(kind, number) = rescan.after();
        let rows: Vec<(i16, i64, i32, i32)> = sqlx::query_as(
            "select kind, number, author_id, project_id from records
             where tenant_id = $1 and (kind, number) > ($2, $3) and redacted < $4
             order by kind, number limit $5 for update",
        )
        .bind(self.tenant.key())
        .bind(kind)
        .bind(number)
        .bind(rescan.below())
        .bind(i64::from(rescan.most))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut done = Rescanned::default();
        let mut shown = BTreeSet::new();
        let mut unchanged = (Vec::new(), Vec::new());
        for (kind, number, author, project) in rows {
            done.seen += 1;
            done.last = Some(RowKey(kind, number));
            let record = self.record_of(kind, number, author).await?;
            let Some(kept) = kept(&record) else {
                unchanged.0.push(kind);
                unchanged.1.push(number);
                continue;
            };
            done.changed += 1;
            self.rewrite_record(&kept, project).await?;
            if record.kind() != RecordKind::Prompt {
                shown.insert(project);
            }
        }
        self.note_records(&unchanged).await?;
        for project in shown {
            self.raise_context_revision(project).await?;
        }
        Ok(done)
    }

    /// Read with the author's eyes: they see all that is theirs.
    async fn record_of(
        &mut self,
        kind: i16,
        number: i64,
        author: i32,
    ) -> Result<Record, StoreError> {
        let odd = |column| StoreError::inconsistent("records", column, number);
        let kind = RecordKind::from_code(kind).ok_or_else(|| odd("kind"))?;
        let reader = Reader {
            principal: PrincipalId {
                key: author,
                uuid: Uuid::nil(),
            },
            projects: ProjectSet::All,
        };
        let mut found = self
            .get_records(&[RecordId { kind, number }], &reader)
            .await?;
        found.pop().ok_or_else(|| odd("body"))
    }

    async fn note_records(&mut self, seen: &(Vec<i16>, Vec<i64>)) -> Result<(), StoreError> {
        sqlx::query(
            "update records r set redacted = $4
             from unnest($2::smallint[], $3::bigint[]) u (kind, number)
             where r.tenant_id = $1 and r.kind = u.kind and r.number = u.number
               and r.redacted < $4",
        )
        .bind(self.tenant.key())
        .bind(&seen.0)
        .bind(&seen.1)
        .bind(VERSION)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Puts a record in the place of what it was, with what a list and a search see of it. Words
    /// that it holds no more are no more counted: one of them may have been the secret.
    async fn rewrite_record(&mut self, record: &Record, project: i32) -> Result<(), StoreError> {
        let words = vector(&record_texts(record));
        let position = self.take_position().await?;
        sqlx::query(
            "with before as (
               select tsv from records where tenant_id = $1 and kind = $2 and number = $3),
             forgotten as (
               delete from term_counts c where c.tenant_id = $1 and c.project_id = $11
                 and c.term in (
                   select lexeme from before, unnest(before.tsv)
                   except select lexeme from unnest($7::text::tsvector)))
             update records set title = $4, read_tokens = coalesce($5, read_tokens),
               field_lengths = $6, tsv = $7::text::tsvector, profile = $12, analyser = $8,
               redacted = $9, position = $10
             where tenant_id = $1 and kind = $2 and number = $3",
        )
        .bind(self.tenant.key())
        .bind(record.row.id.kind.code())
        .bind(record.row.id.number)
        .bind(&record.row.title)
        .bind(read_tokens(record))
        .bind(words.lengths.as_slice())
        .bind(&words.literal)
        .bind(ANALYSER)
        .bind(VERSION)
        .bind(position)
        .bind(project)
        .bind(words.profile.as_slice())
        .execute(&mut *self.tx)
        .await?;
        match &record.body {
            RecordBody::Observation(own) => self.rewrite_observation(record, own).await,
            RecordBody::Summary(own) => {
                let around = around(record);
                sqlx::query(
                    "update summaries set request = $3, investigated = $4, learned = $5,
                       completed = $6, next_steps = $7, notes = $8, agent_id = $9,
                       agent_type = $10, branch = $11, checkout = $12
                     where tenant_id = $1 and number = $2",
                )
                .bind(self.tenant.key())
                .bind(record.row.id.number)
                .bind(&own.request)
                .bind(&own.investigated)
                .bind(&own.learned)
                .bind(&own.completed)
                .bind(&own.next_steps)
                .bind(&own.notes)
                .bind(around[0])
                .bind(around[1])
                .bind(around[2])
                .bind(around[3])
                .execute(&mut *self.tx)
                .await?;
                Ok(())
            }
            RecordBody::Prompt { text, .. } => {
                let around = around(record);
                sqlx::query(
                    "update prompts set text = $3, agent_id = $4, agent_type = $5, branch = $6,
                       checkout = $7
                     where tenant_id = $1 and number = $2",
                )
                .bind(self.tenant.key())
                .bind(record.row.id.number)
                .bind(text)
                .bind(around[0])
                .bind(around[1])
                .bind(around[2])
                .bind(around[3])
                .execute(&mut *self.tx)
                .await?;
                Ok(())
            }
        }
    }

    async fn rewrite_observation(
        &mut self,
        record: &Record,
        own: &ObservationBody,
    ) -> Result<(), StoreError> {
        let around = around(record);
        sqlx::query(
            "update observations set subtitle = $3, narrative = $4,
               facts = array(select jsonb_array_elements_text($5)),
               files_read = array(select jsonb_array_elements_text($6)),
               files_modified = array(select jsonb_array_elements_text($7)), agent_id = $8,
               agent_type = $9, branch = $10, checkout = $11
             where tenant_id = $1 and number = $2",
        )
        .bind(self.tenant.key())
        .bind(record.row.id.number)
        .bind(&own.subtitle)
        .bind(&own.narrative)
        .bind(json!(own.facts))
        .bind(json!(own.files_read))
        .bind(json!(own.files_modified))
        .bind(around[0])
        .bind(around[1])
        .bind(around[2])
        .bind(around[3])
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

/// Agent id, agent type, branch and checkout.
fn around(record: &Record) -> [Option<&str>; 4] {
    [
        record.agent_id.as_deref(),
        record.agent_type.as_deref(),
        record.branch.as_deref(),
        record.checkout.as_deref(),
    ]
}

/// What an observation costs to read; none for what has no such number.
fn read_tokens(record: &Record) -> Option<i32> {
    let RecordBody::Observation(own) = &record.body else {
        return None;
    };
    let draft = ObservationDraft {
        kind: record.row.kind.unwrap_or(ObservationType::Discovery),
        title: record.row.title.clone(),
        subtitle: own.subtitle.clone(),
        narrative: own.narrative.clone(),
        facts: own.facts.clone(),
        concepts: Vec::new(),
        files_read: Vec::new(),
        files_read_more: 0,
        files_modified: Vec::new(),
        files_modified_more: 0,
        work_tokens: 0,
        tool_uses: Vec::new(),
    };
    Some(i32::try_from(draft.read_tokens()).unwrap_or(i32::MAX))
}

/// A record as it may be kept; `None` if it is so already.
fn kept(record: &Record) -> Option<Record> {
    let mut kept = record.clone();
    for text in [
        &mut kept.agent_id,
        &mut kept.agent_type,
        &mut kept.branch,
        &mut kept.checkout,
    ]
    .into_iter()
    .flatten()
    {
        clean(text);
    }
    match &mut kept.body {
        RecordBody::Observation(own) => {
            let was_head = !own.narrative.is_empty() && kept.row.title == title_of(&own.narrative);
            clean(&mut own.subtitle);
            clean(&mut own.narrative);
            let lists = [&mut own.facts, &mut own.files_read, &mut own.files_modified];
            lists.into_iter().flatten().for_each(clean);
            clean(&mut kept.row.title);
            if was_head {
                // A head may have ended within a secret.
                kept.row.title = title_of(&own.narrative);
            }
        }
        RecordBody::Summary(own) => {
            for text in [
                &mut own.request,
                &mut own.investigated,
                &mut own.learned,
                &mut own.completed,
                &mut own.next_steps,
                &mut own.notes,
            ] {
                clean(text);
            }
            kept.row.title.clone_from(&own.request);
        }
        RecordBody::Prompt { text, .. } => {
            clean(text);
            kept.row.title = one_line_head(text);
        }
    }
    (kept != *record).then_some(kept)
}

fn clean(text: &mut String) {
    *text = safe(text).into_owned();
}
