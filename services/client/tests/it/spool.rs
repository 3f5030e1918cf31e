//! The spool: nothing is lost, nothing is stored twice, nothing bad holds up the rest.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Double, KEY, Machine, Reply, line, lines, stderr, stdout, wait_for};

fn problem(code: &str, status: u16) -> Reply {
    let body = json!({"type": format!("urn:cairn:problem:{code}"), "title": "t", "status": status,
        "code": code, "detail": "in words"});
    Reply::Status(status, vec![], body.to_string())
}

#[test]
fn c016_a_torn_last_line() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    machine.spool_bytes(format!("{}{}", line("e1"), line("e2")).as_bytes());
    machine.spool_bytes(b"{\"event_id\":\"e3\",\"na");
    // The hook of a person without a key appends and starts no flusher.
    let mut offline = Machine::signed_out();
    offline
        .env
        .insert("HOME".to_owned(), machine.env["HOME"].clone());
    offline
        .env
        .insert("CAIRN_URL".to_owned(), double.url.clone());
    offline.hook("Stop", &machine.payload(json!({})));
    let text = fs::read_to_string(machine.spool_dir().join("open.ndjson")).expect("reads");
    assert!(
        text.contains("\"na\n{\"v\":1") && text.ends_with('\n'),
        "{text}"
    );
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 3);
    assert!(
        machine.status().contains("Set aside: 1"),
        "{}",
        machine.status()
    );
    assert!(machine.holds("{\\\"event_id\\\":\\\"e3\\\",\\\"na"));
    assert!(machine.spooled().is_empty());
}

#[test]
fn c017_one_refused_record_does_not_hold_up_the_rest() {
    let double = Double::start();
    double.inner.lock().expect("whole").refused = vec!["e2".to_owned()];
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(3).as_bytes());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), ["e1", "e3"]);
    assert_eq!(double.count("/v1/events"), 1);
    machine.flush();
    assert_eq!(
        double.count("/v1/events"),
        1,
        "a refused record is not tried again"
    );
    assert!(machine.status().contains("attention") && machine.status().contains("Set aside: 1"));
    let list = stdout(&machine.run(&["spool", "list"], b""));
    assert!(
        list.contains("e2") && list.contains("invalid_field /body/title at most 400"),
        "{list}"
    );
    double.inner.lock().expect("whole").refused.clear();
    machine.run(&["spool", "retry"], b"");
    machine.flush();
    assert_eq!(double.stored(), ["e1", "e2", "e3"]);
    assert!(machine.status().contains("Set aside: 0"));
}

#[test]
fn c018_two_flushes_at_once() {
    let double = Double::start();
    double.script([Reply::Late(Duration::from_millis(300)), Reply::Accept]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(15).as_bytes());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(machine.flush().status.code(), Some(0)));
        }
    });
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 15);
    assert_eq!(double.inner.lock().expect("whole").repeated, 0);
    assert!(machine.spooled().is_empty());
}

#[test]
fn c019_the_reply_was_lost_the_write_was_not() {
    let double = Double::start();
    double.script([Reply::CommitAndCut, Reply::Accept]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(line("e1").as_bytes());
    assert_eq!(machine.flush().status.code(), Some(4));
    assert_eq!(machine.spooled().len(), 1);
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), ["e1"]);
    assert_eq!(double.inner.lock().expect("whole").repeated, 1);
    assert!(machine.spooled().is_empty());
}

#[test]
fn c021_a_refused_key_loses_nothing_and_is_not_tried_again_and_again() {
    let double = Double::start();
    let mut machine = Machine::new(&double.url);
    // The key has worked before.
    assert_eq!(machine.run(&["whoami"], b"").status.code(), Some(0));
    double.script([problem("credential_revoked", 401)]);
    machine.spool_bytes(lines(50).as_bytes());
    assert_eq!(machine.flush().status.code(), Some(3));
    let mut told = 0;
    for _ in 0..20 {
        let output = machine.hook("Stop", &machine.payload(json!({})));
        told += stderr(&output).matches("cairn login").count();
    }
    assert_eq!(told, 1);
    assert_eq!(double.count("/v1/events"), 1);
    assert_eq!(machine.flush().status.code(), Some(3), "not even by hand");
    assert_eq!(double.count("/v1/events"), 1);
    double.script([Reply::Accept]);
    let other = KEY.replace("abcdefghijkl", "mnopqrstuvwx");
    machine.env.insert("CAIRN_API_KEY".to_owned(), other);
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 70);
}

#[test]
fn c024_retry_after_is_honoured_and_batches_stay_small() {
    let double = Double::start();
    let busy = Reply::Status(429, vec![("Retry-After", "1")], String::new());
    double.script([Reply::Accept, busy, Reply::Accept]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(1_200).as_bytes());
    let begun = Instant::now();
    assert_eq!(machine.flush().status.code(), Some(0));
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(double.stored().len(), 1_200);
    assert_eq!(double.inner.lock().expect("whole").repeated, 0);
}

