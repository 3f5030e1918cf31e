//! Random and mutated queries against a service of its own, through every door that searches. No
//! query but one that is too long is an error, whatever it holds; anything else that is answered is
//! a fault, and is printed with the seed that finds it again.

mod doors;
mod queries;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::bench::corpus::Rng;
use crate::output::{grouped, say};
use crate::process::{Scratch, built};
use crate::service::EmbeddedService;
use doors::Doors;
use queries::Queries;

/// Callers at once.
const CALLERS: u64 = 4;
/// Faults after which it is enough.
const MOST_FAULTS: usize = 20;
/// Records that are searched.
const RECORDS: usize = 400;

/// What to fuzz.
#[derive(clap::Args)]
pub struct Options {
    /// `queries`: whatever can be searched for.
    #[arg(value_parser = ["queries"])]
    what: String,
    /// For how many minutes.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Where chance begins; another one each time if left out.
    #[arg(long)]
    seed: Option<u64>,
}

/// Fuzzes until the time is over.
///
/// # Errors
/// If a query was answered as none may be, or the service complained of a fault.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let seed = options
        .seed
        .unwrap_or_else(|| u64::from(std::process::id()));
    let scratch = Scratch::new()?;
    let service = EmbeddedService::start(&built("cairn-server")?, scratch.path())?;
    let doors = Doors::new(&service.url, &service.key)?;
    say(&format!(
        "Fuzzing {} on {}, seed {seed}.",
        options.what, service.url
    ));
    let runtime = tokio::runtime::Runtime::new()?;
    let end = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0);
    let (asked, faults) = runtime.block_on(async {
        doors.remember(&queries::records(seed, RECORDS)).await?;
        let callers = (0..CALLERS).map(|nth| {
            let doors = doors.clone();
            tokio::spawn(async move { ask(&doors, seed + nth, end).await })
        });
        let (mut asked, mut faults) = (0, Vec::new());
        for caller in callers.collect::<Vec<_>>() {
            let (count, found) = caller.await?;
            asked += count;
            faults.extend(found);
        }
        anyhow::Ok((asked, faults))
    })?;
    let log = fs::read_to_string(scratch.path().join("cairn-server.log"))?;
    let complaints = log.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("panic") || line.contains("\"error\"")
    });
    let complaints: Vec<&str> = complaints.take(MOST_FAULTS).collect();
    for line in faults
        .iter()
        .map(String::as_str)
        .chain(complaints.iter().copied())
    {
        say(line);
    }
    say(&format!(
        "{} questions, {} faults.",
        grouped(asked),
        faults.len()
    ));
    if faults.is_empty() && complaints.is_empty() {
        return Ok(());
    }
    bail!("a query was answered as none may be; --seed {seed} finds it again")
}

/// Asks until the time is over or too much went wrong: how many questions, and the faults.
async fn ask(doors: &Doors, seed: u64, end: Instant) -> (usize, Vec<String>) {
    let mut chance = Rng::new(seed);
    let mut queries = Queries::default();
    let (mut asked, mut faults) = (0, Vec::new());
    while Instant::now() < end && faults.len() < MOST_FAULTS {
        let query = queries.next(&mut chance);
        let (count, found) = doors.ask(&query, &mut chance).await;
        asked += count;
        faults.extend(found);
    }
    (asked, faults)
}
