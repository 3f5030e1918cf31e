//! The context index, to the character (contract 6.1).
//!
//! How much of it is printed says a plan, which `budget` finds by measuring.

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use super::{ContextObservation, ContextRows, ContextSummary, FullField, Options, Stats, Zone};
use crate::observation::ObservationType;
use crate::plain::{indented, one_line};
use crate::template::Template;

const MODE: &str = "Mode: Code Development (code)";
const NOTHING: &str = "Nothing remembered here yet.";
const GUIDE: &str = "Format: ID TIME TYPE TITLE\n\
                     Fetch details: get_observations([IDs]) | Search: mem-search skill";

/// What of a context is left after trimming. Fields stand in the order in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Rows in full.
    pub full: bool,
    /// The newest summary's fields.
    pub last_summary: bool,
    /// The reader's last reply.
    pub last_reply: bool,
    /// The newest summaries, at most.
    pub summaries: usize,
    /// The newest observations, at most.
    pub observations: usize,
}

impl Plan {
    /// Everything that the rows and options have.
    pub fn all(rows: &ContextRows) -> Self {
        Self {
            full: true,
            last_summary: true,
            last_reply: true,
            summaries: rows.summaries.len(),
            observations: rows.observations.len(),
        }
    }
}

/// The index of a project, as far as a plan goes.
pub(super) fn render_plan(
    project: &str,
    rows: &ContextRows,
    options: Options,
    zone: Zone,
    plan: Plan,
) -> Template {
    let mut index = Template::text(format!("# [{}] recent context, ", one_line(project)));
    index.push_now();
    index.push("\n");
    index.push(&render_body(rows, options, zone, plan));
    index
}

/// Everything below the title.
fn render_body(rows: &ContextRows, options: Options, zone: Zone, plan: Plan) -> String {
    let chosen = Chosen::of(rows, plan);
    if chosen.observations.is_empty() && chosen.summaries.is_empty() {
        return format!("{MODE}\n\n{NOTHING}");
    }
    let stats = Stats::of(&chosen.observations);
    let mut text = format!("{MODE}\n\n{}\n{GUIDE}\n\n", legend());
    if options.shows_stats() {
        text.push_str(&stats.line(options));
        text.push_str("\n\n");
    }
    let full = if plan.full { options.full_count } else { 0 };
    push_days(&chosen, options, full, zone, &mut text);
    if options.show_last_summary
        && plan.last_summary
        && let Some(summary) = chosen.last_summary()
    {
        push_fields(summary, &mut text);
    }
    if let Some(reply) = rows.last_reply.as_deref().filter(|_| plan.last_reply) {
        push_last_reply(reply, &mut text);
    }
    if let Some(footer) = stats.footer() {
        text.push('\n');
        text.push_str(&footer);
    }
    text.truncate(text.trim_end().len());
    text
}

/// The newest rows that a plan leaves, newest first.
struct Chosen<'a> {
    observations: Vec<&'a ContextObservation>,
    summaries: Vec<&'a ContextSummary>,
}

impl<'a> Chosen<'a> {
    fn of(rows: &'a ContextRows, plan: Plan) -> Self {
        let mut observations: Vec<_> = rows.observations.iter().collect();
        observations.sort_by_key(|row| std::cmp::Reverse((row.at, row.number)));
        observations.truncate(plan.observations);
        let mut summaries: Vec<_> = rows.summaries.iter().collect();
        summaries.sort_by_key(|summary| std::cmp::Reverse((summary.at, summary.number)));
        summaries.truncate(plan.summaries);
        Self {
            observations,
            summaries,
        }
    }

    /// The newest summary, unless a row is newer.
    fn last_summary(&self) -> Option<&'a ContextSummary> {
        let newest_row = self.observations.first().map(|row| row.at);
        let newest = self.summaries.first().copied();
        newest.filter(|summary| newest_row.is_none_or(|at| summary.at >= at))
    }

    /// Rows and sessions in the order in which they are printed; the newest `full` rows in full.
    fn lines(&self, full: u32) -> Vec<Line<'a>> {
        let rows = (0..).zip(&self.observations);
        let rows = rows.map(|(nth, row): (u32, _)| Line::Row {
            row,
            full: nth < full,
        });
        let sessions = (0..).zip(&self.summaries);
        let sessions = sessions.map(|(nth, summary): (u32, _)| Line::Session {
            summary,
            newest: nth == 0,
        });
        let mut lines: Vec<_> = rows.chain(sessions).collect();
        lines.sort_by_key(|line| (line.at(), line.rank()));
        lines
    }
}

/// A line of a day.
enum Line<'a> {
    Row {
        row: &'a ContextObservation,
        full: bool,
    },
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
            Self::Row { row, .. } => row.at,
            Self::Session { summary, newest } if *newest => summary.at,
            Self::Session { summary, .. } => summary.session_started_at,
        }
    }

    /// Its order within an instant: what opens a session, rows, what closes it.
    const fn rank(&self) -> (u8, i64) {
        match self {
            Self::Session { summary, newest } => (if *newest { 2 } else { 0 }, summary.number),
            Self::Row { row, .. } => (1, row.number),
        }
    }
}

fn push_days(chosen: &Chosen<'_>, options: Options, full: u32, zone: Zone, text: &mut String) {
    let mut day: Option<NaiveDate> = None;
    let mut minute = None;
    for line in chosen.lines(full) {
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
            Line::Row { row, full } => {
                // Minutes that pass, not what the clock shows: an hour may come twice.
                let now = Some(line.at().timestamp().div_euclid(60));
                let same = std::mem::replace(&mut minute, now) == now;
                let time = if same {
                    "\"".to_owned()
                } else {
                    row_time(&clock)
                };
                push_row(row, &time, options, full, text);
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

fn push_row(row: &ContextObservation, time: &str, options: Options, full: bool, text: &mut String) {
    let title = or_else(one_line(&row.title), "Untitled");
    let strong = if full { "**" } else { "" };
    let mut line = format!(
        "{strong}{}{strong} {time} {} {strong}{title}{strong}",
        row.number,
        row.kind.symbol()
    );
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
    if full {
        push_body(row, options.full_field, text);
    }
}

/// The narrative or the facts of a row in full, and a blank line.
fn push_body(row: &ContextObservation, field: FullField, text: &mut String) {
    let body = match field {
        FullField::Narrative => indented(row.narrative.as_deref().unwrap_or_default()),
        FullField::Facts => {
            let facts = row.facts.iter().flatten();
            facts
                .map(|fact| one_line(fact))
                .collect::<Vec<_>>()
                .join("\n    ")
        }
    };
    if !body.trim().is_empty() {
        let margin = if passes_for_structure(&body) {
            "    "
        } else {
            ""
        };
        write_line(text, format_args!("{margin}{}", body.trim_end()));
    }
    text.push('\n');
}

/// Whether a text at the margin could be taken for a heading, a list or a row of the index.
fn passes_for_structure(body: &str) -> bool {
    let mut characters = body.chars();
    let first = characters.next();
    let is_id =
        matches!(first, Some('S' | 'P')) && characters.next().is_some_and(|c| c.is_ascii_digit());
    is_id || !first.is_some_and(char::is_alphabetic)
}

/// What the reader's own previous session ended with.
fn push_last_reply(reply: &str, text: &mut String) {
    let gap = if text.ends_with("\n\n") { "" } else { "\n" };
    let reply = indented(reply);
    write_line(
        text,
        format_args!("{gap}---\n\n**Previously**\n\nA: {}", reply.trim_end()),
    );
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
