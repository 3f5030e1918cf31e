//! The demo as people run it: the real programs, a real database, from input to comparison.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder that the database's user may pass through too, if that is another one.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("made");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    folder
}

/// The server and the client stand beside the demo; built here if only this crate was.
fn build_programs() {
    let demo = PathBuf::from(env!("CARGO_BIN_EXE_cairn-loadtest"));
    let missing = ["cairn-server", "cairn"]
        .iter()
        .any(|name| !demo.with_file_name(name).is_file());
    if missing {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--locked",
            "-p",
            "cairn-server",
            "-p",
            "cairn-client",
        ]);
        assert!(
            cargo.status().expect("cargo runs").success(),
            "server and client do not build"
        );
    }
}

fn demo(arguments: &[&str], temporary: &Path) -> Output {
    build_programs();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_cairn-loadtest"));
    demo.arg("demo")
        .args(arguments)
        .env("TMPDIR", temporary)
        .output()
        .expect("the demo runs")
}

fn git(folder: &Path, words: &[&str]) {
    let mut git = Command::new("git");
    git.args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "-c",
        "commit.gpgsign=false",
    ]);
    let done = git
        .arg("-C")
        .arg(folder)
        .args(words)
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{done:?}");
}

/// Nothing is left of a run: no file in its temporary folder, no process that was told of it.
fn assert_nothing_left(temporary: &Path) {
    let files: Vec<_> = fs::read_dir(temporary)
        .expect("readable")
        .flatten()
        .collect();
    assert!(files.is_empty(), "left: {files:?}");
    let mark = temporary.as_os_str().as_encoded_bytes();
    for process in fs::read_dir("/proc").expect("readable").flatten() {
        let told = |file: &str| {
            let text = fs::read(process.path().join(file)).unwrap_or_default();
            text.windows(mark.len()).any(|window| window == mark)
        };
        assert!(
            !told("environ") && !told("cmdline"),
            "{:?} still runs",
            process.path()
        );
    }
}

#[test]
fn a_repository_of_one_commit_is_replayed_and_searched() {
    let (repository, temporary) = (open_folder(), open_folder());
    fs::write(repository.path().join("pool.rs"), "fn pool() {}\n").expect("written");
    git(repository.path(), &["init", "-q"]);
    git(repository.path(), &["add", "."]);
    git(
        repository.path(),
        &[
            "commit",
            "-qm",
            "Return connections to the pool\n\nOn errors too.",
        ],
    );

    let path = repository.path().to_str().expect("UTF-8");
    let output = demo(&[path], temporary.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let expected = [
        "<cairn-context>",
        "recent context",
        "1 ",
        "Return connections to the pool",
        "mem-search step 1 of 3 — index",
        "mem-search step 2 of 3 — context",
        "mem-search step 3 of 3 — selected details",
        "Narrative: On errors too.",
        "The three steps together:",
    ];
    let mut rest = text.as_ref();
    for part in expected {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} is not in its place:\n{text}"));
        rest = &rest[at + part.len()..];
    }
    assert_nothing_left(temporary.path());
}

#[test]
fn record_sets_are_replayed_instead_and_the_query_is_theirs() {
    let (folder, temporary) = (open_folder(), open_folder());
    let set = folder.path().join("sets/one");
    fs::create_dir_all(&set).expect("made");
    let record = |id: &str, project: &str, title: &str| {
        format!(
            r#"{{"id":"{id}","project":"{project}","title":"{title}","narrative":"n","created_at":"2024-05-0{id}T00:00:00Z"}}"#
        ) + "\n"
    };
    let records =
        record("1", "alpha", "连接池泄漏导致错误") + &record("2", "beta", "连接池 elsewhere");
    fs::write(set.join("records.jsonl"), records).expect("written");
    let query = r#"{"qid":"q","project":"alpha","query":"连接池泄漏","relevant":["1"]}"#;
    fs::write(set.join("queries.jsonl"), query).expect("written");

    let path = folder.path().to_str().expect("UTF-8");
    let output = demo(&[path], temporary.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("# [alpha] recent context"), "{text}");
    let (_, steps) = text.split_once("mem-search step 1 of 3").expect("a search");
    assert!(
        steps.contains("连接池泄漏导致错误 · observation · alpha · 2024-05-01"),
        "{steps}"
    );
    assert!(
        !steps.contains("elsewhere"),
        "a search stays in its project: {steps}"
    );
    assert_nothing_left(temporary.path());
}

#[test]
fn a_folder_without_input_is_an_error_that_leaves_nothing() {
    let (folder, temporary) = (open_folder(), open_folder());
    let output = demo(&[folder.path().to_str().expect("UTF-8")], temporary.path());
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        complaint.contains("no git repository and holds no record sets"),
        "{complaint}"
    );
    assert_nothing_left(temporary.path());
}
