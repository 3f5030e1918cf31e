//! Commands that manage a team: what they ask of the service and what they print.

use std::fs;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::support::{Double, Machine, stderr, stdout};

const ID: &str = "0198f000-0000-7000-8000-0000000000a1";
const MADE: &str = "cairn_abcdefghijkm_0123456789012345678901234567890123456789012";

/// Whether an address is one of those that manage a team.
pub fn answers(path: &str) -> bool {
    let nouns = ["/v1/members", "/v1/keys", "/v1/projects", "/v1/audit"];
    nouns.iter().any(|noun| path.starts_with(noun))
}

/// What the service says there. Lists have two pages; what is deleted has no content.
pub fn answer(path: &str, body: &[u8]) -> Response {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let at = "2026-10-10T08:45:00.000Z";
    let member = json!({"handle": "lin", "email": null, "role": "admin", "joined_at": at});
    let key = json!({"id": "abcdefghijkm", "name": "ci", "owner": "key:abcdefghijkm",
        "service": true, "scopes": ["memory:read", "memory:write"], "project": "name:app",
        "created_at": at, "expires_at": at, "last_used_at": null});
    let project = json!({"id": ID, "key": "name:app", "name": "app", "merged_into": null,
        "aliases": ["git:git.example.com/acme/old"]});
    let line = json!({"at": at, "actor": null, "action": "key.revoke", "target": "abcdefghijkm",
        "detail": {}});
    let list = |item: Value| json!({"items": [item], "next_cursor": null});
    let said = match (path, asked.is_null()) {
        ("/v1/members", true) => list(member),
        ("/v1/keys", true) => list(key),
        ("/v1/projects", true) => list(project),
        ("/v1/audit", _) => json!({"items": [line], "next_cursor": "AXk"}),
        ("/v1/keys", false) => {
            let mut made = key;
            made["key"] = json!(MADE);
            made
        }
        (_, true) => return StatusCode::NO_CONTENT.into_response(),
        (path, false) if path.starts_with("/v1/members") => member,
        (_, false) => project,
    };
    axum::Json(said).into_response()
}

#[test]
fn members_keys_and_projects_are_managed_by_hand() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let run = |args: &[&str]| {
        let output = machine.run(args, b"");
        assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
        stdout(&output)
    };
    let lin = "lin  admin  -  2026-10-10T08:45:00.000Z\n";
    assert_eq!(run(&["member", "list"]), lin);
    let email = ["--role", "admin", "--email", "lin@example.com"];
    assert_eq!(run(&[&["member", "add", "lin"][..], &email].concat()), lin);
    assert_eq!(run(&["member", "role", "lin", "reader"]), lin);
    let removed = run(&["member", "remove", "l/n"]);
    assert_eq!(removed, "l/n is removed; all their keys have ended.\n");
    let ci = "abcdefghijkm  key:abcdefghijkm  ci  memory:read,memory:write  name:app  \
        ends 2026-10-10T08:45:00.000Z  used never\n";
    assert_eq!(run(&["key", "list"]), ci);
    let terms = [
        "--scope",
        "memory:read",
        "--project",
        "app",
        "--days",
        "7",
        "--service",
    ];
    let made = run(&[&["key", "create", "--name", "ci"][..], &terms].concat());
    assert_eq!(made, format!("{MADE}\n"));
    assert_eq!(run(&["key", "create"]), format!("{MADE}\n"));
    assert_eq!(
        run(&["key", "revoke", "abcdefghijkm"]),
        "abcdefghijkm is revoked.\n"
    );
    let app = format!("{ID}  name:app  app  = git:git.example.com/acme/old\n");
    assert_eq!(run(&["project", "list"]), app);
    assert_eq!(run(&["project", "rename", "old", "app"]), app);
    assert_eq!(run(&["project", "merge", "old", "app"]), app);
    let log = run(&["audit", "--action", "key.revoke", "--from", "2026-10-10"]);
    assert_eq!(
        log,
        "2026-10-10T08:45:00.000Z  operator  key.revoke  abcdefghijkm  {}\nMore: --cursor AXk\n"
    );
    let heard = double.heard();
    for asked in [
        "GET /v1/members?limit=200 ",
        r#"{"handle":"lin","email":"lin@example.com","role":"admin"}"#,
        "PATCH /v1/members/lin ",
        r#"{"role":"reader"}"#,
        "DELETE /v1/members/l%2Fn ",
        r#"{"name":"ci","scopes":["memory:read"],"project":"app","expires_in_days":7,"service":true}"#,
        r#"{"name":"key","service":false}"#,
        "DELETE /v1/keys/abcdefghijkm ",
        r#"{"name":"old"}"#,
        &format!("PATCH /v1/projects/{ID} "),
        r#"{"name":"app"}"#,
        r#"{"merge_into":"app"}"#,
        "GET /v1/audit?from=2026-10-10&action=key.revoke&tz=Asia/Seoul ",
    ] {
        assert!(heard.contains(asked), "{asked}: {heard}");
    }
}

#[test]
fn a_refusal_and_a_wrong_call_have_their_status() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let status = |machine: &Machine, args: &[&str]| machine.run(args, b"").status.code();
    for args in [
        &["member"][..],
        &["member", "add"],
        &["key", "create", "--service", "--member", "lin"],
        &["key", "create", "--days", "x"],
        &["project", "--name", "x", "list"],
        &["project", "--name", ""],
    ] {
        assert_eq!(status(&machine, args), Some(64), "{args:?}");
    }
    assert_eq!(status(&Machine::signed_out(), &["member", "list"]), Some(3));
    let away = Machine::new("http://127.0.0.1:9");
    assert_eq!(status(&away, &["key", "list"]), Some(4));
}

#[test]
fn a_folder_shows_its_project_and_the_rule_and_takes_a_name() {
    // No service is asked.
    let machine = Machine::signed_out();
    let run = |args: &[&str]| {
        let output = machine.run(args, b"");
        assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
        stdout(&output)
    };
    let plain = run(&["project"]);
    assert!(plain.starts_with("Key:  dir:"), "{plain}");
    assert!(plain.contains("\nName: app\nRule: the folder on this machine\n"));
    let named = run(&["project", "--name", " our app "]);
    let wanted = "Key:  name:our app\nName: our app\nRule: the file .cairn-project\nRoot: ~/app\n";
    assert_eq!(named, wanted);
    assert_eq!(run(&["project"]), wanted);
    let file = machine.app().join(".cairn-project");
    assert_eq!(fs::read_to_string(&file).expect("written"), "our app\n");
    // What a link leads to is nobody's to write.
    let elsewhere = machine.home().join("elsewhere");
    fs::write(&elsewhere, "kept\n").expect("writes");
    fs::remove_file(&file).expect("removes");
    std::os::unix::fs::symlink(&elsewhere, &file).expect("links");
    let refused = machine.run(&["project", "--name", "x"], b"");
    assert_eq!(refused.status.code(), Some(73), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&elsewhere).expect("reads"), "kept\n");
}
