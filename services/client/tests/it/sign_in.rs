//! Signing in on a page: what a person is shown, what is kept, and that no refresh token is used
//! twice however many processes need the next one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;

use serde_json::{Value, json};

use crate::support::{Double, GRANT, KEY, Machine, Reply, lines, stderr, stdout, wait_for};

fn kept(machine: &Machine) -> PathBuf {
    machine.home().join(".config/cairn/credentials.json")
}

fn credentials(machine: &Machine) -> Value {
    let text = fs::read_to_string(kept(machine)).expect("kept");
    serde_json::from_str(&text).expect("JSON")
}

/// A machine that is signed in at a double.
fn signed_in(double: &Double) -> Machine {
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    let login = machine.run(&["login"], b"");
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    machine
}

/// Makes the kept token look as if its time had come.
fn let_it_end(machine: &Machine, double: &Double) {
    let mut credentials = credentials(machine);
    credentials["services"][&double.url]["tokens"]["until"] = json!("2026-01-01T00:00:00Z");
    fs::write(kept(machine), credentials.to_string()).expect("written");
}

/// A browser that notes what it is asked to open.
fn with_browser(machine: &mut Machine) -> PathBuf {
    let (bin, note) = (machine.home().join("bin"), machine.home().join("opened"));
    fs::create_dir(&bin).expect("a folder");
    let program = bin.join("xdg-open");
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", note.display());
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = format!("{}:{}", bin.display(), machine.env["PATH"]);
    machine.env.insert("PATH".to_owned(), path);
    note
}

#[test]
fn a_person_is_shown_where_to_go_and_the_tokens_are_kept_private() {
    let double = Double::start();
    double.inner.lock().expect("whole").pending = 1;
    let mut machine = Machine::signed_out();
    machine.env.remove("CAIRN_URL");
    let login = machine.run(&["login", "--url", &double.url], b"");
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    let shown = stdout(&login);
    for told in [
        "Open https://memory.example.com/device\n",
        "BCDF-GHJK",
        "https://memory.example.com/device?user_code=BCDF-GHJK",
        "as lin of acme",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(
        !shown.contains("access.") && !shown.contains(GRANT),
        "{shown}"
    );
    let mode = fs::metadata(kept(&machine))
        .expect("kept")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
    let asked = double.heard();
    assert!(
        asked.contains("client_id=cairn") && asked.contains("device_name="),
        "{asked}"
    );
    let whoami = stdout(&machine.run(&["whoami"], b""));
    assert!(whoami.contains("Signed in until"), "{whoami}");
    assert!(
        machine.status().contains("acme, signed in as lin"),
        "{}",
        machine.status()
    );
    assert!(double.heard().contains("Bearer access.1.x"));

    assert_eq!(machine.run(&["logout"], b"").status.code(), Some(0));
    assert!(double.heard().contains(&format!("token={GRANT}1")));
    assert!(!machine.holds(GRANT));
    assert_eq!(machine.run(&["whoami"], b"").status.code(), Some(3));
}

#[test]
fn a_browser_opens_only_where_there_is_a_screen_to_open_it_on() {
    let double = Double::start();
    for (environment, arguments, opens) in [
        (&[("DISPLAY", ":0")][..], &["login"][..], true),
        (&[("WAYLAND_DISPLAY", "wayland-0")], &["login"], true),
        (&[], &["login"], false),
        (
            &[("DISPLAY", ":0"), ("SSH_TTY", "/dev/pts/1")],
            &["login"],
            false,
        ),
        (&[("DISPLAY", ":0")], &["login", "--no-browser"], false),
    ] {
        let mut machine = Machine::new(&double.url);
        let note = with_browser(&mut machine);
        for (name, value) in environment {
            machine = machine.set(name, value);
        }
        let login = machine.run(arguments, b"");
        assert_eq!(login.status.code(), Some(0), "{login:?}");
        assert_eq!(
            stdout(&login).contains("A browser opens"),
            opens,
            "{environment:?}"
        );
        if opens {
            let opened = || fs::read_to_string(&note).unwrap_or_default();
            let wanted = "https://memory.example.com/device?user_code=BCDF-GHJK\n";
            wait_for("the browser", || opened() == wanted);
        } else {
            assert!(!note.exists(), "{environment:?}");
        }
    }
}

#[test]
fn many_processes_use_no_refresh_token_twice() {
    let double = Double::start();
    let machine = signed_in(&double);
    for _ in 0..3 {
        let_it_end(&machine, &double);
        let many: Vec<Child> = (0..10).map(|_| machine.spawn(&["whoami"])).collect();
        for one in many {
            let output = one.wait_with_output().expect("ends");
            assert_eq!(output.status.code(), Some(0), "{output:?}");
        }
    }
    let inner = double.inner.lock().expect("whole");
    assert_eq!((inner.reused, inner.refresh), (0, Some(4)));
    let tokens = &credentials(&machine)["services"][&double.url]["tokens"];
    assert_eq!(tokens["refresh"], format!("{GRANT}4"));
}

#[test]
fn a_flush_renews_and_sends_for_its_own_tenant_alone() {
    let double = Double::start();
    let machine = signed_in(&double);
    let_it_end(&machine, &double);
    // A hook has no time for the network: it spools under the tenant of the sign-in.
    let payload = machine.payload(json!({"prompt": "fix it"}));
    machine.hook("UserPromptSubmit", &payload);
    machine.wait_until_sent();
    machine.wait_for_flushers();
    assert_eq!(double.inner.lock().expect("whole").refresh, Some(2));
    assert!(double.heard().contains("Bearer access.2.x"));
    // What another team's sign-in spooled stays.
    let foreign = lines(1).replace("\"v\":1", "\"v\":1,\"tenant\":\"umbra\"");
    machine.spool_bytes(foreign.as_bytes());
    machine.flush();
    assert_eq!(machine.spooled().len(), 1);
    assert!(!double.stored().contains(&"e1".to_owned()));
}

#[test]
fn a_sign_in_that_has_ended_drops_nothing_and_says_so() {
    let double = Double::start();
    let machine = signed_in(&double);
    let_it_end(&machine, &double);
    double.inner.lock().expect("whole").refresh = None;
    machine.spool_bytes(lines(2).as_bytes());
    let flush = machine.flush();
    assert_eq!(flush.status.code(), Some(3), "{flush:?}");
    assert!(
        stderr(&flush).contains("sign in with: cairn login"),
        "{flush:?}"
    );
    assert_eq!(machine.spooled().len(), 2);
    // Signed in anew, they go.
    let login = machine.run(&["login"], b"");
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 2);
}

