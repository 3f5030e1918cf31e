//! Which project a folder is, as the records of its hooks say.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Machine;

fn git(folder: &Path, args: &[&str]) {
    fs::create_dir_all(folder).expect("a folder");
    let settings = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "-c",
        "protocol.file.allow=always",
    ];
    let output = Command::new("git")
        .args(settings)
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
}

fn repository(folder: &Path, origin: Option<&str>) {
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
    if let Some(origin) = origin {
        git(folder, &["remote", "add", "origin", origin]);
    }
}

/// The record of a hook that reports `cwd`.
fn record(machine: &Machine, cwd: &str, file: &str) -> Value {
    let payload = json!({"session_id": "s1", "cwd": cwd, "tool_name": "Edit",
        "tool_input": {"file_path": file}, "tool_response": ""});
    machine.hook("PostToolUse", &payload);
    machine.spooled().pop().expect("a record")
}

fn key(machine: &Machine, folder: &Path) -> String {
    let record = record(machine, folder.to_str().expect("plain"), "a");
    record["project"]["key"].as_str().expect("a key").to_owned()
}

#[test]
fn c059_the_same_folder_name_in_different_repositories() {
    let machine = Machine::signed_out();
    let [a, b] = ["a/web", "b/web"].map(|name| machine.home().join(name));
    repository(&a, Some("https://git.example.com/acme/web.git"));
    repository(&b, Some("https://git.example.com/other/web.git"));
    assert_eq!(key(&machine, &a), "git:git.example.com/acme/web");
    assert_eq!(key(&machine, &b), "git:git.example.com/other/web");
    let [c, d] = ["c/web", "d/web"].map(|name| machine.home().join(name));
    fs::create_dir_all(&c).expect("a folder");
    fs::create_dir_all(&d).expect("a folder");
    let (c, d) = (key(&machine, &c), key(&machine, &d));
    assert!(c.starts_with("dir:") && c != d, "{c} {d}");
    let machine_of = |key: &str| key.split('/').next().map(str::to_owned);
    assert_eq!(machine_of(&c), machine_of(&d));
}

#[test]
fn c060_worktrees_belong_to_their_repository() {
    let machine = Machine::signed_out();
    let main = machine.home().join("repo");
    repository(&main, Some("git@git.example.com:acme/repo.git"));
    let [outer, inner] = [machine.home().join("wt"), main.join(".worktrees/hotfix")];
    for (branch, folder) in [("feature", &outer), ("hotfix", &inner)] {
        git(
            &main,
            &[
                "worktree",
                "add",
                "-q",
                "-b",
                branch,
                folder.to_str().expect("plain"),
            ],
        );
    }
    fs::create_dir(inner.join("src")).expect("a folder");
    let file = inner.join("src/a.rs");
    let inside = inner.join("src");
    let record = record(
        &machine,
        inside.to_str().expect("plain"),
        file.to_str().expect("plain"),
    );
    assert_eq!(record["project"]["key"], "git:git.example.com/acme/repo");
    assert_eq!(record["branch"], "hotfix");
    assert_eq!(record["checkout"], "~/repo/.worktrees/hotfix");
    assert_eq!(record["body"]["files"], json!(["src/a.rs"]));
    assert_eq!(key(&machine, &outer), key(&machine, &main));
}

#[test]
fn c060_worktrees_share_a_first_commit_where_there_is_no_remote() {
    let machine = Machine::signed_out();
    let main = machine.home().join("repo");
    repository(&main, None);
    let outer = machine.home().join("wt");
    git(
        &main,
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "b",
            outer.to_str().expect("plain"),
        ],
    );
    let first = key(&machine, &main);
    assert!(first.starts_with("repo:") && first.len() == 45, "{first}");
    assert_eq!(key(&machine, &outer), first);
    let record = record(&machine, outer.to_str().expect("plain"), "a");
    assert_eq!(record["project"]["name"], "repo");
}

#[test]
fn a_submodule_is_a_project_of_its_own() {
    let machine = Machine::signed_out();
    let [outer, inner] = ["outer", "inner"].map(|name| machine.home().join(name));
    repository(&inner, None);
    repository(&outer, Some("https://git.example.com/acme/outer"));
    git(
        &outer,
        &[
            "submodule",
            "add",
            "-q",
            inner.to_str().expect("plain"),
            "lib",
        ],
    );
    git(
        &outer.join("lib"),
        &[
            "remote",
            "set-url",
            "origin",
            "https://git.example.com/acme/lib",
        ],
    );
    assert_eq!(
        key(&machine, &outer.join("lib")),
        "git:git.example.com/acme/lib"
    );
    assert_eq!(key(&machine, &outer), "git:git.example.com/acme/outer");
}

#[test]
fn a_project_file_goes_before_the_remote() {
    let machine = Machine::signed_out();
    let repo = machine.home().join("repo");
    repository(&repo, Some("https://git.example.com/acme/repo"));
    let inside = repo.join("packages/one");
    fs::create_dir_all(&inside).expect("a folder");
    fs::write(repo.join(".cairn-project"), "\u{feff}Our Thing \n").expect("writes");
    assert_eq!(key(&machine, &inside), "name:Our Thing");
    fs::write(inside.join(".cairn-project"), "x".repeat(129)).expect("writes");
    assert_eq!(key(&machine, &inside), "name:Our Thing");
}

#[test]
fn c061_credentials_in_the_remote_s_address_go_nowhere() {
    let machine = Machine::signed_out();
    let repo = machine.home().join("web");
    let origin = "https://x-access-token:FAKE123@git.example.com/acme/web.git";
    repository(&repo, Some(origin));
    assert_eq!(key(&machine, &repo), "git:git.example.com/acme/web");
    let odd = "https://user:FAKE123?x@git.example.com/acme/web.git";
    git(&repo, &["remote", "set-url", "origin", odd]);
    assert!(key(&machine, &repo).starts_with("repo:"));
    fs::remove_dir_all(&repo).expect("removes");
    assert!(!machine.holds("FAKE123"));
}

#[test]
fn c062_drive_letters_and_case() {
    let machine = Machine::signed_out();
    let file = "c:\\git\\app\\SRC\\Main.cs";
    let mut keys: Vec<Value> = Vec::new();
    for cwd in ["C:\\git\\app", "c:\\git\\app", "C:/git/app"] {
        let record = record(&machine, cwd, file);
        assert_eq!(record["body"]["files"], json!(["SRC/Main.cs"]));
        keys.push(record["project"]["key"].clone());
    }
    keys.dedup();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

#[test]
fn an_agent_that_steps_into_a_plain_folder_still_works_for_its_project() {
    let machine = Machine::signed_out();
    let repo = machine.home().join("repo");
    repository(&repo, Some("https://git.example.com/acme/repo"));
    let scratch = machine.home().join("scratch");
    fs::create_dir(&scratch).expect("a folder");
    let machine = machine.set("CLAUDE_PROJECT_DIR", repo.to_str().expect("plain"));
    assert_eq!(key(&machine, &scratch), "git:git.example.com/acme/repo");
    let other = machine.home().join("other");
    repository(&other, Some("https://git.example.com/acme/other"));
    assert_eq!(key(&machine, &other), "git:git.example.com/acme/other");
}
