//! Redaction by example: every kind of secret in its surroundings goes, harmless text stays.

#[path = "redact/corpus.rs"]
mod corpus;

use std::borrow::Cow;

use cairn_domain::redact::{VERSION, redact, redact_json, safe, safe_json};
use corpus::{all_values, fakes, holds, marked, portions, private_keys, private_marks, texts};
use serde_json::{Value, json};

#[test]
fn every_kind_goes_from_every_surrounding() {
    let all = fakes();
    let kinds: std::collections::BTreeSet<_> = all.iter().map(|fake| fake.kind).collect();
    assert!(kinds.len() >= 60, "{}", kinds.len());
    let mut left = Vec::new();
    for fake in &all {
        for text in texts(fake) {
            let kept = redact(&text);
            if holds(&kept, &fake.value) || !kept.contains("[redacted:") {
                left.push(format!("{}: {text}\n    -> {kept}", fake.kind));
            }
        }
    }
    assert!(left.is_empty(), "{}:\n{}", left.len(), left.join("\n"));
}

#[test]
fn every_kind_goes_from_json_however_it_is_wrapped() {
    let mut left = Vec::new();
    for fake in fakes() {
        for text in texts(&fake) {
            let inside = json!({"stdout": text, "list": [1, text], "deep": {"a": [{"b": text}]}});
            let nested = json!({"body": inside.to_string()});
            let twice = json!({"body": nested.to_string()});
            for value in [inside.clone(), nested, twice, json!(text)] {
                let kept = safe_json(&value.to_string()).into_owned();
                let is_json = serde_json::from_str::<Value>(&kept).is_ok();
                if holds(&kept, &fake.value) || !is_json {
                    left.push(format!("{}: {value}\n    -> {kept}", fake.kind));
                }
            }
        }
    }
    assert!(left.is_empty(), "{}:\n{}", left.len(), left.join("\n"));
}

#[test]
fn private_keys_go_whole_or_cut_off_and_what_surrounds_them_stays() {
    let mut left = Vec::new();
    for (text, lines) in private_keys() {
        let as_json = json!({ "out": text }).to_string();
        for (given, kept) in [(&text, redact(&text)), (&as_json, redact_json(&as_json))] {
            let gone = lines.iter().all(|line| !kept.contains(&line[..16]));
            let whole = !text.contains("-----END") || kept.contains(" kept");
            if !gone || !kept.contains("key is [redacted:private-key]") || !whole {
                left.push(format!("{given}\n    -> {kept}"));
            }
        }
    }
    assert!(left.is_empty(), "{}:\n{}", left.len(), left.join("\n"));
}

#[test]
fn harmless_text_comes_through_unchanged() {
    let lines = include_str!("redact/harmless.txt");
    assert!(lines.lines().count() >= 500, "{}", lines.lines().count());
    let mut changed = Vec::new();
    for line in lines.lines() {
        let as_json = json!({ "text": line }).to_string();
        for (given, kept) in [
            (line, redact(line)),
            (as_json.as_str(), redact_json(&as_json)),
        ] {
            if kept != given {
                changed.push(format!("{given}\n    -> {kept}"));
            }
        }
    }
    assert!(
        changed.is_empty(),
        "{}:\n{}",
        changed.len(),
        changed.join("\n")
    );
    assert!(
        matches!(redact(lines), Cow::Borrowed(_)),
        "as a whole: {}",
        diff(lines, &redact(lines))
    );
}

fn diff(one: &str, other: &str) -> String {
    let pairs = one.lines().zip(other.lines());
    let odd = pairs.filter(|(one, other)| one != other);
    odd.map(|(one, other)| format!("{one}\n    -> {other}\n"))
        .collect()
}

