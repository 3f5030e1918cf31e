//! Hooks of Claude Code: what is recorded, how fast, and that the host is never disturbed.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Double, Machine, Reply, stderr, stdout};

fn only(machine: &Machine) -> Value {
    let mut records = machine.spooled();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

#[test]
fn each_event_becomes_its_kind() {
    let machine = Machine::signed_out();
    machine.hook(
        "SessionStart",
        &machine.payload(json!({"source": "startup", "model": "m"})),
    );
    machine.hook(
        "UserPromptSubmit",
        &machine.payload(json!({"prompt": "fix it"})),
    );
    let call = json!({"tool_name": "Edit", "tool_use_id": "tu_1", "agent_id": "a1",
        "agent_type": "reviewer", "tool_response": {"ok": true},
        "tool_input": {"file_path": machine.app().join("src/a.rs")}});
    machine.hook("PostToolUse", &machine.payload(call));
    let failure = json!({"tool_name": "Bash", "tool_input": {"command": "make"},
        "error": "Exit code 3"});
    machine.hook("PostToolUseFailure", &machine.payload(failure));
    machine.hook(
        "Stop",
        &machine.payload(json!({"last_assistant_message": "done"})),
    );
    machine.hook("SessionEnd", &machine.payload(json!({"reason": "clear"})));
    machine.hook("Notification", &machine.payload(json!({"message": "m"})));
    let records = machine.spooled();
    let kinds: Vec<&str> = records
        .iter()
        .map(|r| r["kind"].as_str().expect("a kind"))
        .collect();
    let want = [
        "session_start",
        "prompt",
        "tool_use",
        "tool_use",
        "turn_end",
        "session_end",
    ];
    assert_eq!(kinds, want);
    assert_eq!(
        records[0]["body"],
        json!({"source": "startup", "model": "m"})
    );
    assert_eq!(records[1]["body"], json!({"text": "fix it"}));
    assert_eq!(records[2]["body"]["output"], r#"{"ok":true}"#);
    assert_eq!(records[2]["body"]["files"], json!(["src/a.rs"]));
    assert_eq!(records[2]["body"]["failed"], false);
    assert_eq!(records[2]["agent_type"], "reviewer");
    assert_eq!(records[3]["body"]["failed"], true);
    assert_eq!(records[3]["body"]["output"], r#""Exit code 3""#);
    assert_eq!(records[4]["body"], json!({"last_reply": "done"}));
    assert_eq!(records[5]["body"], json!({"reason": "clear"}));
    assert_eq!(
        records[0]["session"],
        json!({"host": "claude-code", "id": "s1"})
    );
    assert_eq!(records[0]["checkout"], "~/app");
}

#[test]
fn c006_half_an_emoji_in_a_tool_result() {
    for half in [
        r#""ok \ud83d done""#,
        r#""ok \ude00 done""#,
        r#"{"k\ud83d":1}"#,
    ] {
        let machine = Machine::signed_out();
        let payload = format!(
            r#"{{"session_id":"s1","tool_use_id":"tu_1","tool_name":"Bash","tool_input":{{}},"tool_response":{half}}}"#
        );
        machine.hook_raw("PostToolUse", payload.as_bytes());
        let output = only(&machine)["body"]["output"]
            .as_str()
            .expect("text")
            .to_owned();
        let value: Value = serde_json::from_str(&output).expect("JSON");
        assert!(value.to_string().contains('\u{fffd}'), "{output}");
    }
}

#[test]
fn c007_a_byte_order_mark_before_the_payload() {
    let machine = Machine::signed_out();
    let payload = machine.payload(json!({"tool_name": "Write", "tool_input": {"file_path": "a"}}));
    machine.hook_raw("PostToolUse", format!("\u{feff}{payload}").as_bytes());
    assert_eq!(only(&machine)["body"]["files"], json!(["a"]));
    let output = machine.hook_raw("PostToolUse", b"\xef\xbb\xbf{\"session_id\":");
    assert_eq!(stderr(&output).lines().count(), 1);
    assert_eq!(machine.spooled().len(), 1);
}

#[test]
fn c008_the_host_never_closes_stdin() {
    let machine = Machine::signed_out();
    let begun = Instant::now();
    let mut child = machine.spawn(&["hook", "claude-code", "PostToolUse"]);
    let mut stdin = child.stdin.take().expect("a pipe");
    let payload = machine.payload(json!({"tool_name": "Bash", "tool_input": {"command": "ls"}}));
    stdin
        .write_all(payload.to_string().as_bytes())
        .expect("writes");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    drop(stdin);
    assert_eq!(machine.spooled().len(), 1);
}

#[test]
fn c009_a_large_payload_is_read_to_its_end_whether_it_is_kept_or_not() {
    let payload = |machine: &Machine| {
        machine.payload(
            json!({"tool_use_id": "t2", "tool_name": "Read", "tool_input": {},
            "tool_response": "A".repeat(2_000_000)}),
        )
    };
    let off = Machine::signed_out().set("CAIRN_CAPTURE", "false");
    off.hook("PostToolUse", &payload(&off));
    assert!(off.spooled().is_empty());
    let on = Machine::signed_out();
    on.hook("PostToolUse", &payload(&on));
    let body = only(&on)["body"].clone();
    assert_eq!(body["output_bytes"], 2_000_002);
    assert_eq!(body["output_sha256"].as_str().map(str::len), Some(64));
    let output = body["output"].as_str().expect("text");
    assert!(output.len() <= 65_536 && output.ends_with("bytes]"));
}

#[test]
fn c010_the_service_is_down() {
    let machine = Machine::new("http://127.0.0.1:9");
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SessionEnd",
    ];
    for event in events {
        let begun = Instant::now();
        let payload = machine.payload(json!({"prompt": "p", "tool_name": "Bash", "reason": "r"}));
        machine.hook(event, &payload);
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{event}: {:?}",
            begun.elapsed()
        );
    }
    assert_eq!(machine.spooled().len(), events.len());
}

#[test]
fn c011_a_session_end_is_spooled_and_sent_by_the_next_run() {
    let double = Double::start();
    double.script([Reply::Late(Duration::from_secs(5))]);
    let machine = Machine::new(&double.url);
    let begun = Instant::now();
    machine.hook(
        "SessionEnd",
        &machine.payload(json!({"reason": "prompt_input_exit"})),
    );
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    let id = only(&machine)["event_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(double.count("/v1/events"), 0);
    double.script([Reply::Accept]);
    machine.hook(
        "SessionStart",
        &machine.payload(json!({"source": "startup"})),
    );
    machine.wait_until_sent();
    assert!(double.stored().contains(&id));
}

#[test]
fn c012_the_same_hook_registered_twice_reports_one_tool_use() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let payload = machine.payload(json!({"session_id": "s-1", "tool_use_id": "tu_9",
        "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": "ok"}));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let output = machine.hook("PostToolUse", &payload);
                assert_eq!(stderr(&output), "");
            });
        }
    });
    machine.wait_until_sent();
    assert_eq!(double.stored(), ["e437d10e-f478-80e1-b7c9-fb2ce3ebe44d"]);
}

