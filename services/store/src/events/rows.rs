//! Rows of observations, summaries and prompts: the narrow one that is searched and listed, and
//! the body that is fetched by number.

use cairn_domain::event::{EventBody, EventDraft, Visibility};
use cairn_domain::observation::ObservationDraft;
use cairn_domain::redact;
use cairn_domain::summary::SummaryDraft;
use cairn_domain::text::ANALYSER;
use serde_json::Value;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::EventBatch;
use super::face::Face;
use super::ledger::kind_code;
use super::plan::{Item, Plan};
use crate::{StoreError, TenantTx};

/// An event that makes a record, with what the plan gave it.
#[derive(Clone, Copy)]
struct Placed<'a> {
    draft: &'a EventDraft,
    item: &'a Item,
}

impl Placed<'_> {
    /// The number, which the plan gave to every record.
    fn number(&self) -> i64 {
        self.item.number.expect("a record has its number by now")
    }
}

/// A record's face with its place in the plan.
struct Shown<'a> {
    face: &'a Face,
    placed: Placed<'a>,
}

impl TenantTx {
    pub(super) async fn insert_records(
        &mut self,
        batch: &EventBatch<'_>,
        fresh: &[&EventDraft],
        faces: &[Option<&Face>],
        plan: &Plan,
    ) -> Result<(), StoreError> {
        let placed = || {
            let pairs = fresh.iter().zip(&plan.items);
            pairs.map(|(draft, item)| Placed { draft, item })
        };
        let faces: Vec<Shown<'_>> = placed()
            .zip(faces)
            .filter_map(|(placed, face)| face.map(|face| Shown { face, placed }))
            .collect();
        if faces.is_empty() {
            return Ok(());
        }
        self.insert_faces(&faces).await?;
        self.insert_observations(batch, &chosen(placed(), observation))
            .await?;
        self.insert_summaries(batch, &chosen(placed(), summary))
            .await?;
        self.insert_prompts(batch, &chosen(placed(), prompt)).await
    }

