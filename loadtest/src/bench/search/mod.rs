//! Search at size: a million records in two thousand tenants, one of them with an eighth of all.
//! The index step beside pgbench running the same SQL, the shipped schema beside others, and what
//! searches cost of a processor.

mod adversarial;
mod backend;
mod captured;
mod classes;
mod copy;
mod corpus;
mod gate;
mod kept;
mod load;
mod loaded;
mod mix;
mod places;
mod psql;
mod report;
mod served;
mod threads;
mod variants;

use std::time::Instant;

use anyhow::bail;
use serde_json::{Map, json};

use super::rig::Rig;
use super::{Machine, SEED, Settle, Timing};
use crate::api::Api;
use crate::output::{complain, grouped, say};
use crate::process::{Scratch, built};
use captured::Captured;
use corpus::Corpus;
use kept::Kept;
use loaded::Loaded;
use mix::{Case, Scope};
use report::Results;
use variants::Variants;

/// What to measure, and for how long.
#[derive(clap::Args)]
pub struct Options {
    /// Records of the corpus.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Tenants that they belong to.
    #[arg(long, default_value_t = 2_000)]
    tenants: usize,
    #[command(flatten)]
    settle: Settle,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    machine: Machine,
}

/// Measures, prints tables and writes the figures.
///
/// # Errors
/// If something does not work, or a goal is missed.
pub fn run(options: &Options, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
    let machine = options.machine.absolute()?;
    let began = Instant::now();
    let (mut rig, loaded) = open(&machine, options)?;
    rig.serve()?;
    complain(&format!(
        "{} records of {} tenants are ready {:.0} s after the start",
        grouped(loaded.rows),
        grouped(options.tenants),
        began.elapsed().as_secs_f64()
    ));
    rig.settle(&options.settle)?;

    let results = measure(&rig, &loaded, &options.timing, runtime)?;
    let mut more = Map::new();
    more.insert("rows".to_owned(), json!(loaded.rows));
    more.insert("tenants".to_owned(), json!(options.tenants));
    more.insert("rounds".to_owned(), json!(options.timing.rounds.max(1)));
    more.insert("seconds".to_owned(), json!(options.timing.seconds.max(1)));
    more.insert("connections".to_owned(), json!(options.timing.connections));
    results.write(&machine.out, more)?;
    say(&results.tables()?);
    let figures = results.figures();
    let missed: Vec<String> = figures.iter().filter_map(report::Figure::missed).collect();
    if !missed.is_empty() {
        bail!("missed:\n  {}", missed.join("\n  "));
    }
    Ok(())
}

/// The database of this version, loaded if it is not there yet, with nobody served so far.
fn open(machine: &Machine, options: &Options) -> anyhow::Result<(Rig, Loaded)> {
    let corpus = Corpus::new(SEED, options.tenants);
    let kept = Kept::find(machine, &corpus, options.rows)?;
    let rig = |settings: &[(&str, &str)]| {
        let server = built("cairn-server")?;
        Rig::prepare(machine, server, Scratch::new()?, &kept.data(), settings)
    };
    // All that is searched stays in memory.
    let buffers = format!("{}MB", (options.rows / 250).clamp(128, 16_000));
    let settings = [("shared_buffers", buffers.as_str())];
    if let Some(loaded) = kept.loaded() {
        return Ok((rig(&settings)?, loaded));
    }
    complain("loading, which takes minutes; the next run will find it done");
    kept.clear()?;
    let mut filled = rig(&load::SETTINGS)?;
    let loaded = load::load(&filled, &corpus, options.rows)?;
    // What the service gathers about a million new records is not to be gathered in each run.
    filled.serve()?;
    filled.settle(&options.settle)?;
    drop(filled);
    kept.keep(&loaded)?;
    Ok((rig(&settings)?, loaded))
}

fn measure(
    rig: &Rig,
    loaded: &Loaded,
    timing: &Timing,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<Results> {
    let api = Api::new(&rig.url, "")?;
    let capture = |cases: Vec<Case>| runtime.block_on(captured::searches(rig, &api, cases));
    let mixed = |scopes: &[Scope]| -> anyhow::Result<Vec<(Captured, usize)>> {
        let (cases, weights): (Vec<Case>, Vec<usize>) =
            mix::mix(loaded, scopes).into_iter().unzip();
        Ok(capture(cases)?.into_iter().zip(weights).collect())
    };

    complain("queries that cost the most");
    let adversarial = runtime.block_on(adversarial::ask(rig, &api, loaded))?;
    complain("what searches cost a backend");
    let searches = capture(classes::cases(loaded))?;
    let classes = classes::measure(rig, loaded, &searches)?;
    complain("the gate beside its statement");
    let gate = classes::gate_over_explicit(rig, loaded)?;
    complain("the service beside pgbench");
    let steps = mixed(&[Scope::Tenant, Scope::Project])?;
    let served = served::measure(rig, timing, runtime, &borrowed(&steps))?;
    complain("the schema beside others with the same rows");
    let across = mixed(&[Scope::Tenant])?;
    let variants = Variants::new(rig, timing, &borrowed(&across))?;
    Ok(Results {
        served,
        single: variants.beside_single()?,
        rank_all: variants.beside_rank_all()?,
        classes,
        gate,
        adversarial,
    })
}

fn borrowed(mix: &[(Captured, usize)]) -> Vec<(&Captured, usize)> {
    mix.iter()
        .map(|(search, weight)| (search, *weight))
        .collect()
}