#[test]
fn a_running_shim_notices_a_new_sign_in_and_renews_an_old_one() {
    const CALL: &str = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"mem_search","arguments":{}}}"#;
    let double = Double::start();
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    let mut shim = machine.spawn(&["mcp"]);
    let mut stdin = shim.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(shim.stdout.take().expect("a pipe")).lines();
    let mut ask = || -> Value {
        writeln!(stdin, "{CALL}").expect("writes");
        let line = answers.next().expect("a line").expect("reads");
        serde_json::from_str(&line).expect("JSON")
    };
    let refused = ask();
    let told = refused["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert_eq!(told, "unauthenticated - sign in with: cairn login");
    assert_eq!(machine.run(&["login"], b"").status.code(), Some(0));
    assert_eq!(ask()["result"]["content"][0]["text"], "ok");
    let_it_end(&machine, &double);
    assert_eq!(ask()["result"]["content"][0]["text"], "ok");
    assert!(double.heard().contains("Bearer access.2.x"));
    // A key takes the place of the sign-in, which is given back.
    let login = machine.run(&["login", "--key"], format!("{KEY}\n").as_bytes());
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    assert!(double.heard().contains(&format!("token={GRANT}2")));
    assert_eq!(ask()["result"]["content"][0]["text"], "ok");
    assert!(double.heard().contains(&format!("Bearer {KEY}")));
    drop(stdin);
    assert_eq!(shim.wait().expect("ends").code(), Some(0));
}

#[test]
fn a_service_that_is_away_is_asked_again_and_one_that_says_no_is_not() {
    let double = Double::start();
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    let away = Reply::Status(503, Vec::new(), "{}".to_owned());
    double.script([Reply::Accept, away, Reply::Accept]);
    let login = machine.run(&["login"], b"");
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    let denied = r#"{"error":"access_denied","error_description":"no"}"#;
    double.script([
        Reply::Accept,
        Reply::Status(400, Vec::new(), denied.to_owned()),
    ]);
    let login = machine.run(&["login"], b"");
    assert_eq!(login.status.code(), Some(3), "{login:?}");
}
