//! What a session starts with.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Double, KEY, Machine, Reply, line, stderr, stdout};

fn context_of(text: &str) -> String {
    let answer: Value = serde_json::from_str(text).expect("one JSON object");
    assert_eq!(
        answer["hookSpecificOutput"]["hookEventName"],
        "SessionStart"
    );
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
    context.expect("a text").to_owned()
}

fn start(machine: &Machine, source: &str) -> String {
    stdout(&machine.hook("SessionStart", &machine.payload(json!({"source": source}))))
}

#[test]
fn the_context_is_printed_for_a_session_that_begins() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    for source in ["startup", "clear", "compact"] {
        let context = context_of(&start(&machine, source));
        assert_eq!(
            context,
            "<cairn-context>\n# [app] recent context\n</cairn-context>"
        );
    }
    for source in ["resume", "fork"] {
        assert_eq!(start(&machine, source), "");
    }
    let heard = double.heard();
    let asked = "GET /v1/context?tz=Asia/Seoul&budget=10000&reserve=33 ";
    assert!(heard.contains(asked), "{heard}");
    assert!(
        heard.contains("\"cairn-session\": \"claude-code/s1\""),
        "{heard}"
    );
    assert!(
        heard.contains(&format!("Bearer {KEY}")) && heard.contains("\"cairn-project\": \"dir:")
    );
}

#[test]
fn c001_no_more_than_the_limit_leaves_the_client() {
    let double = Double::start();
    let rows: Vec<String> = (1..=50)
        .map(|n| format!("{n} 3:45p ● {}", "修".repeat(300)))
        .collect();
    double.inner.lock().expect("whole").context = format!(
        "# [app] recent context\n\n### Oct 10, 2026\n{}",
        rows.join("\n")
    );
    let context = context_of(&start(&Machine::new(&double.url), "startup"));
    assert!(context.encode_utf16().count() <= 10_000);
    assert!(context.contains("# [app]") && context.contains("\n50 3:45p"));
    assert!(
        context
            .lines()
            .filter(|line| line.contains("●"))
            .all(|line| line.ends_with("修修修"))
    );
}

#[test]
fn c010_a_service_that_is_away_leaves_one_notice() {
    let machine = Machine::new("http://127.0.0.1:9");
    let context = context_of(&start(&machine, "startup"));
    let want = "<cairn-context>\nNotice: the memory service cannot be reached; run: cairn status\n\
        </cairn-context>";
    assert_eq!(context, want);
}