#[test]
fn over_quota_records_wait_in_the_spool_and_go_when_they_may() {
    let double = Double::start();
    let over = |n| {
        json!({"event_id": format!("e{n}"), "status": "refused", "code": "quota_exceeded",
            "detail": "this would pass the team's quota events_a_day of 2", "retry": true})
    };
    let answer = json!({"items": [{"event_id": "e1", "status": "stored"}, over(2), over(3)]});
    double.script([
        Reply::Status(207, vec![], answer.to_string()),
        problem("quota_exceeded", 403),
        Reply::Accept,
    ]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(3).as_bytes());
    let flushed = machine.flush();
    assert_eq!(flushed.status.code(), Some(0), "{flushed:?}");
    assert!(stdout(&flushed).contains("set aside 0"), "{flushed:?}");
    assert_eq!(double.stored(), ["e2", "e3"]);
    assert_eq!(double.count("/v1/events"), 3);
    assert!(machine.spooled().is_empty());
}

#[test]
fn a_batch_that_is_too_large_is_halved_and_a_record_shortened() {
    let double = Double::start();
    double.inner.lock().expect("whole").max_body = Some(4_096);
    let machine = Machine::new(&double.url);
    let long = line("long").replace(
        "\"title\":\"long\"",
        &format!("\"title\":\"{}\"", "x".repeat(9_000)),
    );
    machine.spool_bytes(format!("{}{long}", lines(40)).as_bytes());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 41);
    let inner = double.inner.lock().expect("whole");
    let title = inner.stored["long"]["body"]["title"]
        .as_str()
        .expect("a title");
    assert!(title.contains("…[cut "), "{title}");
}

#[test]
fn records_for_another_service_stay() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let other = line("other").replacen("\"v\":1", "\"v\":1,\"service\":\"https://m.example\"", 1);
    machine.spool_bytes(format!("{}{other}", line("mine")).as_bytes());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), ["mine"]);
    assert_eq!(machine.spooled().len(), 1);
    assert!(machine.status().contains("1 of them for another service"));
}

#[test]
fn records_for_another_tenant_stay() {
    let double = Double::start();
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    let login = machine.run(&["login", "--key"], KEY.as_bytes());
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    let theirs = line("theirs").replacen("\"v\":1", "\"v\":1,\"tenant\":\"beta\"", 1);
    let ours = line("ours").replacen("\"v\":1", "\"v\":1,\"tenant\":\"acme\"", 1);
    machine.spool_bytes(format!("{theirs}{ours}").as_bytes());
    machine.flush();
    assert_eq!(double.stored(), ["ours"]);
}

#[test]
fn an_answer_counts_for_the_id_it_names() {
    let double = Double::start();
    let answer = json!({"items": [{"event_id": "e2", "status": "stored", "id": "2"},
        {"event_id": "unasked", "status": "stored", "id": "3"}]});
    double.script([Reply::Status(200, vec![], answer.to_string())]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(2).as_bytes());
    assert_eq!(machine.flush().status.code(), Some(4));
    let left = machine.spooled();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["event_id"], "e1");
}

#[test]
fn a_full_spool_shortens_then_counts_tool_uses_and_keeps_prompts() {
    let machine = Machine::signed_out().set("CAIRN_SPOOL_MAX", "12000");
    let call = machine.payload(json!({"tool_name": "Bash", "tool_input": {},
        "tool_response": "x".repeat(4_000)}));
    for _ in 0..5 {
        machine.hook("PostToolUse", &call);
    }
    machine.hook(
        "UserPromptSubmit",
        &machine.payload(json!({"prompt": "p".repeat(4_000)})),
    );
    let outputs: Vec<usize> = machine
        .spooled()
        .iter()
        .filter_map(|record| record["body"]["output"].as_str().map(str::len))
        .collect();
    assert_eq!(outputs.first(), Some(&4_002));
    assert!(outputs.iter().any(|length| *length <= 1_024), "{outputs:?}");
    assert!(outputs.len() < 5);
    assert_eq!(machine.spooled().last().expect("one")["kind"], "prompt");
    assert!(machine.status().contains("tool uses found the spool full"));
}

#[test]
fn a_hook_has_its_record_sent_by_a_process_that_outlives_the_host() {
    use std::io::{Read, Write};
    use std::os::unix::process::CommandExt;

    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    let double = Double::start();
    double.script([Reply::Late(Duration::from_millis(500)), Reply::Accept]);
    let machine = Machine::new(&double.url);
    let mut command = machine.command(&["hook", "claude-code", "UserPromptSubmit"]);
    let mut hook = command.process_group(0).spawn().expect("starts");
    let group = Pid::from_raw(i32::try_from(hook.id()).expect("a pid"));
    let payload = machine.payload(json!({"prompt": "p"})).to_string();
    let mut stdin = hook.stdin.take().expect("a pipe");
    stdin.write_all(payload.as_bytes()).expect("writes");
    drop(stdin);
    // Its end shows on stdout; until it is waited for, its group keeps its number.
    let mut stdout = hook.stdout.take().expect("a pipe");
    stdout.read_to_end(&mut Vec::new()).expect("reads");
    killpg(group, Signal::SIGKILL).expect("the hook is not waited for yet");
    hook.wait().expect("ends");
    wait_for("the record", || double.stored().len() == 1);
    machine.wait_until_sent();
}

