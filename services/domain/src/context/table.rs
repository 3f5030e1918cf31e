//! Rows grouped by day and file, as a table: for notes that stand in a folder (contract 6.7).

use chrono::{DateTime, NaiveDate, Utc};

use super::{TableRow, Zone};
use crate::plain::one_line;

/// The head of each table.
pub(crate) const COLUMNS: &str = "| ID | Time | T | Title | Read |\n|---|---|---|---|---|\n";
/// The group of rows that name no file.
const NO_FILE: &str = "General";
/// Stands for the time of the row above.
const SAME: &str = "\u{2033}";

/// Renders the table of a project, newest first. Groups stand in order of first appearance.
#[must_use]
pub fn render_table(project: &str, folder: Option<&str>, rows: &[TableRow], zone: Zone) -> String {
    let mut rows: Vec<&TableRow> = rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.observation.at, row.observation.number)));
    let folder = folder.map(|folder| format!(" {}", one_line(folder)));
    let mut text = format!(
        "# [{}]{} by file\n",
        one_line(project),
        folder.unwrap_or_default()
    );
    if rows.is_empty() {
        text.push_str("\nNothing remembered here yet.");
        return text;
    }
    for (day, rows) in grouped(rows, |row| zone.clock(row.observation.at).date_naive()) {
        push_day(day, rows, zone, &mut text);
    }
    text.truncate(text.trim_end().len());
    text
}

fn push_day(day: NaiveDate, rows: Vec<&TableRow>, zone: Zone, text: &mut String) {
    text.push_str(&format!("\n{}\n", day_line(day)));
    for (file, rows) in grouped(rows, |row| row.file.as_deref()) {
        text.push_str(&format!("\n{}\n{COLUMNS}", file_line(file)));
        let mut above = None;
        for row in rows {
            let time = time_below(&mut above, row.observation.at, zone);
            push_row(row, &time, text);
        }
    }
}

/// The heading of a day.
pub(crate) fn day_line(day: NaiveDate) -> String {
    format!("### {}", day.format("%b %-d, %Y"))
}

/// The heading of a file, or of what names none.
pub(crate) fn file_line(file: Option<&str>) -> String {
    format!("**{}**", file.map_or_else(|| NO_FILE.to_owned(), one_line))
}

/// The time of a row; a mark if the row above it is of the same minute.
pub(crate) fn time_below(above: &mut Option<i64>, at: DateTime<Utc>, zone: Zone) -> String {
    let minute = at.timestamp().div_euclid(60);
    match above.replace(minute) == Some(minute) {
        true => SAME.to_owned(),
        false => zone.clock(at).format("%-I:%M %p").to_string(),
    }
}

fn push_row(row: &TableRow, time: &str, text: &mut String) {
    let observation = &row.observation;
    let title = cell(&observation.title);
    let title = if title.is_empty() { "Untitled" } else { &title };
    text.push_str(&format!(
        "| #{} | {time} | {} | {title} | ~{} |\n",
        observation.number,
        observation.kind.symbol(),
        observation.read_tokens
    ));
}

/// A text in a cell: a bar would end it, and so would one behind an escaped backslash.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = String::new();
    let mut slashes = 0;
    for c in one_line(text).chars() {
        if c == '|' {
            cell.push_str(&"\\".repeat(slashes + 1));
        }
        slashes = if c == '\\' { slashes + 1 } else { 0 };
        cell.push(c);
    }
    cell
}

/// Items by a key of theirs, keys in order of first appearance.
pub(crate) fn grouped<T: Copy, K: PartialEq>(
    rows: Vec<T>,
    key: impl Fn(T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for row in rows {
        let wanted = key(row);
        match groups.iter_mut().find(|(key, _)| *key == wanted) {
            Some((_, group)) => group.push(row),
            None => groups.push((wanted, vec![row])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::ContextObservation;
    use super::*;
    use crate::observation::ObservationType;

    fn row(number: i64, at: &str, title: &str, file: Option<&str>) -> TableRow {
        TableRow {
            observation: ContextObservation {
                number,
                at: at.parse().expect("a time"),
                kind: ObservationType::Bugfix,
                title: title.to_owned(),
                narrative: None,
                facts: None,
                read_tokens: 14,
                work_tokens: 0,
                author: "lin".to_owned(),
            },
            file: file.map(str::to_owned),
        }
    }

    #[test]
    fn no_title_leaves_its_cell() {
        assert_eq!(cell("a | b"), r"a \| b");
        assert_eq!(cell(r"x \| y"), r"x \\\| y");
        assert_eq!(cell(r"C:\temp"), r"C:\temp");
    }

    #[test]
    fn rows_stand_by_day_and_file() {
        let rows = [
            row(1, "2026-10-09T08:00:00Z", "older", None),
            row(2, "2026-10-10T08:44:00Z", "a | b", Some("src/db/pool.ts")),
            row(3, "2026-10-10T08:45:00Z", "", Some("src/db/pool.ts")),
            row(
                4,
                "2026-10-10T08:45:30Z",
                "same minute",
                Some("src/db/pool.ts"),
            ),
            row(5, "2026-10-10T08:45:40Z", "elsewhere", Some("README.md")),
        ];
        let text = render_table("my-app", Some("src"), &rows, Zone::named("Asia/Shanghai"));
        insta::assert_snapshot!(text, @r"
        # [my-app] src by file

        ### Oct 10, 2026

        **README.md**
        | ID | Time | T | Title | Read |
        |---|---|---|---|---|
        | #5 | 4:45 PM | ● | elsewhere | ~14 |

        **src/db/pool.ts**
        | ID | Time | T | Title | Read |
        |---|---|---|---|---|
        | #4 | 4:45 PM | ● | same minute | ~14 |
        | #3 | ″ | ● | Untitled | ~14 |
        | #2 | 4:44 PM | ● | a \| b | ~14 |

        ### Oct 9, 2026

        **General**
        | ID | Time | T | Title | Read |
        |---|---|---|---|---|
        | #1 | 4:00 PM | ● | older | ~14 |
        ");
    }
}
