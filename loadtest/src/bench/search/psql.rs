//! Scripts for `psql`, longer than an argument may be.

use std::io::Write as _;
use std::process::{Child, Stdio};

use anyhow::{Context, bail};

use crate::bench::rig::Rig;

/// Runs a script as the superuser, held by no reference between tables.
///
/// # Errors
/// If Postgres refuses a statement.
pub fn script(rig: &Rig, text: &str) -> anyhow::Result<()> {
    let mut psql = rig.postgres_program("psql", "postgres");
    psql.env("PGOPTIONS", "-c session_replication_role=replica");
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f", "-"]);
    let mut running = psql
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting psql")?;
    if let Some(mut stdin) = running.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    finish(running)
}

/// Waits for psql, whose input has ended.
///
/// # Errors
/// What it complains about.
pub fn finish(running: Child) -> anyhow::Result<()> {
    let output = running.wait_with_output()?;
    if !output.status.success() {
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
