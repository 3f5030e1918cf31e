//! Tests of the state machine: each check alone, and all of them in their order.

use chrono::TimeDelta;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::super::stored::tests::{options, stored};
use super::*;

const CURSOR: &str = "ms_000000000000000000000001";

fn parse(arguments: Value) -> Result<Call, Rejection> {
    Call::parse(&serde_json::from_value(arguments).expect("known arguments"))
}

fn id(text: &str) -> RecordId {
    text.parse().expect("an id")
}

fn choosing(selected: Option<&[&str]>) -> Continue {
    Continue {
        cursor: CURSOR.parse().expect("a cursor"),
        selected: selected.map(|ids| ids.iter().map(|text| id(text)).collect()),
        conditions: Conditions::default(),
    }
}

fn in_time() -> DateTime<Utc> {
    stored().expires_at - TimeDelta::milliseconds(1)
}

#[test]
fn a_query_starts_a_search_with_the_defaults() {
    assert_eq!(
        parse(json!({"query": " pool leak ", "project": " "})),
        Ok(Call::Start(options("pool leak")))
    );
    assert_eq!(
        parse(json!({"query": "x", "mode": "auto"})),
        Ok(Call::Auto(options("x")))
    );
}

#[test]
fn c050_a_continued_call_takes_its_lists_and_numbers_as_text() {
    let typed = parse(json!({"continuation": CURSOR, "selectedIds": [41, 42], "limit": 5}));
    let loose =
        parse(json!({"continuation": CURSOR, "selectedIds": "[\"41\",\"42\"]", "limit": "5"}));
    assert!(typed.is_ok());
    assert_eq!(loose, typed);
}

#[rstest]
#[case(json!({}), "query: 1 to 500 UTF-16 code units and at most 1,024 bytes.")]
#[case(json!({"query": "x".repeat(501)}), "query: 1 to 500 UTF-16 code units and at most 1,024 bytes.")]
#[case(json!({"query": "修".repeat(342)}), "query: 1 to 500 UTF-16 code units and at most 1,024 bytes.")]
#[case(json!({"query": "x", "mode": "fast"}), "mode: guided or auto.")]
#[case(json!({"query": "x", "project": "p".repeat(257)}), "project: at most 256 bytes.")]
#[case(json!({"query": "x", "maxDetails": 6}), "maxDetails: a whole number from 1 to 5.")]
#[case(json!({"query": "x", "depthAfter": 4}), "depthAfter: a whole number from 0 to 3.")]
#[case(json!({"query": "x", "selectedIds": []}), "selectedIds: only with a continuation.")]
#[case(json!({"continuation": CURSOR, "mode": "auto"}), "mode: guided with a continuation.")]
#[case(json!({"continuation": "ms_x", "limit": 0}), "limit: a whole number from 1 to 20.")]
#[case(json!({"continuation": "ms_x"}), "This continuation is unknown; start again with query.")]
fn shape_is_checked_first_and_the_cursor_next(#[case] arguments: Value, #[case] detail: &str) {
    assert_eq!(parse(arguments).expect_err("refused").to_string(), detail);
}

#[test]
fn c040_the_same_call_gives_the_same_plan_each_time() {
    let stored = Stored::from_json(&stored().to_json()).expect("reads back");
    let call = choosing(Some(&["S7", "41"]));
    let plan = stored.advance(&call, "t/p/*", in_time());
    assert_eq!(
        plan,
        Ok(Plan::Timeline {
            anchors: vec![stored.shown[1], stored.shown[0]],
            before: 2,
            after: 2
        })
    );
    assert_eq!(stored.advance(&call, "t/p/*", in_time()), plan);
}

#[test]
fn prompts_are_context_in_step_2_and_refused_in_step_3() {
    let mut stored = stored();
    let call = choosing(Some(&["P3"]));
    assert!(stored.advance(&call, "t/p/*", in_time()).is_ok());
    stored.step = Step::Details;
    let refused = stored
        .advance(&call, "t/p/*", in_time())
        .expect_err("refused");
    assert_eq!(refused.to_string(), "P3 is context only.");
    let call = choosing(Some(&["P4"]));
    let refused = stored
        .advance(&call, "t/p/*", in_time())
        .expect_err("refused");
    assert_eq!(refused.to_string(), "P4 was not shown by the step before.");
}

