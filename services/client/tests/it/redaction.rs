//! Secrets and private passages: whatever a host, a person or an agent says, none reaches the disk
//! or the network.

use std::fs;

use serde_json::{Value, json};

use crate::corpus::{
    all_values, fakes, holds, marked, portions, private_keys, private_marks, texts,
};
use crate::support::{Double, Machine, stderr, stdout};

/// What of the corpus stands in a text.
fn left(text: &str) -> Vec<(&'static str, String)> {
    let all = all_values().into_iter();
    all.filter(|(_, value)| holds(text, value)).collect()
}

/// All files below a machine's home, as text.
fn files(machine: &Machine) -> String {
    let mut folders = vec![machine.home().to_owned()];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("reads") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text.push_str(&String::from_utf8_lossy(
                    &fs::read(path).unwrap_or_default(),
                ));
            }
        }
    }
    text
}

/// Reports the whole corpus through every hook that records something.
fn report_all(machine: &Machine) -> Vec<String> {
    let mut said = Vec::new();
    for (nth, portion) in portions().into_iter().enumerate() {
        let whole = portion.join("\n");
        let split: Vec<Value> = portion.iter().map(|text| json!({"a": [text]})).collect();
        let events = [
            ("UserPromptSubmit", json!({"prompt": format!("go {whole}")})),
            (
                "PostToolUse",
                json!({"tool_name": "Bash", "tool_use_id": format!("a{nth}"),
                "tool_input": {"command": whole, "list": portion}, "tool_response": split}),
            ),
            (
                "PostToolUseFailure",
                json!({"tool_name": "Bash", "tool_use_id": format!("b{nth}"),
                "tool_input": {"script": json!({"inner": portion}).to_string()}, "error": whole}),
            ),
            ("Stop", json!({"last_assistant_message": whole})),
        ];
        for (event, fields) in events {
            let output = machine.hook(event, &machine.payload(fields));
            said.extend([stdout(&output), stderr(&output)]);
        }
    }
    said
}

#[test]
fn c065_nothing_of_the_corpus_reaches_the_spool() {
    let machine = Machine::signed_out();
    let said = report_all(&machine);
    let records = machine.spooled();
    assert_eq!(records.len(), portions().len() * 4);
    assert!(records[0].to_string().contains("[redacted:"));
    assert_eq!(left(&files(&machine)), []);
    assert_eq!(left(&said.concat()), []);
}

#[test]
fn c065_nothing_of_the_corpus_is_sent_set_aside_or_noted() {
    let service = Double::start();
    let machine = Machine::new(&service.url).set("CAIRN_LOG", "debug");
    report_all(&machine);
    machine.wait_until_sent();
    machine.wait_for_flushers();
    let inner = service.inner.lock().expect("whole");
    let sent: Vec<String> = inner
        .requests
        .iter()
        .map(|(line, headers, body)| {
            format!("{line} {headers:?} {}", String::from_utf8_lossy(body))
        })
        .collect();
    assert!(inner.stored.len() >= portions().len() * 4);
    drop(inner);
    assert_eq!(left(&sent.concat()), []);
    assert_eq!(left(&files(&machine)), []);
}

#[test]
fn c065_secrets_that_the_user_never_typed() {
    let token = ["gh", "p_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE"].concat();
    let key = ["FAKE/FAKE+", "FAKEFAKEFAKEFAKEFAKEFAKE00"].concat();
    let bearer = ["sk", "-FAKEFAKEFAKEFAKEFAKE"].concat();
    let machine = Machine::signed_out();
    let call = json!({"tool_use_id": "t1", "tool_name": "Bash",
        "tool_input": {"command": format!("export API_TOKEN={token}"),
            "env": {"AWS_SECRET_ACCESS_KEY": key}},
        "tool_response": {"stdout": format!("Authorization: Bearer {bearer}\ntoken count: 1200"),
            "stderr": "postgres://u:FAKEPW@db.example/x"}});
    machine.hook("PostToolUse", &machine.payload(call));
    let body = machine.spooled().remove(0)["body"].clone();
    let side = |name: &str| -> Value {
        serde_json::from_str(body[name].as_str().expect("text")).expect("JSON")
    };
    assert_eq!(
        side("input"),
        json!({"command": "export API_TOKEN=[redacted:github-token]",
            "env": {"AWS_SECRET_ACCESS_KEY": "[redacted:access-key]"}})
    );
    assert_eq!(
        side("output"),
        json!({"stdout": "Authorization: Bearer [redacted:api-key]\ntoken count: 1200",
            "stderr": "postgres://u:[redacted:password]@db.example/x"})
    );
    for fake in [token.as_str(), &key, &bearer, "FAKEPW"] {
        assert!(!machine.holds(fake), "{fake}");
    }
}

