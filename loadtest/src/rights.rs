//! A large tenant goes out as lines and comes in again as another one: the same content, once.
//!
//! Through `cairn export` and `cairn import`, as people would do it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::demo::client::Client;
use crate::output::{grouped, heading, say};
use crate::process::{Scratch, built, output_of};
use crate::service::{EmbeddedService, clean_environment};

/// Fields that another tenant numbers or tells anew.
const OWN: [&str; 5] = ["id", "position", "origin", "imported_id", "imported_author"];

/// Who owns both tenants: the first is named after the home folder. What they wrote is theirs in
/// the second too, and so are their prompts, which nobody else reads.
const OWNER: &str = "demo";

/// How large the tenant is.
#[derive(clap::Args)]
pub struct Options {
    /// Records of the tenant.
    #[arg(long, default_value_t = 100_000)]
    records: usize,
}

/// Runs to the end.
///
/// # Errors
/// At the first thing that is not as it was.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let scratch = Scratch::new()?;
    let program = built("cairn-server")?;
    let service = EmbeddedService::start(&program, scratch.path())?;
    let second_key = second_tenant(&program, scratch.path())?;
    let sign_in = |home: &str, key: &str| -> anyhow::Result<Client> {
        let client = Client::new(built("cairn")?, scratch.folder(home)?);
        client.login(&service.url, key)?;
        Ok(client)
    };
    let first = sign_in("first", &service.key)?;
    let second = sign_in("second", &second_key)?;
    let made = scratch.path().join("made.ndjson");
    write(&made, options.records)?;

    heading("In, out, and in again");
    timed("imported into the first tenant", || import(&first, &made))?;
    let out = scratch.path().join("first.ndjson");
    timed("exported", || export(&first, &out))?;
    timed("imported into the second tenant", || import(&second, &out))?;
    let back = scratch.path().join("second.ndjson");
    timed("exported from it", || export(&second, &back))?;
    let (one, two) = (digest(&out)?, digest(&back)?);
    ensure!(one == two, "{one:?} went in and {two:?} came out");
    say(&format!(
        "{} lines, content {}",
        grouped(one.lines),
        &one.content
    ));
    let again = timed("imported once more", || import(&second, &out))?;
    for (kind, counts) in again["counts"].as_object().into_iter().flatten() {
        ensure!(counts["stored"] == 0, "{kind} was stored again: {counts}");
    }
    say("The second time it stored nothing.");
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let began = Instant::now();
    let done = work().with_context(|| what.to_owned())?;
    say(&format!("{what} in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(done)
}

fn second_tenant(program: &Path, folder: &Path) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    clean_environment(&mut command, &folder.join("demo"));
    command
        .args(["admin", "tenant", "create", "second", "--owner", OWNER])
        .env("CAIRN_EMBEDDED", "true")
        .env("CAIRN_DATA", folder.join("data"))
        .current_dir(folder);
    let printed = output_of(&mut command)?;
    let key = printed.lines().find(|line| line.starts_with("cairn_"));
    Ok(key.context("no key was printed")?.trim().to_owned())
}

fn import(client: &Client, file: &Path) -> anyhow::Result<Value> {
    let mut command = client.command(file.parent().context("a folder")?);
    command.arg("import").arg(file).arg("--json");
    let printed = output_of(&mut command)?;
    let answer: Value = serde_json::from_str(printed.trim())?;
    match answer["refused"]
        .as_array()
        .and_then(|refused| refused.first())
    {
        Some(refused) => bail!("refused: {refused}"),
        None => Ok(answer),
    }
}

fn export(client: &Client, file: &PathBuf) -> anyhow::Result<()> {
    let mut command = client.command(file.parent().context("a folder")?);
    let status = command.arg("export").stdout(File::create(file)?).status()?;
    ensure!(status.success(), "cairn export: {status}");
    Ok(())
}

/// Records of every kind, as an export would have them.
fn write(path: &Path, records: usize) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut digest = Sha256::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let head = json!({"cairn_export": 1, "tenant": "made", "source": Uuid::now_v7(),
        "exported_at": "2026-10-10T08:45:00.000Z"});
    let mut put = |line: &Value| -> anyhow::Result<()> {
        let line = format!("{line}\n");
        digest.update(line.as_bytes());
        Ok(out.write_all(line.as_bytes())?)
    };
    put(&head)?;
    for n in 0..records {
        let (kind, own) = match n % 10 {
            0 => (
                "prompt",
                json!({"text": format!("what of part {n}?"), "number": n / 10 + 1}),
            ),
            1 => (
                "summary",
                json!({"summary": {"request": format!("part {n}"), "learned": "much"}}),
            ),
            2 => (
                "tool_use",
                json!({"tool_use": {"tool": "Bash", "input": format!("{{\"n\":{n}}}"),
                    "output": "\"done\"", "failed": false, "turn": n / 10 + 1}}),
            ),
            3 => (
                "work_entry",
                json!({"work_entry": {"list": format!("list {}", n % 100),
                    "fields": {"task": format!("t{}", n % 1_000), "status": "todo", "n": n},
                    "hlc": format!("{}.0", 1_790_000_000_000_i64 + i64::try_from(n)?)}}),
            ),
            _ => (
                "observation",
                json!({"observation": {"type": "change", "title": format!("changed part {n}"),
                    "narrative": format!("part {n} is now {}", n * 7), "facts": ["one", "two"],
                    "files_modified": [format!("src/part{}.rs", n % 500)], "work_tokens": 1_500}}),
            ),
        };
        let at = 1_790_000_000_000_i64 + i64::try_from(n)?;
        let at = chrono::DateTime::from_timestamp_millis(at).context("a time")?;
        let at = cairn_wire::time::text(at);
        let mut line = json!({"kind": kind, "id": (n + 1).to_string(), "event_id": Uuid::now_v7(),
            "project": format!("name:project {}", n % 7), "host": "claude-code",
            "session": format!("s-{}", n % 211), "author": OWNER, "at": at, "arrived_at": at,
            "visibility": "team"});
        for (name, value) in own.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        put(&line)?;
        *counts.entry(kind).or_default() += 1;
    }
    let end = json!({"cairn_export_end": 1, "counts": counts, "sha256": hex(&digest.finalize())});
    writeln!(out, "{end}")?;
    Ok(out.flush()?)
}

/// What lines say, in any order.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    lines: usize,
    content: String,
}

fn digest(path: &Path) -> anyhow::Result<Content> {
    let mut digests: Vec<[u8; 32]> = Vec::new();
    for line in BufReader::new(File::open(path)?).lines().skip(1) {
        let mut line: Value = serde_json::from_str(&line?)?;
        let own = line.as_object_mut().context("an object")?;
        if own.contains_key("cairn_export_end") {
            continue;
        }
        own.retain(|name, _| !OWN.contains(&name.as_str()));
        digests.push(Sha256::digest(line.to_string().as_bytes()).into());
    }
    digests.sort_unstable();
    let all: Sha256 = digests.iter().fold(Sha256::new(), |mut all, one| {
        all.update(one);
        all
    });
    Ok(Content {
        lines: digests.len(),
        content: hex(&all.finalize()),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
