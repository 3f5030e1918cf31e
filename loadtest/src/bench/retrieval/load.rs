//! Loading: each set is a tenant, each of its projects a project, each record an event like any
//! other.

use std::collections::HashMap;

use anyhow::{Context, bail};
use cairn_wire::Code;
use cairn_wire::events::{BatchAnswer, ItemStatus};

use super::sets::Set;
use crate::api::Api;
use crate::bench::operation::{Call, Operation};
use crate::bench::rig::Rig;
use crate::output::complain;
use crate::record_sets::{Record, project_key};

/// Items of a batch: as many as the service takes.
const ITEMS: usize = 500;
/// Bytes of a batch's items, well within the body that the service takes.
const BYTES: usize = 1_000_000;

/// A set in the service.
pub struct Tenant {
    /// The key of its only member.
    pub key: String,
    /// The set's ids by the service's.
    pub ids: HashMap<String, String>,
}

/// Loads the sets, in their order and the order of their records.
///
/// # Errors
/// If a record with something to say is not stored.
pub async fn load(rig: &Rig, api: &Api, sets: &[Set]) -> anyhow::Result<Vec<Tenant>> {
    let mut tenants = Vec::with_capacity(sets.len());
    for (index, set) in sets.iter().enumerate() {
        let key = rig.create_tenant(&format!("set-{index}"))?;
        let ids = load_set(api, &key, set).await;
        let ids = ids.with_context(|| format!("loading {}", set.name))?;
        tenants.push(Tenant { key, ids });
    }
    Ok(tenants)
}

async fn load_set(api: &Api, key: &str, set: &Set) -> anyhow::Result<HashMap<String, String>> {
    let mut ids = HashMap::with_capacity(set.records.len());
    let mut rest = set.records.as_slice();
    while let Some(first) = rest.first() {
        let items = next_items(rest)?;
        let (batch, after) = rest.split_at(items.len());
        rest = after;
        let operation = Operation {
            key: key.to_owned(),
            project: project_key(&first.project),
            call: Call::Batch(items),
        };
        let answer: BatchAnswer = serde_json::from_slice(&api.call_partly(&operation).await?)?;
        for (record, item) in batch.iter().zip(&answer.items) {
            match (item.status, &item.id) {
                (ItemStatus::Stored, Some(id)) => {
                    ids.insert(id.clone(), record.id.clone());
                }
                // Capture leaves nothing of such a record either.
                _ if item.code == Some(Code::EmptyRecord) => {
                    complain(&format!("{} says nothing and is left out", record.id));
                }
                _ => bail!("{} was not stored: {item:?}", record.id),
            }
        }
    }
    Ok(ids)
}

/// The first of the records as items that fit into one batch; at least one.
fn next_items(records: &[Record]) -> anyhow::Result<Vec<String>> {
    let (mut items, mut bytes) = (Vec::new(), 0);
    for record in records.iter().take(ITEMS) {
        let text = serde_json::to_string(&record.item())?;
        bytes += text.len();
        if bytes > BYTES && !items.is_empty() {
            break;
        }
        // What follows an event id in an object.
        items.push(text[1..].to_owned());
    }
    Ok(items)
}
