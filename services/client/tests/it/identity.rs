//! Which project a folder is, as the records of its hooks say.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Double, Machine};

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

/// The key once git was asked for it.
fn named_key(machine: &Machine, folder: &Path) -> String {
    let mut status = machine.command(&["status"]);
    assert!(
        status
            .current_dir(folder)
            .output()
            .expect("runs")
            .status
            .success()
    );
    key(machine, folder)
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
    let first = named_key(&machine, &main);
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
    assert!(named_key(&machine, &repo).starts_with("repo:"));
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

/// Puts a `git` before the real one that answers only after a second and a half.
fn with_slow_git(mut machine: Machine) -> Machine {
    let bin = machine.home().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let path = machine.env["PATH"].clone();
    let script = format!("#!/bin/sh\nsleep 1.5\nPATH='{path}' exec git \"$@\"\n");
    fs::write(bin.join("git"), script).expect("writes");
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).expect("a mode");
    machine
        .env
        .insert("PATH".to_owned(), format!("{}:{path}", bin.display()));
    machine
}

#[test]
fn a_slow_git_delays_no_hook_and_makes_no_second_project() {
    let double = Double::start();
    let mut machine = with_slow_git(Machine::signed_out());
    machine
        .env
        .insert("CAIRN_URL".to_owned(), double.url.clone());
    let repo = machine.home().join("repo");
    repository(&repo, None);
    for _ in 0..2 {
        let record = record(&machine, repo.to_str().expect("plain"), "a");
        assert_eq!(record["checkout_root"], repo.to_str().expect("plain"));
    }
    // The key that a flush needs; hooks did without, so that none sent anything by itself.
    machine
        .env
        .insert("CAIRN_API_KEY".to_owned(), crate::support::KEY.to_owned());
    let flush = machine.flush();
    assert_eq!(flush.status.code(), Some(0), "{flush:?}");
    machine.env.remove("CAIRN_API_KEY");
    let later = key(&machine, &repo);
    let inner = double.inner.lock().expect("whole");
    let sent: Vec<&Value> = inner.stored.values().collect();
    assert_eq!(sent.len(), 2);
    for item in sent {
        assert_eq!(item["project"], json!({"key": later, "name": "repo"}));
        assert!(item.get("checkout_root").is_none());
    }
    assert!(later.starts_with("repo:"), "{later}");
}

#[test]
fn a_repository_without_a_commit_is_its_folder() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let repo = machine.home().join("repo");
    git(&repo, &["init", "-q", "-b", "main"]);
    record_of(&machine, &repo);
    machine.wait_until_sent();
    let inner = double.inner.lock().expect("whole");
    let key = inner.stored.values().next().expect("one")["project"]["key"].as_str();
    assert!(key.is_some_and(|key| key.starts_with("dir:")), "{key:?}");
}

fn record_of(machine: &Machine, folder: &Path) {
    let payload = json!({"session_id": "s1", "cwd": folder, "prompt": "p"});
    machine.hook("UserPromptSubmit", &payload);
}

#[test]
fn a_session_waits_a_moment_for_git_to_name_its_project() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let repo = machine.home().join("repo");
    repository(&repo, None);
    let payload = json!({"session_id": "s1", "cwd": repo, "source": "startup"});
    machine.hook("SessionStart", &payload);
    assert!(
        double.heard().contains("\"cairn-project\": \"repo:"),
        "{}",
        double.heard()
    );
}

#[test]
fn a_session_whose_project_git_does_not_name_in_time_asks_for_no_other() {
    let double = Double::start();
    let machine = with_slow_git(Machine::new(&double.url));
    let repo = machine.home().join("repo");
    repository(&repo, None);
    let payload = json!({"session_id": "s1", "cwd": repo, "source": "startup"});
    let output = machine.hook("SessionStart", &payload);
    assert!(
        crate::support::stdout(&output).contains("git is slow"),
        "{output:?}"
    );
    assert_eq!(double.count("/v1/context"), 0);
}