#[test]
fn a_slow_service_is_given_three_seconds() {
    let double = Double::start();
    double.script([Reply::Late(Duration::from_secs(20))]);
    let begun = Instant::now();
    let context = context_of(&start(&Machine::new(&double.url), "startup"));
    assert!(context.contains("Notice: the memory service cannot be reached"));
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_sign_in_that_is_missing_is_said_with_the_command() {
    let context = context_of(&start(&Machine::signed_out(), "resume"));
    assert!(context.contains("run: cairn login"), "{context}");
}

#[test]
fn without_a_service_nothing_is_recorded_and_the_person_is_told_once() {
    let mut machine = Machine::signed_out();
    machine.env.remove("CAIRN_URL");
    let first = machine.hook("Stop", &machine.payload(json!({})));
    assert!(stderr(&first).contains("cairn login"));
    let second = machine.hook("Stop", &machine.payload(json!({})));
    assert_eq!(stderr(&second), "");
    assert!(machine.spooled().is_empty());
}

#[test]
fn a_sign_in_that_is_refused_is_said_once_whatever_stands_between() {
    let double = Double::start();
    double.inner.lock().expect("whole").refused = vec!["e1".to_owned()];
    let machine = Machine::new(&double.url);
    machine.spool_bytes(line("e1").as_bytes());
    machine.flush();
    double.script([Reply::Status(401, vec![], String::new())]);
    machine.spool_bytes(line("e2").as_bytes());
    machine.flush();
    let context = context_of(&start(&machine, "startup"));
    assert!(context.contains("1 event was not stored"), "{context}");
    assert_eq!(context.matches("run: cairn login").count(), 1, "{context}");
}

#[test]
fn a_service_that_fails_is_not_called_away() {
    let double = Double::start();
    double.script([Reply::Status(500, vec![], String::new())]);
    let context = context_of(&start(&Machine::new(&double.url), "startup"));
    assert!(
        context.contains("Notice: the memory service has a fault"),
        "{context}"
    );
}

#[test]
fn each_setting_of_the_context_is_a_parameter() {
    let double = Double::start();
    let machine = Machine::new(&double.url)
        .set("CAIRN_CONTEXT_LIMIT", "8000")
        .set("CAIRN_CONTEXT_OBSERVATIONS", "20")
        .set("CAIRN_CONTEXT_SUMMARIES", "2")
        .set("CAIRN_CONTEXT_FULL_COUNT", "3")
        .set("CAIRN_CONTEXT_FULL_FIELD", "facts")
        .set("CAIRN_CONTEXT_SHOW_READ_TOKENS", "true")
        .set("CAIRN_CONTEXT_SHOW_WORK_TOKENS", "true")
        .set("CAIRN_CONTEXT_SHOW_SAVINGS_PERCENT", "false")
        .set("CAIRN_CONTEXT_SHOW_SAVINGS_AMOUNT", "true")
        .set("CAIRN_CONTEXT_SHOW_LAST_SUMMARY", "false")
        .set("CAIRN_CONTEXT_SHOW_LAST_REPLY", "true")
        .set("CAIRN_CONTEXT_SHOW_AUTHOR", "true")
        .set("CAIRN_CONTEXT_TYPES", "bugfix, decision")
        .set("CAIRN_CONTEXT_CONCEPTS", "all")
        .set("CAIRN_CONTEXT_MAIN_AGENT_ONLY", "false");
    start(&machine, "startup");
    let heard = double.heard();
    assert!(
        heard.contains(
            "?tz=Asia/Seoul&budget=8000&reserve=33&observations=20&summaries=2&full_count=3\
             &full_field=facts&show_read_tokens=true&show_work_tokens=true\
             &show_savings_percent=false&show_savings_amount=true&show_last_summary=false\
             &show_last_reply=true&show_author=true&types=bugfix%2C%20decision&concepts=\
             &main_agent_only=false "
        ),
        "{heard}"
    );
    let bad = Machine::new(&double.url)
        .set("CAIRN_CONTEXT_OBSERVATIONS", "9999")
        .set("CAIRN_CONTEXT_TYPES", "nonsense");
    let said = stderr(&bad.run(&["context"], b""));
    assert!(
        said.contains("CAIRN_CONTEXT_OBSERVATIONS must be 0 to 500; using the default")
            && said.contains("CAIRN_CONTEXT_TYPES"),
        "{said}"
    );
}

#[test]
fn each_host_is_answered_in_its_form_and_within_its_limit() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    for (host, event, payload, path) in [
        (
            "codex",
            "SessionStart",
            json!({"session_id": "s", "source": "startup"}),
            "/hookSpecificOutput/additionalContext",
        ),
        (
            "gemini-cli",
            "SessionStart",
            json!({"session_id": "s", "source": "startup"}),
            "/hookSpecificOutput/additionalContext",
        ),
        (
            "copilot-cli",
            "SessionStart",
            json!({"session_id": "s", "source": "new"}),
            "/additionalContext",
        ),
        (
            "vscode",
            "SessionStart",
            json!({"sessionId": "s"}),
            "/hookSpecificOutput/additionalContext",
        ),
        (
            "cursor",
            "sessionStart",
            json!({"conversation_id": "s"}),
            "/additional_context",
        ),
    ] {
        let output = machine.run(&["hook", host, event], payload.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0));
        let answer: Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
        let text = answer
            .pointer(path)
            .and_then(Value::as_str)
            .expect("a text");
        assert!(text.contains("# [app] recent context"), "{host}: {text}");
    }
    // About 2,500 tokens is all that one of them takes.
    assert!(
        double.heard().contains("&tokens=2400&"),
        "{}",
        double.heard()
    );
    // Those that read nothing but JSON are given an empty object.
    let resumed = json!({"session_id": "s", "source": "resume"}).to_string();
    for (host, empty) in [("gemini-cli", "{}\n"), ("codex", ""), ("claude-code", "")] {
        let output = machine.run(&["hook", host, "SessionStart"], resumed.as_bytes());
        assert_eq!(stdout(&output), empty, "{host}");
    }
}

