//! The benches: the service under load against the raw limit of its stores, round by round in one
//! run, so that whatever else the machine does meets both alike.

pub mod bare;
mod capture;
mod closed_loop;
mod connection;
mod context;
mod corpus;
mod load;
mod measure;
pub mod operation;
mod pgbench;
mod report;
mod rig;
mod scenario;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::api::Api;
use crate::output::{complain, grouped};
use crate::process::{built, wait_for};
use capture::{Fresh, Variables};
use corpus::Corpus;
use measure::{Measure, Rounds};
use operation::{Call, Operation};
use pgbench::Pgbench;
use rig::Rig;
use scenario::Scenario;

/// The corpus is this seed's.
const SEED: u64 = 20_261_010;
/// How long a setting or a log line may take to be seen.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to measure, and for how long.
#[derive(clap::Args)]
pub struct Options {
    /// The scenario.
    scenario: Scenario,
    /// Seconds of each side in each round.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Rows of the corpus.
    #[arg(long, default_value_t = 40_000)]
    rows: usize,
    /// Connections of each side.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// The folder for `<scenario>.json`.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    #[command(flatten)]
    machine: Machine,
}

/// What the machine has to run it with.
#[derive(clap::Args)]
pub struct Machine {
    /// The folder of Postgres' programs.
    #[arg(long)]
    postgres_bin: PathBuf,
    /// `redis-server`.
    #[arg(long)]
    redis: PathBuf,
    /// `roles.sql` of the deployment.
    #[arg(long)]
    roles: PathBuf,
    /// The user that Postgres runs as; needed by root, whom it refuses.
    #[arg(long)]
    run_as: Option<String>,
}

impl Machine {
    /// The same with paths that hold in any folder.
    fn absolute(&self) -> anyhow::Result<Self> {
        let path = |path: &PathBuf| std::path::absolute(path);
        Ok(Self {
            postgres_bin: path(&self.postgres_bin)?,
            redis: path(&self.redis)?,
            roles: path(&self.roles)?,
            run_as: self.run_as.clone(),
        })
    }
}

/// Measures a scenario, prints its table and writes its figures.
///
/// # Errors
/// If something does not work, or the goal is missed.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let began = Instant::now();
    let rig = Rig::start(&options.machine.absolute()?, built("cairn-server")?)?;
    let api = Api::new(&rig.url, "")?;
    let keys = load::create_tenants(&rig)?;
    let mut corpus = Corpus::new(SEED);
    runtime.block_on(load::load(&api, &keys, &mut corpus, options.rows))?;
    rig.psql("vacuum analyze")?;
    complain(&format!(
        "{} rows of {} tenants loaded {:.0} s after the start",
        grouped(options.rows),
        keys.len(),
        began.elapsed().as_secs_f64()
    ));

    let operations = Arc::new(options.scenario.operations(&keys, &mut corpus));
    if options.scenario == Scenario::Context {
        return context::run(options, &runtime, &rig, &api, &operations);
    }
    let rounds = against_pgbench(options, &runtime, &rig, &api, &operations)?;
    report::write(options, &rounds)
}

/// The service against `pgbench` running the same SQL.
fn against_pgbench(
    options: &Options,
    runtime: &tokio::runtime::Runtime,
    rig: &Rig,
    api: &Api,
    operations: &Arc<Vec<Operation>>,
) -> anyhow::Result<Rounds> {
    let (scripts, variables) = runtime.block_on(capture_scripts(rig, api, operations))?;
    let pgbench = Pgbench::new(rig.folder("pgbench")?, &scripts, variables)?;
    let count = options.connections;
    interleave(
        options,
        |time, seed| runtime.block_on(closed_loop::run(&rig.url, operations, count, time, seed)),
        ("pgbench", |time, _| pgbench.run(rig, count, time)),
    )
}

/// Runs two sides in turns: whoever goes first finds the state that the other left.
fn interleave(
    options: &Options,
    service: impl Fn(Duration, u64) -> anyhow::Result<Measure>,
    (name, raw): (&str, impl Fn(Duration, u64) -> anyhow::Result<Measure>),
) -> anyhow::Result<Rounds> {
    let time = Duration::from_secs(options.seconds.max(1));
    // Connections are made and caches filled before anything counts.
    service(Duration::from_secs(2), 0)?;
    raw(Duration::from_secs(2), 0)?;
    let mut rounds = Rounds::default();
    for round in 1..=options.rounds.max(1) {
        let (ours, limit) = if round % 2 == 1 {
            let ours = service(time, round)?;
            (ours, raw(time, round)?)
        } else {
            let limit = raw(time, round)?;
            (service(time, round)?, limit)
        };
        complain(&format!(
            "round {round}: service {:.0}/s, {name} {:.0}/s, ratio {:.2}",
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
    // The first call of a caller also proves its key; that is kept for a while and not part of
    // every operation.
    for operation in operations {
        api.call(operation).await?;
    }
    rig.psql("alter system set log_statement = 'all'")?;
    rig.psql("select pg_reload_conf()")?;
    let seen = |text: &str| rig.postgres_log().is_ok_and(|log| log.contains(text));
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
    let captured = capture::statements(&rig.postgres_log()?, operations.len())?;
    let mut variables = Variables::default();
    let mut scripts = Vec::with_capacity(captured.len());
    for (statements, fresh) in captured.iter().zip(&fresh) {
        scripts.push(capture::script(statements, fresh.as_ref(), &mut variables));
    }
    Ok((scripts, variables))
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
