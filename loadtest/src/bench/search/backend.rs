//! One backend of Postgres', driven through `psql`: prepared statements, and the time on a
//! processor that each execution takes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, bail};

use crate::bench::capture::Statement;
use crate::bench::cpu;
use crate::bench::rig::Rig;

/// Ends what a statement prints; psql says it once the statement is done.
const DONE: &str = "-- done --";

/// A connection of a role.
pub struct Backend {
    running: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pid: u32,
    /// Names of prepared statements, by their texts.
    prepared: HashMap<String, String>,
}

impl Backend {
    /// Connects.
    ///
    /// # Errors
    /// If psql does not start or Postgres refuses.
    pub fn connect(rig: &Rig, role: &str) -> anyhow::Result<Self> {
        let mut psql = rig.postgres_program("psql", role);
        psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-"]);
        psql.stdin(Stdio::piped());
        psql.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = psql.spawn().context("starting psql")?;
        let stdin = running.stdin.take().context("psql takes no input")?;
        let stdout = running.stdout.take().context("psql gives no output")?;
        let mut backend = Self {
            running,
            stdin,
            stdout: BufReader::new(stdout),
            pid: 0,
            prepared: HashMap::new(),
        };
        let pid = backend.run("select pg_backend_pid()")?;
        backend.pid = pid.trim().parse().context("a backend's process id")?;
        Ok(backend)
    }

    /// Runs a statement; answers its rows as psql prints them.
    ///
    /// # Errors
    /// If Postgres refuses it.
    pub fn run(&mut self, statement: &str) -> anyhow::Result<String> {
        self.stdin
            .write_all(format!("{statement};\n\\echo {DONE}\n").as_bytes())
            .and_then(|()| self.stdin.flush())
            .or_else(|_| self.refusal())?;
        let mut rows = String::new();
        loop {
            let before = rows.len();
            if self.stdout.read_line(&mut rows)? == 0 {
                self.refusal()?;
            }
            if rows[before..].trim_end() == DONE {
                rows.truncate(before);
                return Ok(rows);
            }
        }
    }

    /// What psql complained about before it ended.
    fn refusal(&mut self) -> anyhow::Result<()> {
        let mut complaint = String::new();
        if let Some(stderr) = &mut self.running.stderr {
            stderr.read_to_string(&mut complaint)?;
        }
        bail!("psql: {complaint}")
    }

    /// Executes a statement that is prepared once; answers its rows and the nanoseconds that it
    /// took of a processor.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn execute(&mut self, statement: &Statement) -> anyhow::Result<(String, u64)> {
        let name = match self.prepared.get(&statement.text) {
            Some(name) => name.clone(),
            None => {
                let name = format!("s{}", self.prepared.len());
                self.run(&format!("prepare {name} as {}", statement.text))?;
                self.prepared.insert(statement.text.clone(), name.clone());
                name
            }
        };
        let values: Vec<String> = statement.values.iter().map(literal).collect();
        let execute = match values.is_empty() {
            true => format!("execute {name}"),
            false => format!("execute {name}({})", values.join(",")),
        };
        let before = cpu::of_thread(self.pid)?;
        let rows = self.run(&execute)?;
        Ok((rows, cpu::of_thread(self.pid)?.saturating_sub(before)))
    }
}

fn literal(value: &Option<String>) -> String {
    match value {
        Some(value) => format!("'{}'", value.replace('\'', "''")),
        None => "null".to_owned(),
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        // psql ends with its input; a statement that still runs ends with psql.
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}
