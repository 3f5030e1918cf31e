//! The context index, to the character (contract 6.1).
//!
//! The title line holds the only part that changes with the hour; everything else is the body,
//! equal for equal rows, so that it can be kept.

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use super::{ContextObservation, ContextRows, ContextSummary, Options, Stats, Zone};
use crate::observation::ObservationType;
use crate::plain::{indented, one_line};

const MODE: &str = "Mode: Code Development (code)";
const NOTHING: &str = "Nothing remembered here yet.";
const GUIDE: &str = "Format: ID TIME TYPE TITLE\n\
                     Fetch details: get_observations([IDs]) | Search: mem-search skill";

/// The whole context of a project.
#[must_use]
pub fn render(
    project: &str,
    rows: &ContextRows,
    options: Options,
    now: DateTime<Utc>,
    zone: Zone,
) -> String {
    format!(
        "{}\n{}",
        render_title(project, now, zone),
        render_body(rows, options, zone)
    )
}

/// The first line: the project, and the hour by the reader's clock.
#[must_use]
pub fn render_title(project: &str, now: DateTime<Utc>, zone: Zone) -> String {
    let clock = zone.clock(now).format("%Y-%m-%d %-I:%M%P");
    format!(
        "# [{}] recent context, {clock} {}",
        one_line(project),
        zone.word(now)
    )
}

/// Everything below the title.
#[must_use]
pub fn render_body(rows: &ContextRows, options: Options, zone: Zone) -> String {
    if rows.observations.is_empty() && rows.summaries.is_empty() {
        return format!("{MODE}\n\n{NOTHING}");
    }
    let stats = Stats::of(&rows.observations);
    let mut text = format!("{MODE}\n\n{}\n{GUIDE}\n\n", legend());
    if options.shows_stats() {
        text.push_str(&stats.line(options));
        text.push_str("\n\n");
    }
    push_days(&lines(rows), options, zone, &mut text);
    if options.show_last_summary
        && let Some(summary) = last_summary(rows)
    {
        push_fields(summary, &mut text);
    }
    if let Some(footer) = stats.footer() {
        text.push('\n');
        text.push_str(&footer);
    }
    text.truncate(text.trim_end().len());
    text
}

/// A line of a day.
enum Line<'a> {
    Row(&'a ContextObservation),
    Session {
        summary: &'a ContextSummary,
        newest: bool,
    },
}

impl Line<'_> {
    /// When it stands: a row and the newest summary at their own time, an older summary where its
    /// session began.
    const fn at(&self) -> DateTime<Utc> {
        match self {
            Self::Row(row) => row.at,
            Self::Session { summary, newest } if *newest => summary.at,
            Self::Session { summary, .. } => summary.session_started_at,
        }
    }

    /// Its order within an instant: what opens a session, rows, what closes it.
    const fn rank(&self) -> (u8, i64) {
        match self {
            Self::Session { summary, newest } => (if *newest { 2 } else { 0 }, summary.number),
            Self::Row(row) => (1, row.number),
        }
    }
}

fn newest(rows: &ContextRows) -> Option<&ContextSummary> {
    rows.summaries
        .iter()
        .max_by_key(|summary| (summary.at, summary.number))
}

/// The newest summary, unless a row is newer.
fn last_summary(rows: &ContextRows) -> Option<&ContextSummary> {
    let newest_row = rows.observations.iter().map(|row| row.at).max();
    newest(rows).filter(|summary| newest_row.is_none_or(|at| summary.at >= at))
}

fn lines(rows: &ContextRows) -> Vec<Line<'_>> {
    let newest = newest(rows).map(|summary| summary.number);
    let sessions = rows.summaries.iter().map(|summary| Line::Session {
        summary,
        newest: newest == Some(summary.number),
    });
    let mut lines: Vec<Line<'_>> = rows
        .observations
        .iter()
        .map(Line::Row)
        .chain(sessions)
        .collect();
    lines.sort_by_key(|line| (line.at(), line.rank()));
    lines
}

fn push_days(lines: &[Line<'_>], options: Options, zone: Zone, text: &mut String) {
    let mut day: Option<NaiveDate> = None;
    let mut minute = None;
    for line in lines {
        let clock = zone.clock(line.at());
        if day != Some(clock.date_naive()) {
            let gap = if day.is_some() { "\n" } else { "" };
            write_line(
                text,
                format_args!("{gap}### {}", clock.format("%b %-d, %Y")),
            );
            day = Some(clock.date_naive());
            minute = None;
        }
        match line {
            Line::Row(row) => {
                // Minutes that pass, not what the clock shows: an hour may come twice.
                let now = Some(line.at().timestamp().div_euclid(60));
                let same = std::mem::replace(&mut minute, now) == now;
                let time = if same {
                    "\"".to_owned()
                } else {
                    row_time(&clock)
                };
                push_row(row, &time, options, text);
            }
            Line::Session { summary, .. } => {
                push_session(summary, &clock, text);
                minute = None;
            }
        }
    }
}

fn row_time(clock: &DateTime<Tz>) -> String {
    let mut time = clock.format("%-I:%M%P").to_string();
    time.pop();
    time
}

fn push_row(row: &ContextObservation, time: &str, options: Options, text: &mut String) {
    let title = or_else(one_line(&row.title), "Untitled");
    let mut line = format!("{} {time} {} {title}", row.number, row.kind.symbol());
    if options.show_read_tokens {
        write!(line, " ~{}t", row.read_tokens).expect("a String takes all");
    }
    if options.show_work_tokens {
        let symbol = row.kind.work_symbol();
        write!(line, " {symbol}{}t", row.work_tokens).expect("a String takes all");
    }
    if options.show_author {
        write!(line, " @{}", one_line(&row.author)).expect("a String takes all");
    }
    write_line(text, format_args!("{line}"));
}

fn push_session(summary: &ContextSummary, clock: &DateTime<Tz>, text: &mut String) {
    let request = or_else(one_line(&summary.fields.request), "Session started");
    let time = clock.format("%b %-d, %-I:%M %p");
    write_line(text, format_args!("S{} {request} ({time})", summary.number));
}

fn push_fields(summary: &ContextSummary, text: &mut String) {
    let fields = &summary.fields;
    for (name, value) in [
        ("Investigated", &fields.investigated),
        ("Learned", &fields.learned),
        ("Completed", &fields.completed),
        ("Next Steps", &fields.next_steps),
        ("Notes", &fields.notes),
    ] {
        let value = indented(value);
        if !value.trim().is_empty() {
            write_line(text, format_args!("**{name}**: {}\n", value.trim_end()));
        }
    }
}

fn legend() -> String {
    let types = ObservationType::ALL
        .iter()
        .fold(String::new(), |mut types, kind| {
            write!(types, " {}{}", kind.symbol(), kind.name()).expect("a String takes all");
            types
        });
    format!("Legend: 🎯session{types}")
}

fn or_else(text: String, instead: &str) -> String {
    if text.is_empty() {
        instead.to_owned()
    } else {
        text
    }
}

fn write_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes all");
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
