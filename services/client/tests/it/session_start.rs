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
    assert!(heard.contains("GET /v1/context?tz=Asia/Seoul"), "{heard}");
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
