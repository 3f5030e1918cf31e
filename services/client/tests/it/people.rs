//! Commands for people: what they print and how they end.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Double, KEY, Machine, stderr, stdout};

#[test]
fn a_key_is_taken_from_stdin_confirmed_and_kept_private() {
    let double = Double::start();
    let mut machine = Machine::signed_out();
    machine.env.remove("CAIRN_URL");
    let login = machine.run(
        &["login", "--key", "--url", &double.url],
        format!("{KEY}\n").as_bytes(),
    );
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    assert!(stdout(&login).contains("as lin of acme") && !stdout(&login).contains(KEY));
    let path = machine.home().join(".config/cairn/credentials.json");
    let mode = fs::metadata(&path).expect("exists").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let whoami = stdout(&machine.run(&["whoami"], b""));
    assert!(whoami.starts_with("lin of acme (member)"), "{whoami}");
    assert_eq!(machine.run(&["logout"], b"").status.code(), Some(0));
    assert_eq!(machine.run(&["whoami"], b"").status.code(), Some(3));
    assert!(!machine.holds(KEY));
}

#[test]
fn reading_prints_what_the_service_says() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let context = machine.run(&["context"], b"");
    assert_eq!(stdout(&context), "# [app] recent context\n");
    let run = |args: &[&str]| {
        let output = machine.run(args, b"");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        stdout(&output)
    };
    assert_eq!(
        run(&["search", "pool", "leak"]),
        "2 results for \"pool leak\"\n"
    );
    let rest = ["--project", "*", "--limit", "5", "--cursor", "AXk"];
    run(&["search", "--", "--no-verify"]);
    run(&[&["search", "pool"][..], &rest].concat());
    let json: Value = serde_json::from_str(&run(&["search", "pool", "--json"])).expect("JSON");
    assert_eq!(json["match"], "all");
    let heard = double.heard();
    for asked in [
        r#"{"query":"pool leak","project":null,"limit":20,"cursor":null,"format":"list","tz":"Asia/Seoul"}"#,
        r#"{"query":"--no-verify","project":null,"limit":20,"#,
        r#"{"query":"pool","project":"*","limit":5,"cursor":"AXk","format":"list","#,
        r#"{"query":"pool","project":null,"limit":20,"cursor":null}"#,
    ] {
        assert!(heard.contains(asked), "{asked}: {heard}");
    }
}

#[test]
fn records_of_every_kind_are_shown_by_their_ids() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let shown = machine.run(&["show", "t118", "P3", "#41", "S7"], b"");
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let wanted = "[T118] Bash of app, by lin, 2026-10-10T08:45:00.000Z
Session: s-1
Failed: yes
Altered: cut
Input:
    {\"command\":\"make\"}
Output:
    one
    two [31m

[P3] prompt of app, by lin, 2026-10-10T08:45:00.000Z
Private: nobody else can read it.
why?

[41] observation of app, by lin, 2026-10-10T08:45:00.000Z
Private: nobody else can read it.
Title: pool leak
Fact: f1

[S7] summary of app, by lin, 2026-10-10T08:45:00.000Z
Private: nobody else can read it.
Request: Fix 5xx
";
    assert_eq!(stdout(&shown), wanted);
    // What is there is shown, and what is not is said.
    let some = machine.run(&["show", "S7", "9", "T9"], b"");
    assert_eq!(some.status.code(), Some(5));
    assert!(stdout(&some).starts_with("[S7] summary of app"), "{some:?}");
    assert!(stderr(&some).contains("not found: 9, T9"), "{some:?}");
    assert_eq!(double.count("/v1/tool-uses/batch"), 2);
}

#[test]
fn each_end_has_its_status_and_none_is_2() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let status = |machine: &Machine, args: &[&str]| machine.run(args, b"").status.code();
    assert_eq!(status(&machine, &["show", "49"]), Some(5));
    assert_eq!(status(&machine, &["show", "41", "x"]), Some(64));
    assert_eq!(status(&machine, &["show"]), Some(64));
    assert_eq!(status(&machine, &["bogus"]), Some(64));
    assert_eq!(status(&machine, &[]), Some(64));
    assert_eq!(status(&machine, &["search"]), Some(64));
    assert_eq!(status(&machine, &["login", "--key"]), Some(64));
    assert_eq!(status(&machine, &["--version"]), Some(0));
    assert_eq!(status(&Machine::signed_out(), &["whoami"]), Some(3));
    assert_eq!(
        status(&Machine::new("http://127.0.0.1:9"), &["whoami"]),
        Some(4)
    );
    assert_eq!(
        status(&Machine::signed_out(), &["status", "--short"]),
        Some(0)
    );
}

#[test]
fn a_project_s_file_sets_no_address_and_a_bad_value_falls_back() {
    let double = Double::start();
    let machine = Machine::new(&double.url).set("CAIRN_CONTEXT_LIMIT", "99");
    fs::create_dir(machine.app().join(".cairn")).expect("a folder");
    let file = machine.app().join(".cairn/config.toml");
    fs::write(
        file,
        "url = \"http://127.0.0.1:1\"\nvisibility = \"secret\"\n",
    )
    .expect("writes");
    let mut machine = machine;
    machine.env.remove("CAIRN_URL");
    let output = machine.run(&["status"], b"");
    assert!(
        stdout(&output).contains("Service:   none"),
        "{}",
        stdout(&output)
    );
    let said = stderr(&output);
    assert!(
        said.contains("CAIRN_CONTEXT_LIMIT") && said.contains("CAIRN_VISIBILITY"),
        "{said}"
    );
}

#[test]
fn lists_are_read_and_written_by_hand() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let run = |args: &[&str]| {
        let output = machine.run(args, b"");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        stdout(&output)
    };
    assert_eq!(run(&["work"]), "- plan\n");
    assert_eq!(
        run(&["work", "--all", "--list", "plan", "--project", "*"]),
        "- plan\n"
    );
    run(&[
        "work",
        "add",
        "plan",
        "task=7",
        "status=todo",
        "n=2.5",
        "ok=true",
        "gone=null",
        "note=a=b",
    ]);
    run(&["work", "done", "plan", "docs"]);
    run(&["work", "claim", "plan", "docs", "--minutes", "30"]);
    run(&["work", "release", "plan", "docs"]);
    let history = run(&["work", "history", "--list", "plan"]);
    assert_eq!(
        history,
        "2026-10-10T08:45:00.000Z  lin  plan (claim)  {\"task\":\"docs\"}\n"
    );
    let heard = double.heard();
    for part in [
        "GET /v1/work-state?include_closed=false&snapshot=false ",
        "GET /v1/work-state?project=%2A&list=plan&include_closed=true&snapshot=false ",
        r#"{"list":"plan","fields":{"task":"7","status":"todo","n":2.5,"ok":true,"gone":null,"note":"a=b"},"#,
        r#"{"list":"plan","fields":{"status":"done","task":"docs"},"event_id""#,
        r#"{"list":"plan","fields":{"task":"docs"},"action":"claim","lease_minutes":30,"#,
        r#"{"list":"plan","fields":{"task":"docs"},"action":"release","#,
        "GET /v1/work-state/history?list=plan ",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    let bare = machine.run(&["work", "add", "plan", "docs"], b"");
    assert_eq!(bare.status.code(), Some(64), "{bare:?}");
}
