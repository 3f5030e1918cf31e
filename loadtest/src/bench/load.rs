//! Loading the corpus through the service, as clients would.

use std::sync::Arc;

use anyhow::{Context, bail};
use cairn_wire::events::{BatchAnswer, ItemStatus};
use chrono::{DateTime, TimeDelta, Utc};

use super::corpus::{Corpus, TENANTS};
use super::operation::{Call, Operation, item_rest};
use super::rig::Rig;
use crate::api::Api;

/// Items of a batch: as many as the service takes.
const BATCH: usize = 500;
/// Batches in flight.
const CONNECTIONS: usize = 4;
/// The corpus is spread evenly over this many days before now.
const DAYS: i64 = 180;

/// Makes the tenants; answers their keys.
///
/// # Errors
/// If one cannot be made.
pub fn create_tenants(rig: &Rig) -> anyhow::Result<Vec<String>> {
    (0..TENANTS)
        .map(|tenant| rig.create_tenant(&format!("tenant-{tenant}")))
        .collect()
}

/// The key of a project.
#[must_use]
pub fn project_key(project: usize) -> String {
    format!("name:project-{project}")
}

/// Loads `rows` rows of the corpus.
///
/// # Errors
/// If the service does not store every one of them.
pub async fn load(
    api: &Api,
    keys: &[String],
    corpus: &mut Corpus,
    rows: usize,
) -> anyhow::Result<()> {
    let batches = Arc::new(std::sync::Mutex::new(batches(keys, corpus, rows)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (api, batches) = (api.clone(), Arc::clone(&batches));
        tasks.spawn(async move {
            loop {
                let next = batches.lock().ok().and_then(|mut waiting| waiting.pop());
                let Some(batch) = next else {
                    return anyhow::Ok(());
                };
                check(&api.call(&batch).await?)?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.context("a loading task")??;
    }
    Ok(())
}

/// The rows by tenant and project, in batches. The last is loaded first, so that small tenants
/// do not wait for the large.
fn batches(keys: &[String], corpus: &mut Corpus, rows: usize) -> Vec<Operation> {
    let mut waiting: std::collections::BTreeMap<(usize, usize), Vec<String>> = Default::default();
    let (mut full, now) = (Vec::new(), Utc::now());
    for row in 0..rows {
        let made = corpus.row();
        let at = moment(now, row, rows);
        let items = waiting.entry((made.tenant, made.project)).or_default();
        items.push(item_rest(made.kind, Some(&at), &made.body));
        if items.len() == BATCH {
            full.push(((made.tenant, made.project), std::mem::take(items)));
        }
    }
    full.extend(waiting.into_iter().filter(|(_, items)| !items.is_empty()));
    let operation = |((tenant, project), items): ((usize, usize), Vec<String>)| Operation {
        key: keys[tenant].clone(),
        project: project_key(project),
        call: Call::Batch(items),
    };
    full.into_iter().map(operation).collect()
}

fn moment(now: DateTime<Utc>, row: usize, rows: usize) -> String {
    let left = i64::try_from((rows - row) * 86_400 * 1_000 / rows.max(1)).unwrap_or(0);
    cairn_wire::time::text(now - TimeDelta::milliseconds(left * DAYS))
}

/// Every item of the answer is stored.
///
/// # Errors
/// The first that is not.
pub fn check(answer: &[u8]) -> anyhow::Result<BatchAnswer> {
    let answer: BatchAnswer = serde_json::from_slice(answer).context("the answer to a batch")?;
    if let Some(item) = answer
        .items
        .iter()
        .find(|item| item.status != ItemStatus::Stored)
    {
        bail!("an item was not stored: {item:?}");
    }
    Ok(answer)
}