#[test]
fn c064_private_marks_that_are_not_well_formed() {
    let machine = Machine::signed_out();
    let secret = marked();
    for (text, _) in private_marks(&secret) {
        machine.hook(
            "UserPromptSubmit",
            &machine.payload(json!({ "prompt": text })),
        );
    }
    for prompt in [
        format!("<private>{secret}"),
        format!("<PRIVATE>{secret}</Private>"),
    ] {
        machine.hook(
            "UserPromptSubmit",
            &machine.payload(json!({ "prompt": prompt })),
        );
        let record = machine.spooled().pop().expect("its existence");
        assert_eq!(record["body"], json!({"private": true}));
    }
    assert!(!machine.holds(&secret));
    let stays = json!({"prompt": format!("x </private> {secret} stays")});
    machine.hook("UserPromptSubmit", &machine.payload(stays));
    assert!(machine.holds(&secret));
}

#[test]
fn a_record_a_list_and_a_name_are_looked_at_too() {
    let machine = Machine::new("http://127.0.0.1:9");
    let fake = fakes().swap_remove(16);
    assert!(fake.around.is_empty() && !private_keys().is_empty());
    let value = &fake.value;
    let line = json!({"kind": "observation", "branch": format!("fix/{value}"),
        "agent_id": value, "project": {"key": format!("name:{value}"), "name": value},
        "body": {"title": texts(&fake)[0], "facts": [value], "nested": {value.as_str(): value}}});
    let output = machine.run(&["record"], line.to_string().as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for field in [
        format!("task=rotate {value}"),
        format!("{value}=x"),
        format!("note=token={value}"),
    ] {
        let list = format!("list {value}");
        let output = machine.run(&["work", "add", &list, "task=t", &field], b"");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(machine.spooled().len(), 4);
    assert!(!machine.holds(value), "{:?}", machine.spooled());
}

#[test]
fn a_spool_of_an_older_client_is_set_aside_without_its_secrets() {
    let service = Double::start();
    let fake = fakes().swap_remove(16);
    let machine = Machine::new(&service.url);
    let torn = format!(
        "{{\"v\":1,\"event_id\":\"e1\",\"body\":{{\"text\":\"{}\"",
        fake.value
    );
    machine.spool_bytes(torn.as_bytes());
    machine.flush();
    assert!(
        machine.status().contains("Set aside: 1"),
        "{}",
        machine.status()
    );
    assert!(!machine.holds(&fake.value));
}

#[test]
fn patterns_can_be_added_and_a_bad_one_is_named_once() {
    let machine = Machine::signed_out().set("CAIRN_REDACT_EXTRA", "corp-[0-9]{6} (");
    let file = machine.home().join(".config/cairn/config.toml");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, "redact_extra = [\"emp-[a-z]+\"]\n").expect("writes");
    let prompt = json!({"prompt": "see corp-123456 and emp-lin"});
    let first = machine.hook("UserPromptSubmit", &machine.payload(prompt.clone()));
    let second = machine.hook("UserPromptSubmit", &machine.payload(prompt));
    let told = stderr(&first);
    assert!(told.contains("CAIRN_REDACT_EXTRA: pattern 2"), "{told}");
    assert!(!stderr(&second).contains("CAIRN_REDACT_EXTRA"));
    for record in machine.spooled() {
        assert_eq!(
            record["body"]["text"],
            "see [redacted:extra] and [redacted:extra]"
        );
    }
}
