//! Tool uses: both sides unpacked, looked at and packed again.

use cairn_domain::bounds::clean;
use cairn_domain::json_text::mend_escapes;
use cairn_domain::redact::{VERSION, WITHHELD, safe, safe_json};
use cairn_domain::tool_use::Evidence;
use serde_json::json;
use sqlx::FromRow;

use super::{Rescan, Rescanned, RowKey};
use crate::events::tool_uses::pack;
use crate::tool_uses::row::unpacked;
use crate::{StoreError, TenantTx};

#[derive(Clone, FromRow, PartialEq)]
struct ToolUseRow {
    number: i64,
    agent_id: Option<String>,
    agent_type: Option<String>,
    branch: Option<String>,
    checkout: Option<String>,
    tool: String,
    host_tool_use_id: Option<String>,
    files: Vec<String>,
    input_bytes: i64,
    output_bytes: i64,
    input_sha256: Vec<u8>,
    output_sha256: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl TenantTx {
    pub(super) async fn redact_tool_uses(
        &mut self,
        rescan: &Rescan,
    ) -> Result<Rescanned, StoreError> {
        let rows: Vec<ToolUseRow> = sqlx::query_as(
            "select number, agent_id, agent_type, branch, checkout, tool, host_tool_use_id, files,
               input_bytes, output_bytes, input_sha256, output_sha256, input, output
             from tool_uses where tenant_id = $1 and number > $2 and redacted < $3
             order by number limit $4 for update",
        )
        .bind(self.tenant.key())
        .bind(rescan.after().1)
        .bind(rescan.below())
        .bind(i64::from(rescan.most))
        .fetch_all(&mut *self.tx)
        .await?;
        let mut done = Rescanned::default();
        for row in rows {
            done.seen += 1;
            done.last = Some(RowKey(0, row.number));
            let kept = kept(&row)?;
            done.changed += u64::from(kept != row);
            self.rewrite_tool_use(&kept).await?;
        }
        Ok(done)
    }

    async fn rewrite_tool_use(&mut self, row: &ToolUseRow) -> Result<(), StoreError> {
        sqlx::query(
            "update tool_uses set agent_id = $3, agent_type = $4, branch = $5, checkout = $6,
               tool = $7, host_tool_use_id = $8, files = array(select jsonb_array_elements_text($9)),
               input_bytes = $10, output_bytes = $11, input_sha256 = $12, output_sha256 = $13,
               input = $14, output = $15, redacted = $16
             where tenant_id = $1 and number = $2",
        )
        .bind(self.tenant.key())
        .bind(row.number)
        .bind(&row.agent_id)
        .bind(&row.agent_type)
        .bind(&row.branch)
        .bind(&row.checkout)
        .bind(&row.tool)
        .bind(&row.host_tool_use_id)
        .bind(json!(row.files))
        .bind(row.input_bytes)
        .bind(row.output_bytes)
        .bind(&row.input_sha256)
        .bind(&row.output_sha256)
        .bind(&row.input)
        .bind(&row.output)
        .bind(VERSION)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}

fn kept(row: &ToolUseRow) -> Result<ToolUseRow, StoreError> {
    let mut kept = row.clone();
    for text in [
        &mut kept.agent_id,
        &mut kept.agent_type,
        &mut kept.branch,
        &mut kept.checkout,
        &mut kept.host_tool_use_id,
    ]
    .into_iter()
    .flatten()
    .chain([&mut kept.tool])
    .chain(&mut kept.files)
    {
        *text = safe(text).into_owned();
    }
    for (packed, bytes, sha256) in [
        (
            &mut kept.input,
            &mut kept.input_bytes,
            &mut kept.input_sha256,
        ),
        (
            &mut kept.output,
            &mut kept.output_bytes,
            &mut kept.output_sha256,
        ),
    ] {
        // What cannot be read cannot be checked either.
        let text = unpacked(packed);
        let whole = match &text {
            Some(text) => clean(safe_json(&mend_escapes(text)).into_owned()),
            None => json!(WITHHELD).to_string(),
        };
        if text.as_deref() == Some(whole.as_str()) {
            continue;
        }
        // Of a text that was cut the whole is gone: its size stays, its digest would tell of what
        // must not be known.
        let is_cut =
            text.is_some_and(|text| i64::try_from(text.len()).is_ok_and(|kept| kept < *bytes));
        let evidence = Evidence::of(&whole);
        *bytes = if is_cut {
            evidence.bytes.max(*bytes)
        } else {
            evidence.bytes
        };
        *sha256 = evidence.sha256.to_vec();
        *packed = pack(&evidence.text)?;
    }
    Ok(kept)
}
