//! Tests of the budget: whatever there is to show, the limit holds, what always stays does, and
//! nothing is cut.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

use super::super::{ContextObservation, ContextSummary, FullField};
use super::*;
use crate::bounds::units;
use crate::observation::ObservationType;
use crate::summary::SummaryDraft;

fn now() -> DateTime<Utc> {
    "2026-10-12T07:45:00Z".parse().expect("a time")
}

fn observation(number: i64, title: &str, narrative: &str) -> ContextObservation {
    ContextObservation {
        number,
        at: now() - TimeDelta::minutes(1_000 - number),
        kind: ObservationType::Bugfix,
        title: title.to_owned(),
        narrative: Some(narrative.to_owned()),
        facts: None,
        read_tokens: 10,
        work_tokens: 1_000,
        author: "lin".to_owned(),
    }
}

fn summary(number: i64, text: &str) -> ContextSummary {
    ContextSummary {
        number,
        at: now(),
        session_started_at: now() - TimeDelta::minutes(500 - number),
        fields: SummaryDraft {
            request: text.chars().take(200).collect(),
            learned: text.to_owned(),
            ..SummaryDraft::default()
        },
    }
}

fn rows(titles: &[String], texts: &[String], narrative: &str) -> ContextRows {
    let titles = (1..).zip(titles);
    let texts = (1..).zip(texts);
    ContextRows {
        observations: titles
            .map(|(n, title)| observation(n, title, narrative))
            .collect(),
        summaries: texts.map(|(n, text)| summary(n, text)).collect(),
        last_reply: Some("done".to_owned()),
    }
}

fn text(rows: &ContextRows, options: Options, room: usize) -> String {
    let index = render_index("my-app", rows, options, Zone::UTC, Room::units(room));
    index.fill(now(), Zone::UTC)
}

#[test]
fn work_state_and_the_index_share_the_limit() {
    let budget = |limit, reserve| Budget {
        limit: Room::units(limit),
        reserve,
    };
    // The wrapper alone takes 33 units and the line between the parts 2.
    assert_eq!(budget(10_000, 33).work_state().units, 2_965);
    assert_eq!(budget(10_000, 33).index(Size::ascii(2_965)).units, 7_000);
    assert_eq!(budget(4_000, 33).work_state().units, 1_165);
    assert_eq!(budget(4_000, 700).work_state().units, 800);
}

#[test]
fn blocks_go_in_their_order() {
    let titles: Vec<String> = (0..8).map(|_| "t".repeat(100)).collect();
    let texts: Vec<String> = (0..4).map(|_| "s".repeat(100)).collect();
    let rows = rows(&titles, &texts, &"n".repeat(300));
    let options = Options {
        full_count: 2,
        full_field: FullField::Narrative,
        ..Options::default()
    };
    let shows = |text: &str| {
        (
            text.contains("nnn"),
            text.contains("**Learned**"),
            text.contains("**Previously**"),
            text.matches("\nS").count() - text.matches("\nStats").count(),
            text.matches("ttt\n").count() + text.matches("ttt**").count(),
        )
    };
    let mut seen = Vec::new();
    for room in (400..3_000).rev() {
        let shown = shows(&text(&rows, options, room));
        if seen.last() != Some(&shown) {
            seen.push(shown);
        }
    }
    let mut expected = vec![
        (true, true, true, 4, 8),
        (false, true, true, 4, 8),
        (false, false, true, 4, 8),
        (false, false, false, 4, 8),
        (false, false, false, 2, 8),
        (false, false, false, 1, 8),
    ];
    expected.extend((1..=8).rev().map(|rows| (false, false, false, 0, rows)));
    assert_eq!(seen, expected);
}

#[test]
fn c002_chinese_titles_are_counted_in_characters() {
    let titles: Vec<String> = (0..45).map(|_| "修".repeat(200)).collect();
    let rows = rows(&titles, &[], "");
    let budget = Budget {
        limit: Room::units(10_000),
        reserve: 33,
    };
    // Nothing else is there: the work state says so in 726 units.
    let room = budget.index(Size::ascii(726));
    let text = text(&rows, Options::default(), room.units);
    assert!(text.matches(&"修".repeat(200)).count() >= 40);
    assert!(units(&text) + 726 + 35 <= 10_000);
}

#[test]
fn a_host_that_counts_tokens_is_kept_as_well() {
    let titles: Vec<String> = (0..45).map(|_| "修".repeat(200)).collect();
    let room = Room {
        units: 7_000,
        tokens: 1_500,
    };
    let index = render_index(
        "p",
        &rows(&titles, &[], ""),
        Options::default(),
        Zone::UTC,
        room,
    );
    assert!(index.size().tokens() <= 1_500);
}

proptest! {
    /// Any mixture of scripts and sizes, in any room that a client may ask for.
    #[test]
    fn the_index_keeps_its_room_its_ends_and_its_newest_row(
        titles in prop::collection::vec("(\\PC|[修复池a🎯]){0,200}", 1..60),
        texts in prop::collection::vec("(\\PC|[修复池a]){0,400}", 0..12),
        narrative in "\\PC{0,600}",
        full_count in 0..4_u32,
        room in 1_500..8_000_usize,
    ) {
        let rows = rows(&titles, &texts, &narrative);
        let options = Options { full_count, ..Options::default() };
        let index = render_index("my-app", &rows, options, Zone::UTC, Room::units(room));
        prop_assert!(index.size().units() <= room);
        let text = index.fill(now(), Zone::UTC);
        prop_assert!(units(&text) <= room);
        prop_assert!(text.starts_with("# [my-app] recent context, 2026-10-12 7:45am UTC\n"));
        prop_assert!(text.ends_with("or mem-search skill."));
        // Each row that is there is whole: without trimming it reads the same.
        let whole = render_index("my-app", &rows, Options { full_count: 0, ..options }, Zone::UTC,
            Room::ENDLESS).fill(now(), Zone::UTC);
        let lines: Vec<&str> = whole.lines().collect();
        let is_row = |line: &&str| line.split(' ').next().is_some_and(|id| id.parse::<u32>().is_ok());
        let shown: Vec<&str> = text.lines().filter(is_row).collect();
        if full_count == 0 {
            prop_assert!(!shown.is_empty());
            let oldest = titles.len() - shown.len() + 1;
            let opens = shown[0].split(' ').next().map(str::to_owned);
            prop_assert_eq!(opens, Some(oldest.to_string()));
            for row in &shown[1..] {
                prop_assert!(lines.contains(row), "{row:?}");
            }
        }
    }
}
