//! The overview of a project: what there is, newest first, in one short text (contract 6.7).

use super::tokens::{grouped, rounded};
use super::{ContextObservation, ContextRows, ContextTotals, Zone};
use crate::bounds::units;
use crate::limits;
use crate::plain::one_line;
use crate::summary::SummaryDraft;

/// Renders an overview within its limit; the oldest rows go first.
#[must_use]
pub fn render_overview(
    project: &str,
    rows: &ContextRows,
    totals: &ContextTotals,
    zone: Zone,
) -> String {
    let head = head(project, totals);
    let newest = rows.summaries.iter().max_by_key(|s| (s.at, s.number));
    let tail = newest.map(|newest| summary(&newest.fields));
    let tail = tail.unwrap_or_default();
    let mut observations: Vec<_> = rows.observations.iter().collect();
    observations.sort_by_key(|row| std::cmp::Reverse((row.at, row.number)));
    let mut timeline = String::new();
    let mut left = limits::OVERVIEW_UNITS.saturating_sub(units(&head) + units(&tail));
    for observation in observations {
        let line = row(observation, zone);
        match left.checked_sub(units(&line)) {
            Some(rest) => left = rest,
            None => break,
        }
        timeline.push_str(&line);
    }
    if timeline.is_empty() {
        timeline.push_str("Nothing remembered here yet.\n");
    }
    let mut text = format!("{head}{timeline}{tail}");
    text.truncate(text.trim_end().len());
    text
}

fn head(project: &str, totals: &ContextTotals) -> String {
    let average = match totals.observations {
        0 => 0,
        count => rounded(totals.read_tokens, count),
    };
    format!(
        "# Project: {}\n# Memory: {} across {}\n# Token economics: {} total, {} avg per \
         observation\n\n## Timeline\n",
        one_line(project),
        counted(totals.observations, "observation"),
        counted(totals.sessions, "session"),
        grouped(totals.read_tokens),
        grouped(average)
    )
}

fn counted(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(count))
}

fn row(observation: &ContextObservation, zone: Zone) -> String {
    let title = one_line(&observation.title);
    let title = if title.is_empty() { "Untitled" } else { &title };
    let day = zone.clock(observation.at).format("%Y-%m-%d");
    let kind = observation.kind.name();
    format!("[{day}] #{} {title} [{kind}]\n", observation.number)
}

/// The newest summary; a field that is longer than the text has room for is shortened.
fn summary(fields: &SummaryDraft) -> String {
    const FIELD_BYTES: usize = 1_000;
    let lines = [
        ("Request", &fields.request),
        ("Investigated", &fields.investigated),
        ("Learned", &fields.learned),
        ("Completed", &fields.completed),
        ("Next Steps", &fields.next_steps),
        ("Notes", &fields.notes),
    ];
    let lines = lines.map(|(name, value)| {
        let value = crate::plain::one_line_within(value, FIELD_BYTES);
        (name, value)
    });
    let told = lines.iter().filter(|(_, value)| !value.is_empty());
    let told: String = told
        .map(|(name, value)| format!("- {name}: {value}\n"))
        .collect();
    format!("\n## Latest Summary\n{told}")
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use proptest::prelude::*;

    use super::super::ContextSummary;
    use super::*;
    use crate::observation::ObservationType;

    fn observation(
        number: i64,
        at: &str,
        kind: ObservationType,
        title: &str,
    ) -> ContextObservation {
        ContextObservation {
            number,
            at: at.parse().expect("a time"),
            kind,
            title: title.to_owned(),
            narrative: None,
            facts: None,
            read_tokens: 294,
            work_tokens: 0,
            author: "lin".to_owned(),
        }
    }

    #[test]
    fn the_sample_of_the_contract() {
        let at: DateTime<Utc> = "2026-05-27T08:00:00Z".parse().expect("a time");
        let rows = ContextRows {
            observations: vec![
                observation(
                    40,
                    "2026-05-26T08:00:00Z",
                    ObservationType::Feature,
                    "添加用户角色权限模块",
                ),
                observation(
                    42,
                    "2026-05-27T08:00:00Z",
                    ObservationType::Bugfix,
                    "修复认证中间件 session 泄漏",
                ),
                observation(
                    41,
                    "2026-05-27T07:00:00Z",
                    ObservationType::Refactor,
                    "重构 JWT token 刷新逻辑",
                ),
            ],
            summaries: vec![ContextSummary {
                number: 1,
                at,
                session_started_at: at,
                fields: SummaryDraft {
                    request: "修复用户报告的认证 bug".to_owned(),
                    learned: "异步回调中的清理逻辑必须在 finally 块中执行".to_owned(),
                    ..SummaryDraft::default()
                },
            }],
            last_reply: None,
        };
        let totals = ContextTotals {
            observations: 42,
            sessions: 8,
            read_tokens: 12_340,
        };
        insta::assert_snapshot!(render_overview("my-project", &rows, &totals, Zone::UTC), @r"
        # Project: my-project
        # Memory: 42 observations across 8 sessions
        # Token economics: 12,340 total, 294 avg per observation

        ## Timeline
        [2026-05-27] #42 修复认证中间件 session 泄漏 [bugfix]
        [2026-05-27] #41 重构 JWT token 刷新逻辑 [refactor]
        [2026-05-26] #40 添加用户角色权限模块 [feature]

        ## Latest Summary
        - Request: 修复用户报告的认证 bug
        - Learned: 异步回调中的清理逻辑必须在 finally 块中执行
        ");
    }

    proptest! {
        #[test]
        fn an_overview_keeps_its_limit_and_its_newest_row(
            titles in prop::collection::vec("\\PC{0,400}", 1..80),
        ) {
            let observations = (1..).zip(&titles).map(|(number, title)| {
                observation(number, "2026-05-27T08:00:00Z", ObservationType::Change, title)
            });
            let rows = ContextRows {
                observations: observations.collect(),
                ..ContextRows::default()
            };
            let text = render_overview("p", &rows, &ContextTotals::default(), Zone::UTC);
            prop_assert!(units(&text) <= limits::OVERVIEW_UNITS);
            let newest = format!("#{} ", titles.len());
            prop_assert!(text.contains(&newest));
        }
    }
}
