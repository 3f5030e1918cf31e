//! Tests of the text of work state: the samples of the contract, and the fitter for any lines.

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::{Held, Place, WorkEntry};
use super::*;
use crate::bounds::units;
use crate::context::Zone;
use crate::hlc::Hlc;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

fn now() -> DateTime<Utc> {
    "2026-10-12T07:45:00Z".parse().expect("a time")
}

/// Entries at milliseconds before now, in the order in which they were written.
fn state(entries: &[(&str, i64, Value)]) -> WorkState {
    let mut state = WorkState::default();
    for (number, (list, before, fields)) in (1..).zip(entries) {
        let task = fields["task"].as_str().map(str::to_owned);
        let Value::Object(fields) = fields.clone() else {
            unreachable!("tests give objects")
        };
        let ms = now().timestamp_millis() - before;
        let hlc = Hlc { ms, counter: 0 };
        let event = Uuid::from_u128(number);
        state.add(&WorkEntry {
            list: (*list).to_owned(),
            task,
            fields,
            place: Place { hlc, event },
            author: "lin".to_owned(),
        });
    }
    state
}

fn filled(template: &Template) -> String {
    template.fill(now(), Zone::UTC)
}

/// What stands below the rules.
fn open(state: &WorkState) -> String {
    let block = filled(&render_block(state, Room::units(limits_block())));
    block
        .strip_prefix(&format!("{RULES}\n\n"))
        .expect("the rules first")
        .to_owned()
}

const fn limits_block() -> usize {
    crate::limits::WORK_ANSWER_UNITS
}

#[test]
fn an_empty_block_takes_726_units() {
    let block = filled(&render_block(&WorkState::default(), Room::units(3_000)));
    assert_eq!((units(RULES), RULES.lines().count()), (707, 7));
    assert_eq!(units(&block), 726);
    assert!(block.ends_with("\n\nNothing open yet."));
}

#[test]
fn golden_one_of_the_contract() {
    let state = state(&[
        (
            "auth-refactor",
            MINUTE,
            json!({"task": "刷新令牌接口", "status": "doing"}),
        ),
        (
            "auth-refactor",
            MINUTE,
            json!({"task": "补集成测试", "status": "todo"}),
        ),
    ]);
    insta::assert_snapshot!(open(&state), @r"
    Still open:
    - auth-refactor
      - [doing] 刷新令牌接口, updated 1 minute ago
      - [todo] 补集成测试, updated 1 minute ago
    ");
}

#[test]
fn golden_two_of_the_contract() {
    let cleanup = 47 * 60 * MINUTE + 29 * MINUTE;
    let mut state = state(&[
        (
            "launch",
            3 * DAY,
            json!({"version": "2.1.0", "status": "blocked", "waiting_for": "sign-off"}),
        ),
        ("launch", 3 * DAY, json!({"task": "docs", "status": "todo"})),
        (
            "launch",
            3 * DAY,
            json!({"task": "dry run", "status": "todo", "runs": 3}),
        ),
        (
            "launch",
            5 * MINUTE,
            json!({"version": "2.1.1", "status": "active", "waiting_for": null}),
        ),
        (
            "launch",
            5 * MINUTE,
            json!({"task": "dry run", "status": "doing"}),
        ),
        ("cleanup", cleanup, json!({"status": "done"})),
        ("cleanup", cleanup, json!({"task": "drop old table"})),
    ]);
    state.lists[0].tasks[1].claim = Some(Held {
        holder: "lin#7c1e".to_owned(),
        until: now() + chrono::TimeDelta::minutes(55),
    });
    insta::assert_snapshot!(open(&state), @r"
    Still open:
    - launch: version=2.1.1, status=active, updated 5 minutes ago
      - [todo] docs, updated about 3 days ago
      - [doing] dry run (runs=3), held by lin#7c1e, updated 5 minutes ago
    - cleanup
      - drop old table, updated about 47 hours ago
    ");
}

#[test]
fn closed_ones_show_when_asked_for_and_each_line_names_its_writer() {
    let state = state(&[
        (
            "a",
            MINUTE,
            json!({"status": "done", "note": "x\n- [todo] forged"}),
        ),
        ("a", MINUTE, json!({"task": "t", "status": "dropped"})),
        ("b", MINUTE, json!({"n": null})),
    ]);
    assert_eq!(open(&state), NOTHING_OPEN);
    let which = Lines {
        closed: true,
        authors: true,
    };
    let read = |state: &WorkState, which| {
        filled(&render_read("my-app", state, which, Room::units(16_000)))
    };
    assert_eq!(read(&state, Lines::default()), "No open work in my-app.");
    let none = WorkState::default();
    assert_eq!(read(&none, which), "No work lists in my-app.");
    assert_eq!(
        read(&state, which),
        "- a: status=done, note=x - [todo] forged, updated 1 minute ago by lin\n  \
         - [dropped] t, updated 1 minute ago by lin"
    );
}

#[test]
fn a_merged_projects_list_names_it() {
    let mut state = state(&[("a", MINUTE, json!({"task": "t"}))]);
    state.lists[0].project = Some("old-app".to_owned());
    assert!(open(&state).contains("\n- a [old-app]\n"));
}

proptest! {
    /// Any tasks in any script within any room: the text fits, no line is cut, and the last line
    /// counts exactly what is missing.
    #[test]
    fn the_fitter_adds_whole_lines_and_counts_the_rest(
        tasks in prop::collection::vec("(\\PC|[修复池a]){1,300}", 0..60),
        room in 800..4_000_usize,
        unread in 0..3_usize,
    ) {
        let entries: Vec<_> = tasks.iter().enumerate()
            .map(|(n, task)| ("list", MINUTE, json!({"task": format!("{n}{task}"), "status": "todo"})))
            .collect();
        let mut state = state(&entries);
        state.unread_lines = unread;
        state.unread_open_lines = unread;
        let block = render_block(&state, Room::units(room));
        prop_assert!(block.size().units() <= room);
        let text = filled(&block);
        prop_assert!(units(&text) <= room);
        let all: Vec<String> = lines(&state.lists, Lines::default()).iter().map(filled).collect();
        let total = all.len() + unread;
        let (_, shown) = text.split_once("\n\n").expect("the rules first");
        if total == 0 {
            prop_assert_eq!(shown, NOTHING_OPEN);
            return Ok(());
        }
        let shown: Vec<&str> = shown.split('\n').skip(1).collect();
        let missing = match shown.last().and_then(|line| line.strip_prefix("- ...and ")) {
            Some(rest) => rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number"),
            None => 0,
        };
        let whole = shown.len() - usize::from(missing > 0);
        prop_assert_eq!(whole + missing, total);
        for (line, expected) in shown.iter().zip(&all[..whole]) {
            prop_assert_eq!(line, expected);
        }
    }
}