#[test]
fn c065_names_around_secrets_stay() {
    let token = format!("gh{}", "p_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE");
    let key = ["FAKE/FAKE+", "FAKEFAKEFAKEFAKEFAKEFAKE00"].concat();
    let bearer = ["sk", "-FAKEFAKEFAKEFAKEFAKE"].concat();
    let input = json!({"command": format!("export API_TOKEN={token}"),
        "env": {"AWS_SECRET_ACCESS_KEY": key}});
    let output = json!({"stdout": format!("Authorization: Bearer {bearer}\ntoken count: 1200"),
        "stderr": "postgres://u:FAKEPW@db.example/x"});
    let kept: Value = serde_json::from_str(&safe_json(&input.to_string())).expect("JSON");
    assert_eq!(kept["command"], "export API_TOKEN=[redacted:github-token]");
    assert_eq!(
        kept["env"],
        json!({"AWS_SECRET_ACCESS_KEY": "[redacted:access-key]"})
    );
    let kept: Value = serde_json::from_str(&safe_json(&output.to_string())).expect("JSON");
    assert_eq!(
        kept["stdout"],
        "Authorization: Bearer [redacted:api-key]\ntoken count: 1200"
    );
    assert_eq!(
        kept["stderr"],
        "postgres://u:[redacted:password]@db.example/x"
    );
}

#[test]
fn c064_private_marks_go_with_secrets() {
    let secret = fakes()[15].value.clone();
    let marks = [
        format!("key <private>{secret}"),
        format!("<private>{secret}"),
        format!("<private>a <private>b</private> {secret}</private>"),
        format!("<private >{secret}</private >"),
        format!("<PRIVATE>{secret}</Private>"),
        format!("<private\n>{secret}</private>"),
    ];
    for text in marks {
        assert!(
            !safe(&text).contains("redacted") && !holds(&safe(&text), &secret),
            "{text}"
        );
        let json = json!({ "a": text, "inner": json!([text]).to_string() }).to_string();
        assert!(!holds(&safe_json(&json), &secret), "{json}");
    }
    let marks = private_marks(&secret);
    assert_eq!(marks.len(), 20);
    for (text, kept) in marks {
        assert_eq!(safe(&text), kept, "{text}");
    }
    assert_eq!(safe("x </private> S stays"), "x </private> S stays");
}

#[test]
fn a_secret_in_a_key_goes_and_numbers_keep_their_spelling() {
    let value = fakes()[16].value.clone();
    let given = format!(r#"{{"{value}":1.50, "n":100000000000000000000,"s":"\u00e9","n":2}}"#);
    assert_eq!(
        safe_json(&given),
        r#"{"[redacted:github-token]":1.50, "n":100000000000000000000,"s":"\u00e9","n":2}"#
    );
}

#[test]
fn escapes_hide_nothing() {
    for given in [
        r#"{"pass\u0077ord":"h\u0075nter2hunter2"}"#,
        r#"{"a":"{\"pass\\u0077ord\":\"hunter2hunter2\"}"}"#,
        r#"{"url":"postgres:\/\/u:hunter2@h\/x"}"#,
        r#"{"args":["--password","hunter2hunter2"]}"#,
        r#"{"headers":[["Authorization","Bearer abc123def456ghi"],["Cookie","sid=abc123def456"]]}"#,
        r#"{"value":"hunter2hunter2","name":"DB_PASSWORD"}"#,
        r#"{"secret":{"value":"hunter2hunter2"}}"#,
        r#"{"tokens":["abc123def456","hunter2hunter2"]}"#,
        r#"{"password":"hunter2hun"#,
    ] {
        let kept = safe_json(given);
        for piece in ["unter2", "abc123", "ghi", "def456"] {
            assert!(!kept.contains(piece), "{given}\n    -> {kept}");
        }
        let closes = given.ends_with('}');
        assert_eq!(
            serde_json::from_str::<Value>(&kept).is_ok(),
            closes,
            "{kept}"
        );
    }
}

#[test]
fn nothing_of_the_corpus_is_left_however_much_of_it_comes_at_once() {
    for portion in portions() {
        let kept = safe_json(&json!({ "lines": portion }).to_string()).into_owned();
        let left = all_values()
            .into_iter()
            .filter(|(_, value)| holds(&kept, value));
        let left: Vec<_> = left.collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(!safe(&format!("<private>{}", marked())).contains(&marked()));
}

#[test]
fn what_was_replaced_stays_as_it_is() {
    for fake in fakes() {
        for text in texts(&fake) {
            let once = safe(&text).into_owned();
            assert_eq!(safe(&once), once, "{text}");
        }
    }
    assert_eq!(VERSION, 1);
}
