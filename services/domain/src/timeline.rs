//! Timeline: what happened around a record, as one text (contract 9.3).

use chrono::NaiveDate;

use crate::context::Zone;
use crate::context::table::{COLUMNS, cell, day_line, time_below};
use crate::ids::{RecordId, RecordKind};
use crate::limits;
use crate::plain::one_line;
use crate::record::Row;
use crate::search::title;

/// Marks the row that was asked for.
const ANCHOR: &str = " ◀";
/// Stands for the cost of what has none that is known.
pub(crate) const NO_COST: &str = "-";

/// A row of a timeline, with what reading its record costs.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineRow {
    /// What every list shows of it.
    pub row: Row,
    /// What reading an observation costs, in tokens.
    pub read_tokens: u32,
}

/// Renders a timeline whose rows stand in order. What is too much for one answer goes from its
/// ends, the longer one first, and the first line counts what is left.
#[must_use]
pub fn render_timeline(anchor: RecordId, rows: &[TimelineRow], zone: Zone) -> String {
    let mut rows = rows;
    loop {
        let text = render(anchor, rows, zone);
        let (before, after) = around(anchor, rows);
        if text.len() <= limits::TIMELINE_BYTES || rows.len() < 2 {
            return text;
        }
        rows = match before > after {
            true => &rows[1..],
            false => &rows[..rows.len() - 1],
        };
    }
}

/// The answer to words that match nothing.
#[must_use]
pub fn render_no_anchor(query: &str) -> String {
    format!("No results for \"{}\".", one_line(query))
}

fn render(anchor: RecordId, rows: &[TimelineRow], zone: Zone) -> String {
    let (before, after) = around(anchor, rows);
    let mut text = format!("Timeline around #{anchor}: {before} before, {after} after\n");
    let (mut day, mut minute): (Option<NaiveDate>, Option<i64>) = (None, None);
    for TimelineRow { row, read_tokens } in rows {
        let clock = zone.clock(row.at).date_naive();
        if day.replace(clock) != Some(clock) {
            text.push_str(&format!("\n{}\n\n{COLUMNS}", day_line(clock)));
            minute = None;
        }
        let time = time_below(&mut minute, row.at, zone);
        let mark = if row.id == anchor { ANCHOR } else { "" };
        let symbol = symbol(row);
        let cost = match row.id.kind {
            RecordKind::Observation => format!("~{read_tokens}"),
            _ => NO_COST.to_owned(),
        };
        let title = cell(&title(&row.title));
        let id = row.id;
        text.push_str(&format!(
            "| #{id} | {time} | {symbol} | {title}{mark} | {cost} |\n"
        ));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The sign of a record: of its type, or of its kind if that has no types.
pub(crate) fn symbol(row: &Row) -> String {
    match (row.id.kind, row.kind) {
        (RecordKind::Summary, _) => "🎯".to_owned(),
        (RecordKind::Prompt, _) => "💬".to_owned(),
        (_, kind) => kind.map_or_else(String::new, |kind| kind.symbol().to_string()),
    }
}

/// How many rows stand before the anchor, and how many after it.
fn around(anchor: RecordId, rows: &[TimelineRow]) -> (usize, usize) {
    let place = rows.iter().position(|shown| shown.row.id == anchor);
    let before = place.unwrap_or(rows.len());
    (before, rows.len().saturating_sub(before + 1))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::ProjectId;
    use crate::observation::ObservationType;
    use crate::project::Project;

    fn row(id: &str, at: &str, title: &str) -> TimelineRow {
        let id: RecordId = id.parse().expect("an id");
        TimelineRow {
            row: Row {
                id,
                title: title.to_owned(),
                kind: (id.kind == RecordKind::Observation).then_some(ObservationType::Bugfix),
                project: Project {
                    id: ProjectId {
                        key: 1,
                        uuid: Uuid::nil(),
                    },
                    key: "name:my-app".to_owned(),
                    name: "my-app".to_owned(),
                },
                author: "lin".to_owned(),
                at: at.parse().expect("a time"),
            },
            read_tokens: 14,
        }
    }

    #[test]
    fn rows_stand_by_day_around_their_anchor() {
        let rows = [
            row("P3", "2026-10-09T15:59:00Z", "why 5xx?"),
            row("41", "2026-10-10T08:45:00Z", "修复连接池泄漏导致的 5xx"),
            row("42", "2026-10-10T08:45:30Z", "a | b\n# c"),
            row("S7", "2026-10-10T08:46:00Z", ""),
        ];
        let zone = Zone::named("Asia/Shanghai");
        insta::assert_snapshot!(render_timeline(rows[1].row.id, &rows, zone), @r"
        Timeline around #41: 1 before, 2 after

        ### Oct 9, 2026

        | ID | Time | T | Title | Read |
        |---|---|---|---|---|
        | #P3 | 11:59 PM | 💬 | why 5xx? | - |

        ### Oct 10, 2026

        | ID | Time | T | Title | Read |
        |---|---|---|---|---|
        | #41 | 4:45 PM | ● | 修复连接池泄漏导致的 5xx ◀ | ~14 |
        | #42 | ″ | ● | a \| b # c | ~14 |
        | #S7 | 4:46 PM | 🎯 | Untitled | - |
        ");
    }

    #[test]
    fn what_is_too_much_goes_from_the_ends() {
        let title = "|".repeat(400);
        let rows: Vec<_> = (1..=101)
            .map(|n| row(&n.to_string(), "2026-10-10T08:45:00Z", &title))
            .collect();
        let anchor = rows[50].row.id;
        let text = render_timeline(anchor, &rows, Zone::UTC);
        assert!(text.len() <= limits::TIMELINE_BYTES);
        let shown = text.lines().filter(|line| line.starts_with("| #")).count();
        assert!(shown > 50, "{shown}");
        let before = shown / 2;
        let head = format!(
            "Timeline around #51: {before} before, {} after\n",
            shown - 1 - before
        );
        assert_eq!(&text[..head.len()], head);
        assert!(text.contains(" ◀ |"));
    }

    #[test]
    fn nothing_found_is_said_on_one_line() {
        assert_eq!(render_no_anchor("a\nb"), "No results for \"a b\".");
    }
}
