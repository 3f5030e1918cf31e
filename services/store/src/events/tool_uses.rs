//! Tool uses of a batch: both sides kept as zstd of the exact text.

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::redact;
use cairn_domain::tool_use::ToolUseDraft;
use serde_json::{Value, json};

use super::plan::{Item, Plan};
use super::rows::is_private;
use crate::{StoreError, TenantTx};

/// zstd's default: measured to take a third of the text at a tenth of the insert's cost.
const LEVEL: i32 = 3;

struct Kept<'a> {
    draft: &'a EventDraft,
    own: &'a ToolUseDraft,
    item: &'a Item,
    packed: &'a Packed,
}

/// Both sides of a tool use, packed.
#[derive(Debug)]
pub(super) struct Packed {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Packed {
    /// Both sides of the tool use that an event reports, if it reports one.
    pub fn of(draft: &EventDraft) -> Result<Option<Self>, StoreError> {
        let EventBody::ToolUse(own) = &draft.body else {
            return Ok(None);
        };
        let (input, output) = (pack(&own.input.text)?, pack(&own.output.text)?);
        Ok(Some(Self { input, output }))
    }

    /// Bytes of both.
    pub fn bytes(&self) -> usize {
        self.input.len() + self.output.len()
    }
}

impl TenantTx {
    pub(super) async fn insert_tool_uses(
        &mut self,
        fresh: &[&EventDraft],
        packed: &[Option<&Packed>],
        plan: &Plan,
    ) -> Result<(), StoreError> {
        let kept = kept(fresh, packed, plan);
        if kept.is_empty() {
            return Ok(());
        }
        let all = || kept.iter();
        let (drafts, own) = (|| all().map(|k| k.draft), || all().map(|k| k.own));
        let items = || all().map(|k| k.item);
        sqlx::query(
            "insert into tool_uses (tenant_id, author_id, arrived_at, number, event_id,
               project_id, session_id, turn, private, at, agent_id, agent_type, branch, checkout,
               tool, host_tool_use_id, failed, files, input_bytes, output_bytes, input_sha256,
               output_sha256, input, output, bytes, redacted)
             select $1, u.author_id, u.arrived_at, u.number, u.event_id, u.project_id,
               u.session_id, u.turn,
               u.private, u.at, u.agent_id, u.agent_type, u.branch, u.checkout, u.tool,
               u.host_tool_use_id, u.failed, array(select jsonb_array_elements_text(u.files)),
               u.input_bytes, u.output_bytes, u.input_sha256, u.output_sha256, u.input, u.output,
               u.bytes, $26
             from unnest($2::int[], $3::timestamptz[], $4::bigint[], $5::uuid[], $6::int[],
               $7::bigint[], $8::int[], $9::bool[],
               $10::timestamptz[], $11::text[], $12::text[], $13::text[], $14::text[],
               $15::text[], $16::text[], $17::bool[], $18::jsonb[], $19::bigint[], $20::bigint[],
               $21::bytea[], $22::bytea[], $23::bytea[], $24::bytea[], $25::int[])
               u (author_id, arrived_at, number, event_id, project_id, session_id, turn, private,
                  at, agent_id,
                  agent_type, branch, checkout, tool, host_tool_use_id, failed, files,
                  input_bytes, output_bytes, input_sha256, output_sha256, input, output,
                  bytes)",
        )
        .bind(self.tenant.key())
        .bind(items().map(|i| i.author).collect::<Vec<_>>())
        .bind(items().map(|i| i.arrived_at).collect::<Vec<_>>())
        .bind(items().map(|i| i.number).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.event_id).collect::<Vec<_>>())
        .bind(items().map(|i| i.project).collect::<Vec<_>>())
        .bind(items().map(|i| i.session).collect::<Vec<_>>())
        .bind(items().map(|i| i.turn).collect::<Vec<_>>())
        .bind(drafts().map(is_private).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.at).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.agent_id.as_deref()).collect::<Vec<_>>())
        .bind(
            drafts()
                .map(|d| d.agent_type.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(drafts().map(|d| d.branch.as_deref()).collect::<Vec<_>>())
        .bind(drafts().map(|d| d.checkout.as_deref()).collect::<Vec<_>>())
        .bind(own().map(|o| o.tool.as_str()).collect::<Vec<_>>())
        .bind(
            own()
                .map(|o| o.host_tool_use_id.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(own().map(|o| o.failed).collect::<Vec<_>>())
        .bind(own().map(|o| json!(o.files)).collect::<Vec<Value>>())
        .bind(own().map(|o| o.input.bytes).collect::<Vec<_>>())
        .bind(own().map(|o| o.output.bytes).collect::<Vec<_>>())
        .bind(own().map(|o| &o.input.sha256[..]).collect::<Vec<_>>())
        .bind(own().map(|o| &o.output.sha256[..]).collect::<Vec<_>>())
        .bind(all().map(|k| &k.packed.input[..]).collect::<Vec<_>>())
        .bind(all().map(|k| &k.packed.output[..]).collect::<Vec<_>>())
        .bind(items().map(|i| i.bytes).collect::<Vec<_>>())
        .bind(redact::VERSION)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

fn kept<'a>(
    fresh: &[&'a EventDraft],
    packed: &[Option<&'a Packed>],
    plan: &'a Plan,
) -> Vec<Kept<'a>> {
    let items = plan.items.iter().zip(packed.iter().copied());
    let all = fresh.iter().copied().zip(items);
    let numbered = all.filter(|(_, (item, _))| item.is_tool_use());
    let kept = |(draft, (item, packed)): (&'a EventDraft, (&'a Item, Option<&'a Packed>))| {
        let EventBody::ToolUse(own) = &draft.body else {
            return None;
        };
        let packed = packed?;
        Some(Kept {
            draft,
            own,
            item,
            packed,
        })
    };
    numbered.filter_map(kept).collect()
}

pub(crate) fn pack(text: &str) -> Result<Vec<u8>, StoreError> {
    zstd::bulk::compress(text.as_bytes(), LEVEL).map_err(|error| StoreError::Bug(error.into()))
}
