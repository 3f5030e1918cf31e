//! The retrieval bench as people run it: a folder of sets goes through a real service, and what
//! was found is scored and written down.

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

fn bench(folder: &Path, out: &Path, temporary: &Path) -> Output {
    build_server();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_cairn-loadtest"));
    bench.args(["bench", "retrieval"]).arg(folder);
    bench.args(["--settle", "0", "--out"]).arg(out);
    bench.args(["--postgres-bin", &tool("CAIRN_PG_BIN")]);
    bench.args(["--redis", &tool("CAIRN_TEST_REDIS_SERVER")]);
    bench
        .arg("--roles")
        .arg(root.join("deploy/postgres/roles.sql"));
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

    let output = bench(folder.path(), out.path(), temporary.path());
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    // No set has a reference, so there is nothing to miss.
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(complained.contains("o/3 says nothing"), "{complained}");
    let figures = fs::read(out.path().join("retrieval.json")).expect("written");
    let figures: Value = serde_json::from_slice(&figures).expect("JSON");
    assert_eq!(figures["own"]["recall@20"], 0.25, "{figures}");
    assert_eq!(figures["own"]["mrr@10"], 0.5, "{figures}");
    assert_eq!(figures["borrowed"]["ndcg@10"], 1.0, "{figures}");
    assert_eq!(figures["mean"]["recall@20"], 0.625, "{figures}");
    let run = fs::read_to_string(out.path().join("retrieval.run.jsonl")).expect("written");
    let first: Value = serde_json::from_str(run.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["ids"], serde_json::json!(["o/2"]), "{run}");
    let left: Vec<_> = fs::read_dir(temporary.path()).expect("readable").collect();
    assert!(left.is_empty(), "left: {left:?}");
}
