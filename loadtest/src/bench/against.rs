//! The service beside another side, in turns; and `pgbench` running the same SQL as that side.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};

use super::capture::{self, Fresh, Statement, Variables};
use super::measure::{Measure, Rounds};
use super::operation::{Call, Operation};
use super::pgbench::Pgbench;
use super::rig::Rig;
use super::{Timing, closed_loop, load};
use crate::api::Api;
use crate::output::complain;
use crate::process::wait_for;

/// How long a setting or a log line may take to be seen.
const PATIENCE: Duration = Duration::from_secs(10);

/// The service against `pgbench` running the same SQL.
pub fn against_pgbench(
    timing: &Timing,
    runtime: &tokio::runtime::Runtime,
    rig: &Rig,
    api: &Api,
    operations: &Arc<Vec<Operation>>,
) -> anyhow::Result<Rounds> {
    let (scripts, variables) = runtime.block_on(capture_scripts(rig, api, operations))?;
    let scripts: Vec<(String, usize)> = scripts.into_iter().map(|script| (script, 1)).collect();
    let folder = rig.folder("pgbench")?;
    let pgbench = Pgbench::new(folder, capture::ROLE, &scripts, variables)?;
    let count = timing.connections;
    interleave(
        timing,
        ("service", |time, seed| {
            runtime.block_on(closed_loop::run(&rig.url, operations, count, time, seed))
        }),
        ("pgbench", |time, _| pgbench.run(rig, count, time)),
    )
}

/// Runs two sides in turns: whoever goes first finds the state that the other left.
pub fn interleave(
    timing: &Timing,
    (name, service): (&str, impl Fn(Duration, u64) -> anyhow::Result<Measure>),
    (raw_name, raw): (&str, impl Fn(Duration, u64) -> anyhow::Result<Measure>),
) -> anyhow::Result<Rounds> {
    let time = Duration::from_secs(timing.seconds.max(1));
    // Connections are made and caches filled before anything counts.
    service(Duration::from_secs(2), 0)?;
    raw(Duration::from_secs(2), 0)?;
    let mut rounds = Rounds::default();
    for round in 1..=timing.rounds.max(1) {
        let (ours, limit) = if round % 2 == 1 {
            let ours = service(time, round)?;
            (ours, raw(time, round)?)
        } else {
            let limit = raw(time, round)?;
            (service(time, round)?, limit)
        };
        complain(&format!(
            "round {round}: {name} {:.0}/s, {raw_name} {:.0}/s, ratio {:.2}",
            ours.rate,
            limit.rate,
            ours.rate / limit.rate
        ));
        rounds.push(ours, limit);
    }
    Ok(rounds)
}

/// Calls each operation once while Postgres logs what it is sent, and makes scripts of that.
async fn capture_scripts(
    rig: &Rig,
    api: &Api,
    operations: &[Operation],
) -> anyhow::Result<(Vec<String>, Variables)> {
    let mut variables = Variables::default();
    let captured = capture(rig, api, operations).await?;
    let scripts = captured
        .iter()
        .map(|(statements, fresh)| capture::script(statements, fresh.as_ref(), &mut variables));
    Ok((scripts.collect(), variables))
}

/// What each operation sent to Postgres; of a batch, also what cannot be the same in another run.
pub async fn capture(
    rig: &Rig,
    api: &Api,
    operations: &[Operation],
) -> anyhow::Result<Vec<(Vec<Statement>, Option<Fresh>)>> {
    // The first call of a caller also proves its key; that is kept for a while and not part of
    // every operation.
    for operation in operations {
        api.call(operation).await?;
    }
    let before = rig.postgres_log()?.len();
    rig.psql("alter system set log_statement = 'all'")?;
    rig.psql("select pg_reload_conf()")?;
    let log = || anyhow::Ok(rig.postgres_log()?.split_off(before));
    let seen = |text: &str| log().is_ok_and(|log| log.contains(text));
    if !wait_for(PATIENCE, || {
        rig.psql("select 'logging'").is_ok() && seen("'logging'")
    }) {
        bail!("Postgres does not log its statements");
    }
    // Connections of the service read the setting when they are next used; once is enough.
    for operation in operations {
        api.call(operation).await?;
    }
    let mut fresh = Vec::with_capacity(operations.len());
    for (index, operation) in operations.iter().enumerate() {
        rig.psql(&capture::mark(index))?;
        fresh.push(call_noting(api, operation).await?);
    }
    rig.psql("alter system reset log_statement")?;
    rig.psql("select pg_reload_conf()")?;
    if !wait_for(PATIENCE, || seen("reset log_statement")) {
        bail!("Postgres' log does not come to its end");
    }
    let captured = capture::statements(&log()?, operations.len())?;
    Ok(captured.into_iter().zip(fresh).collect())
}

/// Calls an operation; of a batch, notes what cannot be the same in another run.
async fn call_noting(api: &Api, operation: &Operation) -> anyhow::Result<Option<Fresh>> {
    let Call::Batch(items) = &operation.call else {
        api.call(operation).await?;
        return Ok(None);
    };
    let (body, ids) = Operation::batch_body(&operation.project, items);
    let answer = load::check(&api.post(operation, "/v1/events", body).await?)?;
    let last = answer.position.context("a batch without a position")?;
    let number = |id: &Option<String>| id.as_deref().and_then(|id| id.parse::<i64>().ok());
    let numbers = answer.items.iter().map(|item| number(&item.id));
    let count = i64::try_from(items.len())?;
    Ok(Some(Fresh {
        event_ids: ids.iter().map(ToString::to_string).collect(),
        numbers: numbers
            .collect::<Option<_>>()
            .context("an observation without a number")?,
        positions: (last - count + 1..=last).collect(),
    }))
}
