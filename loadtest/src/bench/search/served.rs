//! The service under load: its rate beside pgbench running the same SQL, and what it costs of a
//! processor beside a bare route.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::captured::Captured;
use crate::bench::against::interleave;
use crate::bench::bare::Bare;
use crate::bench::capture::{ROLE, Variables};
use crate::bench::measure::{Measure, Rounds, median};
use crate::bench::operation::{Call, Operation};
use crate::bench::pgbench::Pgbench;
use crate::bench::rig::Rig;
use crate::bench::{Timing, closed_loop, cpu};

/// What was measured.
pub struct Served {
    /// The service, and pgbench.
    pub rounds: Rounds,
    /// Microseconds of a processor that an index step takes of the service.
    pub service_us: f64,
    /// And of Postgres.
    pub postgres_us: f64,
    /// Microseconds that a request takes of a bare route.
    pub hello_us: f64,
}

/// Runs the mix in turns against the service and in pgbench, then the bare route.
///
/// # Errors
/// If something is not answered.
pub fn measure(
    rig: &Rig,
    timing: &Timing,
    runtime: &tokio::runtime::Runtime,
    mix: &[(&Captured, usize)],
) -> anyhow::Result<Served> {
    let mut variables = Variables::default();
    let scripts: Vec<(String, usize)> = mix
        .iter()
        .map(|(search, weight)| (search.script(&mut variables), *weight))
        .collect();
    let pgbench = Pgbench::new(rig.folder("served")?, ROLE, &scripts, variables)?;
    let steps = mix
        .iter()
        .flat_map(|(search, weight)| std::iter::repeat_n(search.case.operation(), *weight));
    let steps = Arc::new(steps.collect::<Vec<Operation>>());
    let count = timing.connections;
    let (service, postgres) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let (service_pid, postgres_pid) = (rig.service_pid()?, rig.postgres_pid());
    let rounds = interleave(
        timing,
        ("service", |time, seed| {
            let before = (
                cpu::of_process(service_pid)?,
                cpu::of_children(postgres_pid)?,
            );
            let run = closed_loop::run(&rig.url, &steps, count, time, seed);
            let measure = runtime.block_on(run)?;
            let each =
                |before: u64, after: u64| micros_each(after.saturating_sub(before), &measure);
            let served = each(before.0, cpu::of_process(service_pid)?);
            service.borrow_mut().push(served);
            let asked = each(before.1, cpu::of_children(postgres_pid)?);
            postgres.borrow_mut().push(asked);
            Ok(measure)
        }),
        ("pgbench", |time, _| pgbench.run(rig, count, time)),
    )?;
    Ok(Served {
        rounds,
        service_us: median(service.into_inner()),
        postgres_us: median(postgres.into_inner()),
        hello_us: hello(rig, timing, runtime)?,
    })
}

fn micros_each(nanos: u64, measure: &Measure) -> f64 {
    nanos as f64 / 1_000.0 / measure.latencies.len() as f64
}

/// A bare route that says hello.
fn hello(rig: &Rig, timing: &Timing, runtime: &tokio::runtime::Runtime) -> anyhow::Result<f64> {
    let files = rig.folder("hello")?;
    fs::write(files.join("0"), "hello")?;
    let route = Bare::start(&files)?;
    let call = Operation {
        key: "none".to_owned(),
        project: "none".to_owned(),
        call: Call::Get("/0".to_owned()),
    };
    let calls = Arc::new(vec![call]);
    let time = Duration::from_secs(timing.seconds.clamp(1, 3));
    let mut costs = Vec::new();
    for round in 0..=timing.rounds.max(1) {
        let before = cpu::of_process(route.pid())?;
        let run = closed_loop::run(&route.url, &calls, timing.connections, time, round);
        let measure = runtime.block_on(run)?;
        let spent = cpu::of_process(route.pid())?.saturating_sub(before);
        if round > 0 {
            costs.push(micros_each(spent, &measure));
        }
    }
    Ok(median(costs))
}
