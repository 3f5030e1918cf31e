//! The benches: the service under load against the raw limit of its stores, round by round in one
//! run, so that whatever else the machine does meets both alike; and what its search finds.

mod against;
pub mod bare;
mod capture;
mod closed_loop;
mod connection;
mod context;
pub mod corpus;
mod cpu;
mod load;
mod measure;
pub mod operation;
mod pgbench;
mod report;
mod retrieval;
mod rig;
mod scenario;
mod search;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::api::Api;
use crate::output::{complain, grouped};
use crate::process::built;
use corpus::Corpus;
use rig::Rig;
use scenario::Scenario;

/// The corpus is this seed's.
const SEED: u64 = 20_261_010;

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(clap::Subcommand)]
enum Bench {
    /// Batches of 100 observations, beside the same SQL from pgbench.
    Ingest(Load),
    /// The context of a session start, beside a bare route and the same SQL from pgbench.
    Context(Load),
    /// The index step of a search among a million records in 2,000 tenants, beside its raw limits.
    Search(search::Options),
    /// What the index step of a search finds, asked questions with known answers.
    Retrieval(retrieval::Options),
}

/// A load on a corpus.
#[derive(clap::Args)]
pub struct Load {
    /// Rows of the corpus.
    #[arg(long, default_value_t = 40_000)]
    rows: usize,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    machine: Machine,
}

/// How long and how hard.
#[derive(clap::Args)]
pub struct Timing {
    /// Seconds of each side in each round.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Connections of each side.
    #[arg(long, default_value_t = 8)]
    connections: usize,
}

/// When the service has done what it does in the background.
#[derive(clap::Args)]
pub struct Settle {
    /// Seconds for which Postgres must have been idle before anything is asked.
    #[arg(long, default_value_t = 5)]
    settle: u64,
}

/// What the machine has to run it with.
#[derive(Clone, clap::Args)]
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
    /// The migrations of the service.
    #[arg(long)]
    migrations: PathBuf,
    /// The folder for databases that are kept between runs; Postgres' user must be able to enter.
    #[arg(long)]
    keep: PathBuf,
    /// The user that Postgres runs as; needed by root, whom it refuses.
    #[arg(long)]
    run_as: Option<String>,
    /// The folder for figures.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
}

impl Machine {
    /// The same with paths that hold in any folder.
    fn absolute(&self) -> anyhow::Result<Self> {
        let path = |path: &PathBuf| std::path::absolute(path);
        Ok(Self {
            postgres_bin: path(&self.postgres_bin)?,
            redis: path(&self.redis)?,
            roles: path(&self.roles)?,
            migrations: path(&self.migrations)?,
            keep: path(&self.keep)?,
            run_as: self.run_as.clone(),
            out: path(&self.out)?,
        })
    }
}

/// Measures, prints a table and writes the figures.
///
/// # Errors
/// If something does not work, or a goal is missed.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match &options.bench {
        Bench::Ingest(load) => run_load(Scenario::Ingest, load, &runtime),
        Bench::Context(load) => run_load(Scenario::Context, load, &runtime),
        Bench::Search(options) => search::run(options, &runtime),
        Bench::Retrieval(options) => retrieval::run(options, &runtime),
    }
}

fn run_load(
    scenario: Scenario,
    load: &Load,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let rig = Rig::start(&load.machine.absolute()?, built("cairn-server")?)?;
    let api = Api::new(&rig.url, "")?;
    let keys = load::create_tenants(&rig)?;
    let mut corpus = Corpus::new(SEED);
    runtime.block_on(load::load(&api, &keys, &mut corpus, load.rows))?;
    rig.psql("vacuum analyze")?;
    complain(&format!(
        "{} rows of {} tenants loaded {:.0} s after the start",
        grouped(load.rows),
        keys.len(),
        began.elapsed().as_secs_f64()
    ));

    let operations = Arc::new(scenario.operations(&keys, &mut corpus));
    if scenario == Scenario::Context {
        return context::run(load, runtime, &rig, &api, &operations);
    }
    let rounds = against::against_pgbench(&load.timing, runtime, &rig, &api, &operations)?;
    report::write(scenario, load, &rounds)
}