#[test]
fn an_empty_selection_stops_and_a_missing_one_is_asked_for() {
    assert_eq!(
        stored().advance(&choosing(Some(&[])), "t/p/*", in_time()),
        Ok(Plan::Stop)
    );
    let missing = stored().advance(&choosing(None), "t/p/*", in_time());
    assert_eq!(missing, Err(Rejection::SelectionRequired { max: 3 }));
    let many = stored().advance(&choosing(Some(&["1", "2", "3", "4"])), "t/p/*", in_time());
    assert_eq!(many, Err(Rejection::SelectionRequired { max: 3 }));
}

#[test]
fn conditions_sent_again_are_compared_after_normalisation() {
    let mut stored = stored();
    stored.options.project = Some("My-App".to_owned());
    let mut call = choosing(Some(&["41"]));
    call.conditions.query = Some("pool leak".to_owned());
    call.conditions.project = Some("my-app".to_owned());
    call.conditions.limit = Some(20);
    assert!(stored.advance(&call, "t/p/*", in_time()).is_ok());
    call.conditions.limit = Some(19);
    let refused = stored
        .advance(&call, "t/p/*", in_time())
        .expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "limit differs from the search's; leave it out or start again."
    );
}

#[test]
fn every_refusal_has_its_code_and_detail() {
    let refusals = [
        Rejection::invalid_input("limit", "a whole number from 1 to 20"),
        Rejection::SelectionRequired { max: 3 },
        Rejection::NotDisclosed {
            id: "44".to_owned(),
        },
        Rejection::ContextOnly {
            id: "P3".to_owned(),
        },
        Rejection::InvalidContinuation,
        Rejection::ExpiredContinuation,
        Rejection::ScopeChanged { argument: "limit" },
        Rejection::ResponseTooLarge,
    ];
    let lines: Vec<String> = refusals
        .iter()
        .map(|r| format!("{} - {r}", r.code()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    invalid_input - limit: a whole number from 1 to 20.
    selection_required - Give selectedIds: 1 to 3 ids of the step before, or [] to stop.
    invalid_selection - 44 was not shown by the step before.
    invalid_selection - P3 is context only.
    invalid_continuation - This continuation is unknown; start again with query.
    expired_continuation - This search is older than 15 minutes; start again with query.
    scope_changed - limit differs from the search's; leave it out or start again.
    response_too_large - The result does not fit; ask for fewer records.
    ");
}

fn any_id() -> impl Strategy<Value = RecordId> {
    let kind = prop_oneof![
        Just(RecordKind::Observation),
        Just(RecordKind::Summary),
        Just(RecordKind::Prompt)
    ];
    (kind, 1_i64..6).prop_map(|(kind, number)| RecordId { kind, number })
}

proptest! {
    #[test]
    fn no_id_outside_the_disclosure_ever_passes(
        shown in prop::collection::vec(any_id(), 0..8),
        chosen in prop::collection::vec(any_id(), 1..4),
        details: bool,
    ) {
        let mut stored = stored();
        stored.step = if details { Step::Details } else { Step::Timeline };
        stored.shown = shown.iter().map(|&id| Shown { id, project: uuid::Uuid::nil() }).collect();
        let call = Continue { selected: Some(chosen.clone()), ..choosing(None) };
        let allowed = chosen.iter().all(|id| shown.contains(id))
            && !(details && chosen.iter().any(|id| id.kind == RecordKind::Prompt));
        match stored.advance(&call, "t/p/*", in_time()) {
            Ok(Plan::Timeline { anchors: rows, .. } | Plan::Details { records: rows }) => {
                prop_assert!(allowed);
                prop_assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), chosen);
            }
            Ok(Plan::Stop) => prop_assert!(false, "an id was chosen"),
            Err(_) => prop_assert!(!allowed),
        }
    }

    /// Of several faults in one call the earliest check of the contract's list answers.
    #[test]
    fn the_earliest_check_answers(
        other_scope: bool, late: bool, changed: bool, count: bool, undisclosed: bool
    ) {
        let ids: &[&str] = match (count, undisclosed) {
            (true, _) => &["44", "45", "46", "47"],
            (false, true) => &["44"],
            (false, false) => &["41"],
        };
        let mut call = choosing(Some(ids));
        call.conditions.depth_before = changed.then_some(0);
        let scope = if other_scope { "t/q/*" } else { "t/p/*" };
        let now = if late { stored().expires_at } else { in_time() };
        let faults = [
            (other_scope, "invalid_continuation"),
            (late, "expired_continuation"),
            (changed, "scope_changed"),
            (count, "selection_required"),
            (undisclosed, "invalid_selection"),
        ];
        let first = faults.into_iter().find_map(|(fault, code)| fault.then_some(code));
        let answer = stored().advance(&call, scope, now);
        prop_assert_eq!(answer.err().map(|r| r.code()), first);
    }
}
