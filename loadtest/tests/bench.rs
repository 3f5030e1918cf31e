//! Benches as people run them, on little data: what they measure says nothing here, but that they
//! measure it, and that nothing is left of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::unistd::{User, geteuid};
use serde_json::Value;
use tempfile::TempDir;

/// A folder that the database's user may pass through too, if that is another one.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("made");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    folder
}

/// The server stands beside the bench; built here if only this crate was.
fn build_server() {
    let bench = PathBuf::from(env!("CARGO_BIN_EXE_cairn-loadtest"));
    if !bench.with_file_name("cairn-server").is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "-p", "cairn-server"]);
        let built = cargo.status().expect("cargo runs").success();
        assert!(built, "the server does not build");
    }
}

/// A tool of the machine that `./dev test` names.
fn tool(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run ./dev test"))
}

fn bench(arguments: &[&str], out: &Path, temporary: &Path) -> Output {
    build_server();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_cairn-loadtest"));
    bench.arg("bench").args(arguments).args(["--settle", "0"]);
    bench.args(["--postgres-bin", &tool("CAIRN_PG_BIN")]);
    bench.args(["--redis", &tool("CAIRN_TEST_REDIS_SERVER")]);
    let paths = [
        ("--roles", root.join("deploy/postgres/roles.sql")),
        ("--migrations", root.join("migrations")),
        ("--out", out.to_owned()),
        ("--keep", out.join("kept")),
    ];
    for (name, path) in paths {
        bench.arg(name).arg(path);
    }
    // As in ./dev: Postgres refuses to run as root.
    if geteuid().is_root() {
        let is_there = User::from_name("postgres").is_ok_and(|user| user.is_some());
        bench.args(["--run-as", if is_there { "postgres" } else { "nobody" }]);
    }
    bench
        .env("TMPDIR", temporary)
        .output()
        .expect("the bench runs")
}

/// The figures that a bench wrote.
fn figures(out: &Path, name: &str) -> Value {
    let text = fs::read(out.join(format!("{name}.json"))).expect("written");
    serde_json::from_slice(&text).expect("JSON")
}

fn assert_empty(temporary: &Path) {
    let left: Vec<_> = fs::read_dir(temporary).expect("readable").collect();
    assert!(left.is_empty(), "left: {left:?}");
}

fn write(folder: &Path, set: &str, file: &str, lines: &[&str]) {
    let folder = folder.join("sets").join(set);
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join(file), lines.join("\n")).expect("written");
}

#[test]
fn what_is_found_is_scored_in_the_project_that_was_asked() {
    let (folder, out, temporary) = (open_folder(), open_folder(), open_folder());
    write(
        folder.path(),
        "own",
        "records.jsonl",
        &[
            r#"{"id":"o/1","project":"a b","title":"Pool leaks","narrative":"","created_at":"1958-01-01T00:00:00Z"}"#,
            r#"{"id":"o/2","project":"other","title":"Pool drains","narrative":""}"#,
            r#"{"id":"o/3","project":"a b","title":"","narrative":""}"#,
        ],
    );
    write(
        folder.path(),
        "own",
        "queries.jsonl",
        &[
            r#"{"qid":"q1","project":"a b","query":"pool","relevant":["o/1","o/3"]}"#,
            r#"{"qid":"q2","project":"other","query":"nowhere","relevant":["o/2"]}"#,
        ],
    );
    write(
        folder.path(),
        "borrowed",
        "queries.jsonl",
        &[r#"{"qid":"q3","project":"other","query":"drains","relevant":["o/2"]}"#],
    );

    let path = folder.path().to_str().expect("UTF-8");
    let output = bench(&["retrieval", path], out.path(), temporary.path());
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    // No set has a reference, so there is nothing to miss.
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(complained.contains("o/3 says nothing"), "{complained}");
    let figures = figures(out.path(), "retrieval");
    assert_eq!(figures["own"]["recall@20"], 0.25, "{figures}");
    assert_eq!(figures["own"]["mrr@10"], 0.5, "{figures}");
    assert_eq!(figures["borrowed"]["ndcg@10"], 1.0, "{figures}");
    assert_eq!(figures["mean"]["recall@20"], 0.625, "{figures}");
    let run = fs::read_to_string(out.path().join("retrieval.run.jsonl")).expect("written");
    let first: Value = serde_json::from_str(run.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["ids"], serde_json::json!(["o/2"]), "{run}");
    assert_empty(temporary.path());
}

#[test]
fn searches_are_measured_on_every_side_and_the_database_is_kept() {
    let (out, temporary) = (open_folder(), open_folder());
    let little = [
        "search",
        "--rows",
        "3000",
        "--tenants",
        "12",
        "--seconds",
        "1",
        "--rounds",
        "1",
    ];
    let output = bench(&little, out.path(), temporary.path());
    let complained = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    // Goals are for a million records on an idle machine.
    let is_measured = output.status.success() || complained.contains("missed:");
    assert!(is_measured, "{said}\n{complained}");
    let figures = figures(out.path(), "search");
    for name in [
        "server_vs_pgbench",
        "schema_vs_rank_all",
        "schema_vs_single_table",
        "largest_p95_vs_pk",
        "small_p95_vs_pk",
        "app_cpu_vs_hello",
        "gate_vs_where",
    ] {
        assert!(
            figures[name].as_f64().is_some_and(|value| value > 0.0),
            "{name}: {figures}"
        );
        assert!(figures[format!("{name}_goal")].is_number(), "{name}");
    }
    assert_eq!(figures["adversarial_unanswered"], 0.0, "{figures}");
    assert_eq!(figures["rows"], 3_000);
    let kept = fs::read_dir(out.path().join("kept")).expect("kept");
    let mut whole = kept.flatten().map(|entry| entry.path().join("loaded.json"));
    assert!(
        whole.any(|path| path.is_file()),
        "the database was not kept"
    );
    assert_empty(temporary.path());
}
