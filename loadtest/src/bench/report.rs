//! The table for people and the figures for programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::Load;
use super::measure::{Rounds, Side};
use super::scenario::{BATCH, Scenario};
use crate::output::say;

/// Prints the table and writes `<scenario>.json`.
///
/// # Errors
/// If the goal is missed, after both are written; if they cannot be.
pub fn write(scenario: Scenario, load: &Load, rounds: &Rounds) -> anyhow::Result<()> {
    let (service, raw, ratio) = (rounds.service()?, rounds.raw()?, rounds.ratio());
    say(&table(
        scenario.operation(),
        [("service", service), ("pgbench", raw)],
    ));
    say(&format!(
        "\nratio {ratio:.2} (median of {} rounds), goal {:.2}: {}",
        load.timing.rounds.max(1),
        scenario.goal(),
        if ratio >= scenario.goal() {
            "reached"
        } else {
            "missed"
        }
    ));
    let figures = figures(scenario, load, service, raw, ratio);
    write_figures(&load.machine.out, scenario.name(), figures)?;
    if ratio < scenario.goal() || ratio.is_nan() {
        bail!(
            "{}: ratio {ratio:.2} misses the goal {:.2}",
            scenario.name(),
            scenario.goal()
        );
    }
    Ok(())
}

/// Writes `<name>.json` to a folder.
///
/// # Errors
/// If it cannot be written.
pub fn write_figures(out: &Path, name: &str, figures: Map<String, Value>) -> anyhow::Result<()> {
    fs::create_dir_all(out).context("making the folder for figures")?;
    let path = out.join(format!("{name}.json"));
    fs::write(&path, format!("{:#}\n", Value::Object(figures)))
        .with_context(|| format!("writing {}", path.display()))
}

/// A number with three digits behind its point.
pub fn rounded(number: f64) -> Value {
    json!((number * 1_000.0).round() / 1_000.0)
}

/// Rates and latencies of both sides, for people.
pub fn table(operation: &str, sides: [(&str, Side); 2]) -> String {
    let mut table = format!(
        "{:<12} {:>12} {:>10} {:>10} {:>10}   ({})\n",
        "", "per second", "p50 ms", "p95 ms", "p99 ms", operation
    );
    for (name, side) in sides {
        table.push_str(&format!(
            "{name:<12} {:>12.0} {:>10.2} {:>10.2} {:>10.2}\n",
            side.rate, side.p50, side.p95, side.p99
        ));
    }
    table.trim_end().to_owned()
}

/// A flat object; every name begins with the scenario's.
fn figures(
    scenario: Scenario,
    load: &Load,
    service: Side,
    raw: Side,
    ratio: f64,
) -> Map<String, Value> {
    let name = scenario.name();
    let mut figures = Map::new();
    let mut put = |figure: &str, value: Value| figures.insert(format!("{name}_{figure}"), value);
    put("ratio", rounded(ratio));
    put("goal", json!(scenario.goal()));
    put("rps", rounded(service.rate));
    if scenario == Scenario::Ingest {
        put("rows_per_s", rounded(service.rate * BATCH as f64));
    }
    for (side, prefix) in [(service, ""), (raw, "pgbench_")] {
        put(&format!("{prefix}p50_ms"), rounded(side.p50));
        put(&format!("{prefix}p95_ms"), rounded(side.p95));
        put(&format!("{prefix}p99_ms"), rounded(side.p99));
    }
    put("pgbench_tps", rounded(raw.rate));
    put("rounds", json!(load.timing.rounds.max(1)));
    put("seconds", json!(load.timing.seconds.max(1)));
    put("connections", json!(load.timing.connections));
    put("rows", json!(load.rows));
    figures
}
