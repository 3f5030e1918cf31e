//! What holds for any text: nothing panics, nothing grows without bound, once is enough, and
//! twice the text is twice the work.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::runs::STEPS;
use super::*;

/// Pieces out of which texts that look like secrets are made.
const PIECES: &[&str] = &[
    "token",
    "pass",
    "word",
    "password",
    "secret",
    "api_key",
    "=",
    ": ",
    ":",
    "\"",
    "'",
    "\\",
    "\\\"",
    "gh",
    "p_",
    "sk-",
    "eyJ",
    ".",
    "abc123def456",
    "A1b2C3d4E5f6G7h8",
    "://",
    "u:p@",
    "@h",
    "/",
    "?",
    "&",
    "-----BEGIN ",
    "PRIVATE KEY",
    "-----",
    "-----END ",
    "\n",
    " ",
    "\t",
    "Authorization",
    "Bearer ",
    "Cookie",
    "a=b",
    ";",
    ",",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "\u{200b}",
    "\u{1b}[31m",
    "修",
    "é",
    "[redacted:token]",
    "[withheld]",
    "curl ",
    "-u ",
    "--",
    "value",
    "name",
    "$",
    "${",
    "8Q~",
    "MTI",
    ":AA",
    "-us1",
    "<private>",
    "</private>",
    "…[cut 9 bytes]",
    "\\u0041",
    "\u{ff1d}",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
        1 => "[a-zA-Z0-9+/=_-]{0,40}",
        1 => any::<char>().prop_map(|c| c.to_string()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner.clone()), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            inner.prop_map(|inner| Value::from(inner.to_string())),
        ]
    })
}

/// The form of a value: what is left when its texts are.
fn form(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::from(""),
        Value::Array(items) => items.iter().map(form).collect(),
        Value::Object(members) => members.values().map(form).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn once_is_enough(text in text()) {
        let once = safe(&text).into_owned();
        prop_assert_eq!(safe(&once).into_owned(), once);
    }

    #[test]
    fn nothing_grows_without_bound(text in text()) {
        prop_assert!(safe(&text).len() <= 8 * text.len() + 64);
        prop_assert!(safe_json(&text).len() <= 12 * text.len() + 64);
    }

    #[test]
    fn any_json_stays_json(value in value()) {
        let given = value.to_string();
        let kept = safe_json(&given).into_owned();
        let read: Result<Value, _> = serde_json::from_str(&kept);
        prop_assert!(read.is_ok(), "{} -> {}", given, kept);
        prop_assert_ne!(kept.as_str(), WITHHELD);
        let again = safe_json(&kept).into_owned();
        prop_assert_eq!(&again, &kept);
    }

    #[test]
    fn json_that_was_cut_off_anywhere_passes(value in value(), at in any::<prop::sample::Index>()) {
        let whole = value.to_string();
        let at = whole.floor_char_boundary(at.index(whole.len() + 1));
        let cut = format!("{}…[cut 12 bytes]", &whole[..at]);
        prop_assert!(safe_json(&cut).as_ref() != WITHHELD);
        prop_assert!(safe_json(&whole[..at]).as_ref() != WITHHELD);
    }

    #[test]
    fn what_holds_nothing_is_not_copied(text in "[a-z ,.()\n]{0,200}") {
        prop_assume!(!["token", "secret", "pass", "key", "cookie", "auth"].iter().any(|word| text.contains(word)));
        prop_assert!(matches!(safe(&text), Cow::Borrowed(_)));
    }
}

#[test]
fn the_form_of_json_stays() {
    let given = r#"{"a":[{"token":"abc123def456"},1,null],"b":{"c":"ok"}}"#;
    let kept: Value = serde_json::from_str(&safe_json(given)).expect("JSON");
    let given: Value = serde_json::from_str(given).expect("JSON");
    assert_eq!(form(&kept), form(&given));
}

/// Bytes that are looked at beside the walk itself.
fn steps(text: &str) -> usize {
    STEPS.set(0);
    drop(safe(text));
    drop(safe_json(text));
    STEPS.get()
}

/// Rows of beginnings would cost a careless search the square of their length.
#[test]
fn twice_the_text_is_twice_the_work() {
    let rows = [
        "password=",
        "token:",
        "eyJ-",
        "eyJa.",
        "://a:",
        "Authorization: ",
        "Cookie: a=",
        "curl -u ",
        "-----BEGIN PRIVATE KEY-----\n",
        "Private-Lines: 1\n",
        "\\\"token\\\":",
        "sk-a-",
        "{\"name\":\"token\",\"value\":",
        "token=a,",
        "token \"",
        "<password>",
        "name: token\nvalue:",
        "bearer a",
        "xoxb-",
        "\"a\\",
        "token=(",
        "secret='",
    ];
    for piece in PIECES.iter().copied().chain(rows) {
        let (once, twice) = (
            piece.repeat(24_000 / piece.len()),
            piece.repeat(48_000 / piece.len()),
        );
        let (once, twice) = (steps(&once), steps(&twice));
        assert!(twice <= 3 * once + 10_000, "{piece:?}: {once}, {twice}");
    }
}

#[test]
fn a_judge_that_fails_leaves_nothing_of_the_text() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let kept = closed("secret", |_| panic!("a fault"));
    std::panic::set_hook(quiet);
    assert_eq!(kept, WITHHELD);
}
