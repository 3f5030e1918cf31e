//! Asking: every query through the index step of a search, as an agent takes it; then what the
//! way to the evidence costs.

use std::time::Instant;

use anyhow::Context;
use cairn_wire::domain::bounds::{est_tokens, head_bytes, head_units};
use cairn_wire::domain::limits::{INDEX_ROWS, QUERY_BYTES, QUERY_UNITS};
use cairn_wire::observations::RecordBatchAnswer;
use cairn_wire::search::MemSearchAnswer;
use serde_json::{Value, json};

use super::load::Tenant;
use crate::api::Api;
use crate::bench::operation::{Call, Operation};
use crate::record_sets::{Query, project_key};
use crate::whole::render;

/// Hits that a memory without steps would give whole.
const DUMPED: usize = 10;

/// The answer to a query.
pub struct Asked {
    /// Ids of the set's records, best first.
    pub ids: Vec<String>,
    /// Milliseconds of the index step.
    pub ms: f64,
    /// What the evidence cost, if it was in the index.
    pub cost: Option<Cost>,
}

/// Tokens that an agent reads, estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The index, what surrounds its first relevant hit, and that hit's record.
    pub steps: usize,
    /// The ten best hits whole.
    pub dump: usize,
}

/// Asks a query inside its project.
///
/// # Errors
/// If the service refuses a step, or names a record that the set does not have.
pub async fn ask(api: &Api, tenant: &Tenant, query: &Query) -> anyhow::Result<Asked> {
    let caller = Caller {
        api,
        key: &tenant.key,
        project: project_key(&query.project),
    };
    // Longer ones are refused; whoever has one must shorten it.
    let text = head_bytes(head_units(&query.text, QUERY_UNITS), QUERY_BYTES);
    let began = Instant::now();
    let index = caller
        .search(json!({"query": text, "limit": INDEX_ROWS}))
        .await?;
    let ms = began.elapsed().as_secs_f64() * 1_000.0;
    let name = |id: &str| {
        let name = tenant.ids.get(id).cloned();
        name.with_context(|| format!("the record {id} is none of the set's"))
    };
    let rows = index.rows.iter().map(|row| name(&row.id));
    let ids: Vec<String> = rows.collect::<anyhow::Result<_>>()?;
    let place = ids.iter().position(|id| query.relevant.contains(id));
    let cost = match place {
        Some(place) => Some(caller.cost(&index, place).await?),
        None => None,
    };
    Ok(Asked { ids, ms, cost })
}

struct Caller<'a> {
    api: &'a Api,
    key: &'a str,
    project: String,
}

impl Caller<'_> {
    async fn search(&self, arguments: Value) -> anyhow::Result<MemSearchAnswer> {
        let answer = self.post("/v1/mem-search", &arguments).await?;
        serde_json::from_slice(&answer).context("the answer of a step")
    }

    /// From the index to the record of its row at `place`, and the best rows whole.
    async fn cost(&self, index: &MemSearchAnswer, place: usize) -> anyhow::Result<Cost> {
        let id = &index.rows[place].id;
        let mut steps = est_tokens(&index.text);
        let mut continuation = index.continuation.clone();
        for step in ["around a hit", "of a hit's record"] {
            let continuation_of = continuation.with_context(|| format!("no step {step}"))?;
            let answer = self
                .search(json!({"continuation": continuation_of, "selectedIds": [id]}))
                .await?;
            steps += est_tokens(&answer.text);
            continuation = answer.continuation;
        }
        let best: Vec<&str> = index.rows.iter().map(|row| row.id.as_str()).collect();
        let best = json!({"ids": best[..best.len().min(DUMPED)]});
        let records = self.post("/v1/observations/batch", &best).await?;
        let records: RecordBatchAnswer = serde_json::from_slice(&records)?;
        let dump = records
            .items
            .iter()
            .map(|record| est_tokens(&render(record)));
        Ok(Cost {
            steps,
            dump: dump.sum(),
        })
    }

    async fn post(&self, path: &'static str, body: &Value) -> anyhow::Result<Vec<u8>> {
        let operation = Operation {
            key: self.key.to_owned(),
            project: self.project.clone(),
            call: Call::Post(path, body.to_string()),
        };
        self.api.call(&operation).await
    }
}