#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::signed_out();
    machine.hook("Stop", &machine.payload(json!({})));
    let mode = |path| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
    assert_eq!(mode(machine.spool_dir()), 0o700);
    assert_eq!(mode(machine.spool_dir().join("open.ndjson")), 0o600);
}

#[test]
fn what_an_older_service_did_not_know_is_sent_again_to_a_newer_one() {
    let double = Double::start();
    {
        let mut inner = double.inner.lock().expect("whole");
        inner.refused = vec!["e1".to_owned()];
        inner.refusal = "unsupported_kind";
    }
    let machine = Machine::new(&double.url);
    machine.spool_bytes(line("e1").as_bytes());
    machine.flush();
    machine.spool_bytes(line("e2").as_bytes());
    machine.flush();
    assert_eq!(
        double.count("/v1/events"),
        2,
        "the same version is not asked again"
    );
    {
        let mut inner = double.inner.lock().expect("whole");
        inner.refused.clear();
        inner.version = "0.10.0";
    }
    machine.spool_bytes(line("e3").as_bytes());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), ["e1", "e2", "e3"]);
    assert!(machine.status().contains("Set aside: 0"));
}

#[test]
fn a_record_on_which_the_service_fails_is_held_back_and_set_aside_in_the_end() {
    let double = Double::start();
    double.inner.lock().expect("whole").failing = vec!["e3".to_owned()];
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(6).as_bytes());
    let flush = machine.flush();
    assert_eq!(flush.status.code(), Some(0), "{flush:?}");
    assert_eq!(double.stored(), ["e1", "e2", "e4", "e5", "e6"]);
    assert!(
        machine.status().contains("Held back: 1"),
        "{}",
        machine.status()
    );
    let requests = double.count("/v1/events");
    machine.flush();
    assert_eq!(
        double.count("/v1/events"),
        requests,
        "its time has not come"
    );
    for _ in 0..2 {
        let path = machine.spool_dir().join("held.json");
        let held = fs::read_to_string(&path).expect("reads");
        let mut held: serde_json::Value = serde_json::from_str(&held).expect("JSON");
        let at = chrono::Utc::now() - chrono::TimeDelta::hours(2);
        held["e3"]["at"] = json!(at);
        fs::write(&path, held.to_string()).expect("writes");
        machine.flush();
    }
    assert!(machine.spooled().is_empty());
    let list = stdout(&machine.run(&["spool", "list"], b""));
    assert!(list.contains("e3") && list.contains("internal"), "{list}");
}

#[test]
fn a_service_that_fails_is_not_called_away() {
    let double = Double::start();
    double.script([problem("internal", 500)]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(lines(40).as_bytes());
    let flush = machine.flush();
    assert_eq!(flush.status.code(), Some(1));
    assert!(
        stderr(&flush).contains("the service failed: internal"),
        "{flush:?}"
    );
    assert_eq!(machine.spooled().len(), 40);
    let whoami = machine.run(&["whoami"], b"");
    assert_eq!(whoami.status.code(), Some(1));
    assert!(!stderr(&whoami).contains("reached"), "{whoami:?}");
}

#[test]
fn events_of_standard_input_are_records_like_any_others() {
    let machine = Machine::signed_out().set("CAIRN_VISIBILITY", "private");
    let id = "0198c0de-0000-7000-8000-000000000001";
    let given = format!(
        "{}\n{}\n",
        json!({"kind": "observation", "body": {"title": "t <private>S</private>"}}),
        json!({"kind": "prompt", "event_id": id, "at": null, "agent_id": "a1",
            "session": {"host": "h", "id": "s"}, "project": {"key": "name:x"}}),
    );
    let output = machine.run(&["record"], given.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let records = machine.spooled();
    assert_eq!(records[0]["body"]["title"], "t ");
    assert!(
        records[0]["project"]["key"]
            .as_str()
            .is_some_and(|key| key.starts_with("dir:"))
    );
    assert!(records[0]["at"].is_string() && records[0]["visibility"] == "private");
    assert_eq!(records[0]["checkout"], "~/app");
    assert_eq!(
        (&records[1]["event_id"], &records[1]["agent_id"]),
        (&json!(id), &json!("a1"))
    );
    assert_eq!(records[1]["project"]["key"], "name:x");
    for bad in [
        r#"{"body":{}}"#,
        r#"{"kind":"prompt","event_id":"7"}"#,
        "[]",
    ] {
        assert_eq!(
            machine.run(&["record"], bad.as_bytes()).status.code(),
            Some(65),
            "{bad}"
        );
    }
}
