//! Copying: records are generated and analysed on some threads and written into Postgres in the
//! order of time.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::Context;
use cairn_wire::domain::bounds::est_tokens;
use cairn_wire::domain::text::ANALYSER;

use super::corpus::{Corpus, Frequencies, PART, Row};
use super::places::{Place, Places};
use super::psql::{finish, script};
use super::threads::{THREADS, join};
use crate::bench::rig::Rig;

/// Parts that a thread may be ahead.
const AHEAD: usize = 4;
/// The records are spread evenly over this many days before now.
const DAYS: f64 = 180.0;

/// Fills the table that is not split and the bodies; answers how often each word occurs.
///
/// # Errors
/// If Postgres refuses a row.
pub fn copy(
    rig: &Rig,
    corpus: &Corpus,
    rows: usize,
    places: &Places,
) -> anyhow::Result<Frequencies> {
    let parts = rows.div_ceil(PART);
    let mut faces = Copy::start(
        rig,
        "single.records",
        "tenant_id, kind, number, project_id, author_id, at, position, private, subagent, \
         obs_type, concepts, read_tokens, work_tokens, analyser, field_lengths, title, tsv, profile",
    )?;
    let mut bodies = Copy::start(
        rig,
        "observations",
        "tenant_id, number, event_id, arrived_at, origin, subtitle, narrative, facts, files_read, \
         files_read_more, files_modified, files_modified_more, tool_uses",
    )?;
    let now = chrono::Utc::now();
    let frequencies = thread::scope(|scope| -> anyhow::Result<Frequencies> {
        let mut channels: Vec<Receiver<Vec<Row>>> = Vec::new();
        let mut threads = Vec::new();
        for first in 0..THREADS {
            let (sender, receiver) = sync_channel(AHEAD);
            channels.push(receiver);
            threads.push(scope.spawn(move || {
                let mut frequencies = Frequencies::new();
                for part in (first..parts).step_by(THREADS) {
                    // Whoever reads has met an error and says so.
                    if sender.send(corpus.part(part, &mut frequencies)).is_err() {
                        break;
                    }
                }
                Ok(frequencies)
            }));
        }
        for part in 0..parts {
            let made = channels[part % THREADS].recv().context("a part")?;
            let first = part * PART;
            for (nth, row) in made.iter().enumerate().take(rows - first) {
                let share = 1.0 - (first + nth) as f64 / rows as f64;
                let ago = chrono::TimeDelta::milliseconds((share * DAYS * 86_400_000.0) as i64);
                let at = cairn_wire::time::text(now - ago);
                let place = &places.tenants[row.tenant];
                place.records.set(place.records.get() + 1);
                faces.write(&face(row, place, &at))?;
                bodies.write(&body(row, place, &at))?;
            }
        }
        let mut frequencies = Frequencies::new();
        for thread in threads {
            frequencies.add(&join(thread)?);
        }
        Ok(frequencies)
    })?;
    faces.finish()?;
    bodies.finish()?;
    script(rig, &places.counters())?;
    Ok(frequencies)
}

fn face(row: &Row, place: &Place, at: &str) -> String {
    let (number, author, tenant) = (place.records.get(), place.author, place.id);
    let project = place.projects[row.project];
    let position = number + place.projects.len() as i64;
    let texts = [&row.title, &row.narrative].into_iter().chain(&row.facts);
    let read: usize = texts.map(|text| est_tokens(text)).sum();
    let [a, b, c, d] = row.vector.lengths;
    let (kind, work, title, tsv) = (row.kind, row.work_tokens, &row.title, &row.vector.literal);
    let profile = hex(&row.vector.profile);
    format!(
        "{tenant}\t0\t{number}\t{project}\t{author}\t{at}\t{position}\tf\tf\t{kind}\t\
         {{what-changed}}\t{read}\t{work}\t{ANALYSER}\t{{{a},{b},{c},{d}}}\t{title}\t{tsv}\t{profile}\n"
    )
}

/// Bytes as a copy reads them.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(3 + 2 * bytes.len());
    text.push_str("\\\\x");
    for byte in bytes {
        // A String takes all.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn body(row: &Row, place: &Place, at: &str) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
        format!("{{{}}}", quoted.join(","))
    };
    format!(
        "{}\t{}\t{}\t{at}\tapi\t\t{}\t{}\t{{}}\t0\t{}\t0\t{{}}\n",
        place.id,
        place.records.get(),
        uuid::Uuid::now_v7(),
        row.narrative,
        list(&row.facts),
        list(&row.files),
    )
}

/// A table that rows are copied into.
struct Copy {
    running: Child,
    stdin: BufWriter<std::process::ChildStdin>,
}

impl Copy {
    fn start(rig: &Rig, table: &str, columns: &str) -> anyhow::Result<Self> {
        let mut psql = rig.postgres_program("psql", "postgres");
        psql.env("PGOPTIONS", "-c session_replication_role=replica");
        // Emptied in the same transaction, a table needs no log of what comes in.
        psql.args(["-Xq1", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-c", &format!("truncate {table}")]);
        psql.args(["-c", &format!("copy {table} ({columns}) from stdin")]);
        psql.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut running = psql.spawn().context("starting psql")?;
        let stdin = running.stdin.take().context("psql takes no input")?;
        Ok(Self {
            running,
            stdin: BufWriter::with_capacity(1 << 20, stdin),
        })
    }

    fn write(&mut self, line: &str) -> anyhow::Result<()> {
        self.stdin
            .write_all(line.as_bytes())
            .context("psql reads no more")
    }

    fn finish(self) -> anyhow::Result<()> {
        // Its end is the end of the copy.
        drop(self.stdin.into_inner().context("psql reads no more")?);
        finish(self.running)
    }
}
