//! The context scenario: a kept context beside a bare route, one rendered anew beside the same
//! SQL from `pgbench`, and a long list beside a short one.

use std::fs;
use std::sync::Arc;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::against::{against_pgbench, interleave};
use super::bare::Bare;
use super::measure::Rounds;
use super::operation::{Call, Operation, item_rest};
use super::report::{rounded, table, write_figures};
use super::rig::Rig;
use super::scenario::{CONTEXT, Scenario};
use super::{Load, Timing, closed_loop, load};
use crate::api::Api;
use crate::output::{complain, say};

/// Connections beside the bare route: many sessions start at once, and only then is either busy.
const SESSIONS: usize = 64;
/// Entries of the long list and of the short one, and the open tasks that both end with.
const LONG: usize = 10_000;
const SHORT: usize = 200;
const OPEN: usize = 20;
/// Goals: the share of the raw limit's rate, and how much longer a long list may take.
const CACHED_GOAL: f64 = 0.6;
const UNCACHED_GOAL: f64 = 0.6;
const LOG_GOAL: f64 = 1.5;

/// Measures all three, prints their tables and writes their figures.
///
/// # Errors
/// If something does not work, or a goal is missed.
pub fn run(
    options: &Load,
    runtime: &tokio::runtime::Runtime,
    rig: &Rig,
    api: &Api,
    anew: &Arc<Vec<Operation>>,
) -> anyhow::Result<()> {
    runtime.block_on(add_lists(api, anew))?;
    let kept = anew.iter().map(|operation| Operation {
        call: Call::Get(CONTEXT.to_owned()),
        ..operation.clone()
    });
    complain("a kept context beside a bare route that returns the same bytes");
    let cached = beside_bare_route(&options.timing, runtime, rig, api, Arc::new(kept.collect()))?;
    complain("a context rendered anew beside the same SQL");
    let uncached = against_pgbench(&options.timing, runtime, rig, api, anew)?;
    complain("a list of 10,000 entries beside one of 200");
    let log = long_beside_short(&options.timing, runtime, rig, api, &anew[0])?;

    let mut figures = Map::new();
    let mut missed = Vec::new();
    for (name, raw_name, operation, rounds, ratio, is_reached) in [
        (
            "cached",
            "bare route",
            "kept contexts",
            &cached,
            cached.ratio(),
            cached.ratio() >= CACHED_GOAL,
        ),
        (
            "uncached",
            "pgbench",
            "contexts rendered anew",
            &uncached,
            uncached.ratio(),
            uncached.ratio() >= UNCACHED_GOAL,
        ),
        (
            "log_10000",
            "200 entries",
            "reads of lists",
            &log,
            1.0 / log.ratio(),
            1.0 / log.ratio() <= LOG_GOAL,
        ),
    ] {
        let (service, raw) = (rounds.service()?, rounds.raw()?);
        say(&table(operation, [("service", service), (raw_name, raw)]));
        let word = if is_reached { "reached" } else { "missed" };
        say(&format!("{name}_ratio {ratio:.2}: goal {word}\n"));
        let mut put =
            |figure: &str, value: Value| figures.insert(format!("{name}_{figure}"), value);
        put("ratio", rounded(ratio));
        for (side, prefix) in [(service, ""), (raw, "raw_")] {
            put(&format!("{prefix}rps"), rounded(side.rate));
            put(&format!("{prefix}p50_ms"), rounded(side.p50));
            put(&format!("{prefix}p95_ms"), rounded(side.p95));
            put(&format!("{prefix}p99_ms"), rounded(side.p99));
        }
        if !is_reached {
            missed.push(name);
        }
    }
    for (name, goal) in [
        ("cached", CACHED_GOAL),
        ("uncached", UNCACHED_GOAL),
        ("log_10000", LOG_GOAL),
    ] {
        figures.insert(format!("{name}_goal"), json!(goal));
    }
    figures.insert("rounds".to_owned(), json!(options.timing.rounds.max(1)));
    figures.insert("seconds".to_owned(), json!(options.timing.seconds.max(1)));
    figures.insert("rows".to_owned(), json!(options.rows));
    write_figures(&options.machine.out, Scenario::Context.name(), figures)?;
    if !missed.is_empty() {
        bail!("missed: {}", missed.join(", "));
    }
    Ok(())
}

/// Gives every project of the operations a few lists, as a team at work has.
async fn add_lists(api: &Api, operations: &[Operation]) -> anyhow::Result<()> {
    for operation in operations {
        append(api, operation, 40, 12).await?;
    }
    Ok(())
}

/// Appends entries to a list of a project; at the end just `open` of its tasks are open.
async fn append(api: &Api, of: &Operation, entries: usize, open: usize) -> anyhow::Result<()> {
    let entry = |task: usize, status: &str, note: usize| {
        let body = json!({"list": "release", "fields":
            {"task": format!("task {task}"), "status": status, "note": note}});
        item_rest("work_entry", None, &body)
    };
    // Closed tasks come and go in between, as over a year.
    let closed = (0..entries - open).map(|n| entry(open + n % 50, "done", n));
    let items: Vec<String> = closed
        .chain((0..open).map(|n| entry(n, "todo", n)))
        .collect();
    for part in items.chunks(500) {
        let batch = Operation {
            call: Call::Batch(part.to_vec()),
            ..of.clone()
        };
        load::check(&api.call(&batch).await?)?;
    }
    Ok(())
}

fn beside_bare_route(
    timing: &Timing,
    runtime: &tokio::runtime::Runtime,
    rig: &Rig,
    api: &Api,
    kept: Arc<Vec<Operation>>,
) -> anyhow::Result<Rounds> {
    let files = rig.folder("bare")?;
    let mut bare = Vec::with_capacity(kept.len());
    for (nth, operation) in kept.iter().enumerate() {
        fs::write(
            files.join(nth.to_string()),
            runtime.block_on(api.call(operation))?,
        )?;
        bare.push(Operation {
            call: Call::Get(format!("/{nth}")),
            ..operation.clone()
        });
    }
    let (route, bare) = (Bare::start(&files)?, Arc::new(bare));
    interleave(
        timing,
        ("service", |time, seed| {
            runtime.block_on(closed_loop::run(&rig.url, &kept, SESSIONS, time, seed))
        }),
        ("bare route", |time, seed| {
            runtime.block_on(closed_loop::run(&route.url, &bare, SESSIONS, time, seed))
        }),
    )
}

fn long_beside_short(
    timing: &Timing,
    runtime: &tokio::runtime::Runtime,
    rig: &Rig,
    api: &Api,
    of: &Operation,
) -> anyhow::Result<Rounds> {
    let mut sides = Vec::new();
    for (project, entries) in [("long-list", LONG), ("short-list", SHORT)] {
        let read = Operation {
            project: format!("name:{project}"),
            call: Call::Get("/v1/work-state".to_owned()),
            ..of.clone()
        };
        runtime.block_on(append(api, &read, entries, OPEN))?;
        sides.push(Arc::new(vec![read]));
    }
    rig.psql("vacuum analyze")?;
    let count = timing.connections;
    let run = |side: &Arc<Vec<Operation>>, time, seed| {
        runtime.block_on(closed_loop::run(&rig.url, side, count, time, seed))
    };
    interleave(
        timing,
        ("10,000 entries", |time, seed| run(&sides[0], time, seed)),
        ("200 entries", |time, seed| run(&sides[1], time, seed)),
    )
}
