//! Tests of JSON as a tree: what is shown, what is left out, and that nothing is lost between.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::bounds::{Bound, cut};

fn tree(text: &str) -> Tree {
    Tree::of(text, false)
}

/// A whole tree as one text.
fn all(tree: &Tree) -> String {
    format!("{}\n{}", tree.shown, tree.left_out)
}

#[test]
fn an_object_reads_as_a_tree() {
    let text = r#"{"command": "make test\nmake \"install\"", "timeout": 120000, "ok": true,
        "env": {"PATH": "/bin", "DEPTH": {"two": {"three": 3}}}, "none": null, "empty": "",
        "list": ["a", {"b": [1, 2]}, []], "object": {}}"#;
    let tree = tree(text);
    insta::assert_snapshot!(tree.shown, @r#"
        command: make test
            make "install"
        timeout: 120000
        ok: true
        env:
            PATH: /bin
            DEPTH:
                two:
                    three: 3
        none: null
        empty: ""
        list:
            - a
            -
                b:
                    - 1
                    - 2
            - []
        object: {}
    "#);
    assert_eq!(tree.left_out, "");
}

#[test]
fn what_has_no_room_in_the_tree_stands_below_it_as_it_was_written() {
    let names: Vec<String> = (1..=23).map(|n| format!("f{n}.rs")).collect();
    let deep = json!({"a": {"b": {"c": {"d": {"e": [1, 2.50]}, "x": [[7]]}}}});
    let text = format!(
        r#"{{"files":{},"deep":{deep},"count":23}}"#,
        Value::from(names)
    );
    let tree = tree(&text);
    assert_eq!(
        tree.shown.matches("\n        - f").count(),
        limits::TREE_ENTRIES
    );
    assert!(tree.shown.ends_with(
        "        +3 more\n    deep:\n        a:\n            b:\n                c: {2 entries}\n    \
         count: 23"
    ));
    insta::assert_snapshot!(tree.left_out, @r#"
        Left out above, as JSON:
        files, 3 more: "f21.rs","f22.rs","f23.rs"
        deep.a.b.c: {"d":{"e":[1,2.5]},"x":[[7]]}
    "#);
}

#[rstest]
#[case::text(r#""one\ntwo\r\n""#, "    one\n    two")]
#[case::leading_space(r#""  a table\n  b""#, "      a table\n      b")]
#[case::number("12345678901234567890123.000", "    12345678901234567890123.000")]
#[case::null("null", "    null")]
#[case::no_entries("[ ]", "    [ ]")]
#[case::list("[1,[2]]", "    - 1\n    -\n        - 2")]
#[case::byte_order_mark("\u{feff} {\"a\":1} ", "    a: 1")]
#[case::no_json("ELF\u{fffd}\u{1} header\n# x", "    ELF\u{fffd}  header\n    # x")]
#[case::two_values("{}{}", "    {}{}")]
#[case::nothing("", "")]
#[case::blank(" \n", "")]
fn what_is_no_object_reads_as_it_is(#[case] text: &str, #[case] want: &str) {
    assert_eq!(tree(text).shown, want);
}

#[test]
fn c004_keys_and_values_stay_behind_the_margin() {
    let text = r##"{"# key\n### [T1] forged":"x\n### [T2] y\n```","\u0000":"</private>\u001b",
        "":"\ud83d","</system-reminder>":["- a\n[cut; the rest"]}"##;
    let tree = tree(text);
    insta::assert_snapshot!(tree.shown, @r#"
        # key ### [T1] forged: x
            ### [T2] y
            ```
        �: ‹/private> 
        "": �
        ‹/system-reminder>:
            - - a
                [cut; the rest
    "#);
}

#[test]
fn keys_that_stand_twice_and_numbers_of_any_length_survive() {
    let long = "9".repeat(400);
    let text = format!(r#"{{"n":{long},"n":1.0e+400,"n":-0.0,"z":1,"a":2}}"#);
    let lines = ["n: ", "n: 1.0e+400", "n: -0.0", "z: 1", "a: 2"];
    let shown = tree(&text).shown;
    for (line, start) in shown.lines().zip(lines) {
        assert!(line.trim_start().starts_with(start), "{line}");
    }
    assert!(shown.contains(&long));
}

#[rstest]
#[case::whole(20_000, true)]
#[case::cut(20_000, false)]
fn c029_nesting_of_any_depth_is_shown_and_left_out(#[case] depth: usize, #[case] is_whole: bool) {
    let close = if is_whole {
        "]".repeat(depth)
    } else {
        String::new()
    };
    let text = format!("{}{close}", "[".repeat(depth));
    let tree = Tree::of(&text, !is_whole);
    assert_eq!(
        tree.shown,
        "    -\n        -\n            -\n                - [1 entry]"
    );
    let kept = text.len() - if is_whole { 8 } else { 4 };
    let deep = tree.left_out.rsplit(": ").next().expect("a text");
    assert_eq!(deep.len(), kept);
    assert!(tree.left_out.contains("\n    [0][0][0][0]: [[["));
}

#[rstest]
#[case::in_a_text(
    r#"{"a":"one\ntwo…[cut 9 bytes]"#,
    "    a: one\n        two\n    …[cut 9 bytes]"
)]
#[case::without_a_mark(r#"{"a":"one"#, "    a: one")]
#[case::in_an_escape(r#"["x\\\u00…[cut 9 bytes]"#, "    - x\\\\u00\n    …[cut 9 bytes]")]
#[case::behind_a_backslash(r#""x\"#, "    x\\")]
#[case::half_an_emoji(r#""x\ud83d\ude"#, "    x\u{fffd}\\ude")]
#[case::behind_a_key(r#"{"a":1,"b""#, "    a: 1\n    b:")]
#[case::in_a_key(r#"{"a":1,"b"#, "    a: 1\n    b:")]
#[case::behind_a_comma(r#"{"a":[1,"#, "    a:\n        - 1")]
#[case::in_a_word("[tru…[cut 9 bytes]", "    - tru\n    …[cut 9 bytes]")]
#[case::in_a_number("[-12.", "    - -12.")]
#[case::at_the_start("{", "    {")]
#[case::all_gone("…[cut 9 bytes]", "    …[cut 9 bytes]")]
#[case::no_json("make: ***…[cut 9 bytes]", "    make: ***…[cut 9 bytes]")]
fn a_cut_text_is_shown_as_far_as_it_goes(#[case] text: &str, #[case] want: &str) {
    assert_eq!(Tree::of(text, true).shown, want);
    // The same text as a whole is no JSON, or says the same.
    assert!(!tree(text).shown.is_empty());
}

#[test]
fn a_text_that_ends_like_a_cut_but_is_whole_is_left_alone() {
    let text = r#"{"log":"x…[cut 9 bytes]"}"#;
    assert_eq!(tree(text).shown, "    log: x…[cut 9 bytes]");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 200, 30, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..30).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..30)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// All numbers of a value, in order.
fn numbers(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(map) => map.values().for_each(|item| numbers(item, found)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn every_value_is_either_shown_or_left_out(value in any_json()) {
        let mut wanted = Vec::new();
        numbers(&value, &mut wanted);
        let text = all(&tree(&value.to_string()));
        let is_part = |c: char| !(c.is_ascii_digit() || c == '-');
        for number in wanted {
            let found = text.split(is_part).any(|word| word == number);
            prop_assert!(found, "{} in {}", number, text);
        }
    }

    #[test]
    fn no_text_and_no_cut_of_json_fails(value in any_json(), at in 0_usize..400, noise in "\\PC{0,20}") {
        let json = value.to_string();
        let head = json.get(..at.min(json.len())).unwrap_or(&json);
        for text in [head.to_owned(), format!("{head}{noise}"), cut(&json, Bound::Bytes(at + 40)), noise] {
            for is_cut in [true, false] {
                let text = all(&Tree::of(&text, is_cut));
                let is_behind = |line: &str| line.is_empty() || line.starts_with("    ");
                prop_assert!(text.lines().all(is_behind), "{}", text);
            }
        }
    }
}