#[test]
fn c015_a_screenshot_becomes_a_marker() {
    let machine = Machine::signed_out();
    let payload = machine.payload(json!({"tool_name": "screenshot", "tool_input": {},
        "tool_response": {"content": [
            {"type": "image", "mimeType": "image/png", "data": "A".repeat(3_900_000)},
            {"type": "text", "text": "window list ok"}]}}));
    machine.hook("PostToolUse", &payload);
    let record = only(&machine);
    assert!(record.to_string().len() < 100_000);
    let output = record["body"]["output"].as_str().expect("text");
    assert!(
        output.contains("[image image/png 2925000 bytes sha256:"),
        "{output}"
    );
    assert!(output.contains("window list ok"));
}

#[test]
fn c029_nesting_of_any_depth_is_kept_as_text() {
    let machine = Machine::signed_out();
    for depth in [200, 100_000] {
        let payload = format!(
            r#"{{"session_id":"s1","tool_name":"T","tool_input":{}{},"tool_response":"r"}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        machine.hook_raw("PostToolUse", payload.as_bytes());
    }
    let records = machine.spooled();
    assert_eq!(
        records[0]["body"]["input"].as_str().map(str::len),
        Some(400)
    );
    assert_eq!(records[1]["body"]["input_bytes"], 200_000);
}

#[test]
fn c032_a_tool_s_json_is_kept_letter_for_letter() {
    let machine = Machine::signed_out();
    let input = r#"{"id":12345678901234567890123,"x":1.50,"a":1,"a":2, "u":"\u00e9\/"}"#;
    let payload = format!(
        r#"{{"session_id":"s1","tool_name":"T","tool_input":{input},"tool_response":1e400}}"#
    );
    machine.hook_raw("PostToolUse", payload.as_bytes());
    let record = only(&machine);
    assert_eq!(record["body"]["input"], input);
    assert_eq!(record["body"]["output"], "1e400");
}

#[test]
fn c003_what_memory_itself_injected_is_not_recorded_again() {
    let machine = Machine::signed_out();
    let response = "before <memory-context>41 old title</memory-context> \
        <persisted-output>saved</persisted-output> after";
    let call = json!({"tool_use_id": "tu_7", "tool_name": "Bash",
        "tool_input": {"command": "cat notes.md"}, "tool_response": response});
    machine.hook("PostToolUse", &machine.payload(call));
    assert_eq!(only(&machine)["body"]["output"], r#""before   after""#);
    let own = json!({"tool_name": "mcp__plugin_cairn_cairn__mem_search", "tool_response": "x"});
    machine.hook("PostToolUse", &machine.payload(own));
    assert_eq!(machine.spooled().len(), 1);
}

#[test]
fn c064_private_text_reaches_neither_spool_nor_service() {
    let prompts = [
        "key <private>SECRET",
        "<private>SECRET",
        "<private>a <private>b</private> SECRET</private>",
        "<private >SECRET</private >",
        "<PRIVATE>SECRET</Private>",
        "<private\n>SECRET</private>",
    ];
    for prompt in prompts {
        let machine = Machine::signed_out();
        machine.hook(
            "UserPromptSubmit",
            &machine.payload(json!({"prompt": prompt})),
        );
        assert!(!machine.holds("SECRET"), "{prompt}");
        let body = only(&machine)["body"].clone();
        let wholly = !prompt.starts_with("key");
        assert_eq!(body.get("private").is_some(), wholly, "{body}");
    }
    let machine = Machine::signed_out();
    machine.hook(
        "UserPromptSubmit",
        &machine.payload(json!({"prompt": "x </private> S stays"})),
    );
    assert_eq!(only(&machine)["body"]["text"], "x </private> S stays");
}

#[test]
fn c064_of_a_private_turn_nothing_but_its_existence_is_kept() {
    let machine = Machine::signed_out();
    let call = || machine.payload(json!({"tool_name": "Bash", "tool_response": "SECRET"}));
    machine.hook(
        "UserPromptSubmit",
        &machine.payload(json!({"prompt": "<private>SECRET"})),
    );
    machine.hook("PostToolUse", &call());
    machine.hook(
        "Stop",
        &machine.payload(json!({"last_assistant_message": "SECRET"})),
    );
    assert!(!machine.holds("SECRET"));
    machine.hook(
        "UserPromptSubmit",
        &machine.payload(json!({"prompt": "again"})),
    );
    machine.hook("PostToolUse", &call());
    assert!(machine.holds("SECRET"));
}

#[test]
fn excluded_folders_and_skipped_tools_send_nothing() {
    let call = json!({"tool_name": "Bash", "tool_response": "x", "source": "startup"});
    let excluded = Machine::signed_out().set("CAIRN_EXCLUDE", "~/app");
    for event in ["SessionStart", "PostToolUse"] {
        let output = excluded.hook(event, &excluded.payload(call.clone()));
        assert_eq!(
            (stdout(&output), stderr(&output)),
            (String::new(), String::new())
        );
    }
    assert!(excluded.spooled().is_empty());
    let skipping = Machine::signed_out().set("CAIRN_SKIP_TOOLS", "Bash,Read");
    skipping.hook("PostToolUse", &skipping.payload(call));
    assert!(skipping.spooled().is_empty());
}

#[test]
fn visibility_is_what_the_person_set() {
    let machine = Machine::signed_out().set("CAIRN_VISIBILITY", "private");
    machine.hook("UserPromptSubmit", &machine.payload(json!({"prompt": "p"})));
    assert_eq!(only(&machine)["visibility"], "private");
}

#[test]
fn a_hook_always_ends_with_0() {
    let machine = Machine::signed_out();
    let long = format!("{{\"prompt\":\"{}\"}}", "x".repeat(300_000));
    for (args, stdin) in [
        (vec!["hook"], "{}"),
        (vec!["hook", "other", "Stop"], long.as_str()),
        (vec!["hook", "claude-code"], "{}"),
        (vec!["hook", "other", "Stop"], "{}"),
        (vec!["hook", "claude-code", "Stop"], "not json"),
        (vec!["hook", "claude-code", "Stop"], ""),
        (vec!["hook", "claude-code", "Stop"], "{]"),
        (
            vec!["hook", "claude-code", "Stop", "--bogus"],
            "{\"session_id\":7}",
        ),
    ] {
        let output = machine.run(&args, stdin.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(stderr(&output).lines().count() <= 1, "{output:?}");
        assert_eq!(stdout(&output), "");
    }
    assert!(machine.spooled().is_empty());
}

#[test]
fn a_broken_settings_file_is_named_once_a_session() {
    let machine = Machine::signed_out();
    let folder = machine.home().join(".config/cairn");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("config.toml"), "x").expect("writes");
    let payload = machine.payload(json!({"prompt": "p"}));
    let said = |output| stderr(&output).matches("config.toml").count();
    assert_eq!(
        said(machine.run(
            &["hook", "claude-code", "Stop"],
            payload.to_string().as_bytes()
        )),
        1
    );
    assert_eq!(
        said(machine.run(
            &["hook", "claude-code", "Stop"],
            payload.to_string().as_bytes()
        )),
        0
    );
    assert_eq!(machine.spooled().len(), 2);
}

#[test]
fn a_record_that_the_disk_does_not_take_is_sent_at_once() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    // Where a file stands, no folder for the spool can be made.
    let share = machine.home().join(".local/share");
    std::fs::create_dir_all(share.parent().expect("a parent")).expect("a folder");
    std::fs::write(&share, "").expect("writes");
    let output = machine.hook("Stop", &machine.payload(json!({})));
    assert_eq!(stderr(&output), "");
    assert_eq!(double.stored().len(), 1);
    double.script([Reply::Late(Duration::from_secs(20))]);
    let begun = Instant::now();
    let output = machine.hook("Stop", &machine.payload(json!({})));
    assert!(
        stderr(&output).contains("cannot write the spool"),
        "{output:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}
