//! Retrieval: questions with known answers, asked of the service through the index step of a
//! search and scored by the yardstick's definitions, beside what other systems reach.

mod ask;
mod baselines;
mod load;
mod report;
mod score;
mod scorer;
mod sets;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::json;

use super::rig::Rig;
use super::{Machine, Settle};
use crate::api::Api;
use crate::output::{complain, grouped, say};
use crate::process::built;
use crate::record_sets::parent;
use ask::Asked;
use baselines::Baselines;
use load::Tenant;
use report::Outcome;
use sets::Set;

/// What to ask, and of whom.
#[derive(clap::Args)]
pub struct Options {
    /// A folder of sets, with the yardstick's scorer if it has one.
    #[arg(default_value = "../shared/retrieval")]
    folder: PathBuf,
    #[command(flatten)]
    settle: Settle,
    #[command(flatten)]
    machine: Machine,
}

/// Asks every query of every set, prints what was found and writes it down.
///
/// # Errors
/// If something does not work, or a goal is missed.
pub fn run(options: &Options, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
    let machine = options.machine.absolute()?;
    let folder = fs::canonicalize(&options.folder)
        .with_context(|| format!("opening {}", options.folder.display()))?;
    let (sets, baselines) = (sets::read(&folder)?, Baselines::read()?);
    let rig = Rig::start(&machine, built("cairn-server")?)?;
    let api = Api::new(&rig.url, "")?;
    let tenants = runtime.block_on(load::load(&rig, &api, &sets))?;
    rig.psql("vacuum analyze")?;
    let records = tenants.iter().map(|tenant| tenant.ids.len()).sum();
    let count = sets.len();
    complain(&format!("{} records of {count} sets", grouped(records)));
    rig.settle(&options.settle)?;

    let asked = runtime.block_on(ask_all(&api, &sets, &tenants))?;
    let outcomes: Vec<Outcome> = sets.iter().zip(&asked).map(Outcome::of).collect();
    fs::create_dir_all(&machine.out).context("making the folder for figures")?;
    let run = machine.out.join("retrieval.run.jsonl");
    fs::write(&run, run_lines(&sets, &asked))?;
    scorer::agree(&folder, &parent(&folder), &run, &outcomes)?;
    report::write_figures(&machine.out, &outcomes)?;
    say(&report::table(&outcomes, &baselines));
    say(&report::costs(&outcomes));
    let missed = report::missed(&outcomes, &baselines);
    if !missed.is_empty() {
        bail!("missed:\n  {}", missed.join("\n  "));
    }
    Ok(())
}

async fn ask_all(api: &Api, sets: &[Set], tenants: &[Tenant]) -> anyhow::Result<Vec<Vec<Asked>>> {
    let mut all = Vec::with_capacity(sets.len());
    for set in sets {
        let mut asked = Vec::with_capacity(set.queries.len());
        for (query, target) in set.queries.iter().zip(sets::targets(sets, set)?) {
            let answer = ask::ask(api, &tenants[target], query).await;
            asked.push(answer.with_context(|| format!("{}: {}", set.name, query.qid))?);
        }
        complain(&format!("{}: {} queries", set.name, asked.len()));
        all.push(asked);
    }
    Ok(all)
}

/// The run as the yardstick's scorer reads it: one query a line.
fn run_lines(sets: &[Set], asked: &[Vec<Asked>]) -> String {
    let mut lines = String::new();
    for (set, asked) in sets.iter().zip(asked) {
        for (query, asked) in set.queries.iter().zip(asked) {
            let ms = (asked.ms * 1_000.0).round() / 1_000.0;
            let line = json!({"set": set.name, "qid": query.qid, "ids": asked.ids, "ms": ms});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
    }
    lines
}
