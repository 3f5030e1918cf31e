//! A spool of more events than the service takes at once: the real client brings all of it to a
//! real service, however often it is told to come again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Events a minute; a fifth of them may come at once.
const RATE: usize = 6_000;
/// More than that, in batches of which one meets what is left of it.
const EVENTS: usize = 1_700;

/// Programs of this repository, as they stand.
fn built(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_cairn-loadtest")).with_file_name(name)
}

fn build_programs() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--locked",
        "-p",
        "cairn-server",
        "-p",
        "cairn-client",
    ]);
    let done = cargo.status().expect("cargo runs").success();
    assert!(done, "server and client do not build");
}

/// A command that sees nothing of this machine's settings for Cairn.
fn command(name: &str, home: &Path) -> Command {
    let mut command = Command::new(built(name));
    command.env_clear().env("HOME", home).current_dir(home);
    for name in ["PATH", "CAIRN_PG_BIN", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

struct Service {
    child: Child,
    url: String,
    key: String,
}

impl Service {
    /// An embedded one on a port of its own.
    fn start(folder: &Path, log: &Path) -> Self {
        let mut command = command("cairn-server", folder);
        command
            .env("CAIRN_EMBEDDED", "true")
            .env("CAIRN_DATA", folder.join("data"))
            .env("CAIRN_LISTEN", "127.0.0.1:0")
            .env("CAIRN_RATE_EVENTS", RATE.to_string())
            .stdout(Stdio::piped())
            .stderr(File::create(log).expect("a log"));
        let mut child = command.spawn().expect("cairn-server starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (mut url, mut key) = (None, None);
        for line in lines.map_while(Result::ok) {
            if let Some((_, said)) = line.split_once("listens on ") {
                url = Some(said.trim().to_owned());
            }
            if line.trim_start().starts_with("cairn_") {
                key = Some(line.trim().to_owned());
                break;
            }
        }
        let (url, key) = url.zip(key).expect("it says its address and a key");
        Self { child, url, key }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), Signal::SIGTERM).ok();
        self.child.wait().ok();
    }
}

fn cairn(home: &Path, words: &[&str], input: &str) -> Output {
    let mut command = command("cairn", home);
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("cairn starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("read");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// Bytes in the files of a folder whose names end so.
fn bytes(folder: &Path, end: &str) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(end));
    files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

/// What the service says of events.
async fn check(service: &Service, ids: &[Value]) -> Vec<Value> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let http = reqwest::Client::builder().build().expect("a client");
    let mut items = Vec::new();
    for ids in ids.chunks(1_000) {
        let asked = http
            .post(format!("{}/v1/events/check", service.url))
            .bearer_auth(&service.key)
            .json(&json!({"event_ids": ids}));
        let answer = asked.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{answer:?}");
        let answer: Value = answer.json().await.expect("JSON");
        items.extend(answer["items"].as_array().expect("items").clone());
    }
    items
}

#[tokio::test]
async fn a_spool_larger_than_the_limit_of_events_drains_to_the_last_one() {
    build_programs();
    let folder = TempDir::new().expect("a folder");
    // The database's user may have to pass through.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    let home = folder.path().join("home");
    fs::create_dir(&home).expect("a home");
    let log = folder.path().join("log");
    let service = Service::start(folder.path(), &log);
    let login = cairn(
        &home,
        &["login", "--key", "--url", &service.url],
        &service.key,
    );
    assert!(login.status.success(), "{login:?}");

    let ids: Vec<Value> = (0..EVENTS)
        .map(|_| uuid::Uuid::now_v7().to_string().into())
        .collect();
    let line = |(n, id): (usize, &Value)| {
        let body = json!({"title": format!("note {n}")});
        format!(
            "{}\n",
            json!({"event_id": id, "kind": "observation", "body": body})
        )
    };
    let lines: String = ids.iter().enumerate().map(line).collect();
    let recorded = cairn(&home, &["record"], &lines);
    assert!(recorded.status.success(), "{recorded:?}");

    let data = home.join(".local/share/cairn");
    let end = Instant::now() + Duration::from_secs(180);
    while bytes(&data.join("spool"), ".ndjson") > 0 {
        assert!(Instant::now() < end, "the spool is not empty");
        let flushed = cairn(&home, &["flush"], "");
        assert!(flushed.status.success(), "{flushed:?}");
    }
    assert_eq!(
        bytes(&data.join("set-aside"), ""),
        0,
        "nothing is set aside"
    );
    let log = fs::read_to_string(&log).expect("a log");
    assert!(log.contains("a caller came too fast"), "the limit was met");
    let items = check(&service, &ids).await;
    assert_eq!(items.len(), EVENTS);
    for item in items {
        assert_eq!(item["status"], "stored", "{item}");
    }
}
