//! The raw limit: `pgbench` running scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::capture::Variables;
use super::measure::Measure;
use super::rig::Rig;
use crate::process::output_of;

/// Scripts that can be run again and again.
pub struct Pgbench {
    folder: PathBuf,
    role: &'static str,
    /// Each with how often it runs, beside the others.
    scripts: Vec<(PathBuf, usize)>,
    variables: Variables,
}

impl Pgbench {
    /// Writes scripts to a folder, to be run as a role; each with its weight among them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn new(
        folder: PathBuf,
        role: &'static str,
        scripts: &[(String, usize)],
        variables: Variables,
    ) -> anyhow::Result<Self> {
        let mut paths = Vec::with_capacity(scripts.len());
        for (index, (script, weight)) in scripts.iter().enumerate() {
            let path = folder.join(format!("script-{index}.sql"));
            fs::write(&path, script).with_context(|| format!("writing {}", path.display()))?;
            paths.push((path, *weight));
        }
        Ok(Self {
            folder,
            role,
            scripts: paths,
            variables,
        })
    }

    /// Runs them with a number of clients for a time, each script as often as its weight has it.
    ///
    /// # Errors
    /// If pgbench fails, or a statement does.
    pub fn run(&self, rig: &Rig, clients: usize, time: Duration) -> anyhow::Result<Measure> {
        let log = self.folder.join("latency");
        let mut command = rig.postgres_program("pgbench", self.role);
        command.args([
            "-n",
            "-M",
            "prepared",
            "--log",
            "-j",
            "2",
            "-c",
            &clients.to_string(),
        ]);
        command
            .args(["-T", &time.as_secs().to_string(), "--log-prefix"])
            .arg(&log);
        for definition in self.variables.definitions() {
            command.arg("-D").arg(definition);
        }
        for (script, weight) in &self.scripts {
            command
                .arg("-f")
                .arg(format!("{}@{weight}", script.display()));
        }
        let printed = output_of(&mut command)?;
        let tps = rate(&printed).with_context(|| format!("pgbench printed no rate: {printed}"))?;
        let latencies = take_latencies(&self.folder)?;
        Measure::of(tps, latencies.iter().copied())
    }
}

/// `tps = 512.3 (without initial connection time)`.
fn rate(printed: &str) -> Option<f64> {
    let (_, rest) = printed.split_once("tps = ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Microseconds of each transaction, from the logs of one run, which are removed.
fn take_latencies(folder: &Path) -> anyhow::Result<Vec<u64>> {
    let mut latencies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("latency."));
        if is_log {
            let text = fs::read_to_string(&path)?;
            latencies.extend(text.lines().filter_map(latency));
            fs::remove_file(&path)?;
        }
    }
    Ok(latencies)
}

/// The third word of `client transaction microseconds …`.
fn latency(line: &str) -> Option<u64> {
    line.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_prints_is_read() {
        let printed = "number of transactions: 9\ntps = 512.25 (without initial connection time)";
        assert_eq!(rate(printed), Some(512.25));
        assert_eq!(latency("0 199 2241 0 1175850568 995598"), Some(2_241));
        assert_eq!(latency("0 199 failed"), None);
    }
}