    async fn insert_faces(&mut self, shown: &[Shown<'_>]) -> Result<(), StoreError> {
        let all = || shown.iter().map(|shown| shown.face);
        let drafts = || shown.iter().map(|shown| shown.placed.draft);
        let items = || shown.iter().map(|shown| shown.placed.item);
        let length = |field: usize| all().map(|f| f.words.lengths[field]).collect::<Vec<_>>();
        sqlx::query(
            "insert into records (tenant_id, kind, number, project_id, session_id, author_id, at,
               position, private, subagent, obs_type, concepts, read_tokens, work_tokens,
               analyser, field_lengths, title, tsv, profile, bytes, redacted)
             select $1, u.kind, u.number, u.project_id, u.session_id, u.author_id, u.at, u.position,
               u.private, u.subagent, u.obs_type, string_to_array(u.concepts, ','),
               u.read_tokens, u.work_tokens, $3, array[u.a, u.b, u.c, u.d], u.title,
               u.tsv::tsvector, u.profile, u.bytes, $24
             from unnest($2::int[], $4::smallint[], $5::bigint[], $6::int[], $7::bigint[],
               $8::timestamptz[], $9::bigint[], $10::bool[], $11::bool[], $12::smallint[],
               $13::text[], $14::int[], $15::int[], $16::int[], $17::int[], $18::int[],
               $19::int[], $20::text[], $21::text[], $22::bytea[], $23::int[])
               u (author_id, kind, number, project_id, session_id, at, position, private, subagent,
                  obs_type, concepts, read_tokens, work_tokens, a, b, c, d, title, tsv,
                  profile, bytes)",
        )
        .bind(self.tenant.key())
        .bind(items().map(|i| i.author).collect::<Vec<_>>())
        .bind(ANALYSER)
        .bind(drafts().map(|d| kind_code(&d.body)).collect::<Vec<_>>())
        .bind(shown.iter().map(|s| s.placed.number()).collect::<Vec<_>>())
        .bind(items().map(|i| i.project).collect::<Vec<_>>())
        .bind(items().map(|i| i.session).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.at).collect::<Vec<_>>())
        .bind(items().map(|i| i.position).collect::<Vec<_>>())
        .bind(drafts().map(is_private).collect::<Vec<_>>())
        .bind(drafts().map(is_subagent).collect::<Vec<_>>())
        .bind(all().map(|f| f.obs_type).collect::<Vec<_>>())
        .bind(all().map(|f| f.concepts.as_str()).collect::<Vec<_>>())
        .bind(all().map(|f| int(f.read_tokens)).collect::<Vec<_>>())
        .bind(all().map(|f| int(f.work_tokens)).collect::<Vec<_>>())
        .bind(length(0))
        .bind(length(1))
        .bind(length(2))
        .bind(length(3))
        .bind(all().map(|f| f.title.as_str()).collect::<Vec<_>>())
        .bind(all().map(|f| f.words.literal.as_str()).collect::<Vec<_>>())
        .bind(
            all()
                .map(|f| f.words.profile.as_slice())
                .collect::<Vec<_>>(),
        )
        .bind(items().map(|i| i.bytes).collect::<Vec<_>>())
        .bind(redact::VERSION)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn insert_observations(
        &mut self,
        batch: &EventBatch<'_>,
        chosen: &[(Placed<'_>, &ObservationDraft)],
    ) -> Result<(), StoreError> {
        if chosen.is_empty() {
            return Ok(());
        }
        let own = || chosen.iter().map(|(_, own)| *own);
        body_insert(
            "insert into observations (tenant_id, arrived_at, origin, number, event_id, agent_id,
               agent_type, branch, checkout, subtitle, narrative, facts, files_read,
               files_read_more, files_modified, files_modified_more, tool_uses)
             select $1, u.arrived_at, $3, u.number, u.event_id, u.agent_id, u.agent_type, u.branch,
               u.checkout, u.subtitle, u.narrative,
               array(select jsonb_array_elements_text(u.facts)),
               array(select jsonb_array_elements_text(u.files_read)), u.files_read_more,
               array(select jsonb_array_elements_text(u.files_modified)), u.files_modified_more,
               array(select jsonb_array_elements_text(u.tool_uses)::bigint)
             from unnest($2::timestamptz[], $4::bigint[], $5::uuid[], $6::text[], $7::text[],
               $8::text[], $9::text[], $10::text[], $11::text[], $12::jsonb[], $13::jsonb[], $14::int[], $15::jsonb[],
               $16::int[], $17::jsonb[])
               u (arrived_at, number, event_id, agent_id, agent_type, branch, checkout, subtitle, narrative,
                  facts, files_read, files_read_more, files_modified, files_modified_more,
                  tool_uses)",
            self.tenant.key(),
            batch,
            chosen.iter().map(|(placed, _)| *placed),
        )
        .bind(own().map(|o| o.subtitle.as_str()).collect::<Vec<_>>())
        .bind(own().map(|o| o.narrative.as_str()).collect::<Vec<_>>())
        .bind(own().map(|o| json_list(&o.facts)).collect::<Vec<_>>())
        .bind(own().map(|o| json_list(&o.files_read)).collect::<Vec<_>>())
        .bind(own().map(|o| int(o.files_read_more)).collect::<Vec<_>>())
        .bind(
            own()
                .map(|o| json_list(&o.files_modified))
                .collect::<Vec<_>>(),
        )
        .bind(
            own()
                .map(|o| int(o.files_modified_more))
                .collect::<Vec<_>>(),
        )
        .bind(own().map(|o| json_list(&o.tool_uses)).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn insert_summaries(
        &mut self,
        batch: &EventBatch<'_>,
        chosen: &[(Placed<'_>, &SummaryDraft)],
    ) -> Result<(), StoreError> {
        if chosen.is_empty() {
            return Ok(());
        }
        let own = || chosen.iter().map(|(_, own)| *own);
        body_insert(
            "insert into summaries (tenant_id, origin, arrived_at, number, event_id, agent_id,
               agent_type, branch, checkout, request, investigated, learned, completed,
               next_steps, notes)
             select $1, $3, u.* from unnest($2::timestamptz[], $4::bigint[], $5::uuid[], $6::text[],
               $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
               $13::text[], $14::text[], $15::text[]) u",
            self.tenant.key(),
            batch,
            chosen.iter().map(|(placed, _)| *placed),
        )
        .bind(own().map(|s| s.request.as_str()).collect::<Vec<_>>())
        .bind(own().map(|s| s.investigated.as_str()).collect::<Vec<_>>())
        .bind(own().map(|s| s.learned.as_str()).collect::<Vec<_>>())
        .bind(own().map(|s| s.completed.as_str()).collect::<Vec<_>>())
        .bind(own().map(|s| s.next_steps.as_str()).collect::<Vec<_>>())
        .bind(own().map(|s| s.notes.as_str()).collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn insert_prompts(
        &mut self,
        batch: &EventBatch<'_>,
        chosen: &[(Placed<'_>, &str)],
    ) -> Result<(), StoreError> {
        if chosen.is_empty() {
            return Ok(());
        }
        let in_session = chosen.iter().map(|(placed, _)| placed.item.session_number);
        body_insert(
            "insert into prompts (tenant_id, origin, arrived_at, number, event_id, agent_id,
               agent_type, branch, checkout, text, session_number)
             select $1, $3, u.* from unnest($2::timestamptz[], $4::bigint[], $5::uuid[], $6::text[],
               $7::text[], $8::text[], $9::text[], $10::text[], $11::int[]) u",
            self.tenant.key(),
            batch,
            chosen.iter().map(|(placed, _)| *placed),
        )
        .bind(chosen.iter().map(|(_, text)| *text).collect::<Vec<_>>())
        .bind(in_session.collect::<Vec<_>>())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

/// An insert of bodies with the columns that all of them have bound: `$1` to `$9` are the tenant,
/// the list of arrivals and the origin, then the lists of numbers, event ids, agent ids, agent types,
/// branches and checkouts. A kind binds its own columns after them.
fn body_insert<'a>(
    sql: &'static str,
    tenant: i32,
    batch: &EventBatch<'a>,
    placed: impl Iterator<Item = Placed<'a>> + Clone,
) -> Query<'a, Postgres, PgArguments> {
    let drafts = || placed.clone().map(|placed| placed.draft);
    sqlx::query(sql)
        .bind(tenant)
        .bind(
            placed
                .clone()
                .map(|p| p.item.arrived_at)
                .collect::<Vec<_>>(),
        )
        .bind(batch.origin.name())
        .bind(placed.clone().map(|p| p.number()).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.event_id).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.agent_id.as_deref()).collect::<Vec<_>>())
        .bind(
            drafts()
                .map(|d| d.agent_type.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(drafts().map(|d| d.branch.as_deref()).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.checkout.as_deref()).collect::<Vec<_>>())
}

fn chosen<'a, T: ?Sized>(
    placed: impl Iterator<Item = Placed<'a>>,
    own: impl Fn(&'a EventDraft) -> Option<&'a T>,
) -> Vec<(Placed<'a>, &'a T)> {
    placed
        .filter_map(|placed| own(placed.draft).map(|own| (placed, own)))
        .collect()
}

fn observation(draft: &EventDraft) -> Option<&ObservationDraft> {
    match &draft.body {
        EventBody::Observation(own) => Some(own),
        _ => None,
    }
}

fn summary(draft: &EventDraft) -> Option<&SummaryDraft> {
    match &draft.body {
        EventBody::Summary(own) => Some(own),
        _ => None,
    }
}

fn prompt(draft: &EventDraft) -> Option<&str> {
    match &draft.body {
        EventBody::Prompt { text } => text.as_deref(),
        _ => None,
    }
}

pub(super) fn is_private(draft: &EventDraft) -> bool {
    draft.visibility == Visibility::Private
}

/// A subagent did it if both its id and its type are known.
fn is_subagent(draft: &EventDraft) -> bool {
    draft.agent_id.is_some() && draft.agent_type.is_some()
}

/// Arrays of arrays cannot be unnested row by row, so inner lists travel as JSON.
fn json_list<T: Clone + Into<Value>>(list: &[T]) -> Value {
    Value::Array(list.iter().cloned().map(Into::into).collect())
}

fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