/// A copy of lists with one open task and one closed.
fn lists() -> Value {
    let place = |n: u32| {
        json!([
            1_791_000_000_000_u64 + u64::from(n),
            0,
            uuid::Uuid::from_u128(n.into())
        ])
    };
    let task = |n: u32, name: &str, status: &str| {
        let key = |key: &str, value: &str, nth: u32| json!([key, value, place(n), place(n), nth]);
        json!({"task": name, "first": place(n), "last": place(n), "author": "lin",
            "keys": [key("task", name, 0), key("status", status, 1)]})
    };
    json!({"lists": [{"name": "plan", "newest": place(2),
        "tasks": [task(1, "docs", "todo"), task(2, "tests", "done")]}]})
}

#[test]
fn without_the_service_the_last_copy_is_shown_with_what_waits_merged_in() {
    let double = Double::start();
    double.inner.lock().expect("whole").work = lists();
    let mut machine = Machine::new(&double.url);
    start(&machine, "startup");
    // The flusher that the session leaves behind fetches the lists.
    machine.wait_until_sent();
    machine.wait_for_flushers();
    assert_eq!(
        double.count("/v1/work-state?include_closed=true&snapshot=true"),
        1
    );
    // What is kept belongs to this service; now it is gone.
    let url = double.url.clone();
    drop(double);
    machine.env.insert("CAIRN_URL".to_owned(), url);
    let added = machine.run(
        &["work", "add", "plan", "task=late", "status=doing", "n=2"],
        b"",
    );
    assert_eq!(
        stdout(&added),
        "Stored offline; it will be merged.\n",
        "{added:?}"
    );
    let context = context_of(&start(&machine, "startup"));
    assert!(
        context.starts_with("<cairn-context>\nOffline copy of 2")
            && context.contains("Z:\n# Work state: what is open in this project\n"),
        "{context}"
    );
    assert!(
        context.contains("\nStill open:\n- plan\n  - [todo] docs, updated "),
        "{context}"
    );
    assert!(
        context.contains("\n  - [doing] late (n=2), updated 1 minute ago\n"),
        "{context}"
    );
    assert!(!context.contains("tests"), "closed");
    let (_, copy) = context.split_once("\n\nOffline copy of 2").expect("a mark");
    assert!(
        copy.contains("Z:\n# [app] recent context\n\nNotice: the memory service cannot be reached"),
        "{copy}"
    );
    // What the notice points to says the same.
    let status = machine.status();
    assert!(
        status.contains("attention") && status.contains("cannot be reached"),
        "{status}"
    );
    assert!(context.encode_utf16().count() <= 10_000);
    // Reading by hand shows the same, marked as a copy.
    let read = stdout(&machine.run(&["work"], b""));
    assert!(
        read.starts_with("Offline copy of 2")
            && read.contains("[doing] late (n=2), updated 1 minute ago by you"),
        "{read}"
    );
    // A claim needs the service.
    assert_eq!(
        machine
            .run(&["work", "claim", "plan", "docs"], b"")
            .status
            .code(),
        Some(4)
    );
}

#[test]
fn a_copy_is_of_one_account_and_one_project() {
    let double = Double::start();
    let mut machine = Machine::new(&double.url);
    start(&machine, "startup");
    machine.wait_until_sent();
    machine.wait_for_flushers();
    drop(double);
    let other = KEY.replace("abcdefghijkl", "mnopqrstuvwx");
    machine.env.insert("CAIRN_API_KEY".to_owned(), other);
    let context = context_of(&start(&machine, "startup"));
    assert!(!context.contains("# [app]"), "{context}");
    machine
        .env
        .insert("CAIRN_API_KEY".to_owned(), KEY.to_owned());
    std::fs::write(machine.app().join(".cairn-project"), "another\n").expect("writes");
    let context = context_of(&start(&machine, "startup"));
    assert!(!context.contains("# [app]"), "{context}");
}
