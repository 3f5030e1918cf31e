//! Records whole, as text: in step 3 of a search and by id, in parts where they are long
//! (contract 7.6, 9.3). Only known fields are printed.

use super::View;
use super::render::{DATA_SENTENCE, title};
use crate::bounds::head_bytes;
use crate::ids::{RecordId, RecordKind};
use crate::limits;
use crate::plain::{indented, one_line};
use crate::record::{ObservationBody, Record, RecordBody};
use crate::summary::SummaryDraft;

/// Bytes kept free for the line that says how to get the rest, and for the head of a part.
const FRAME_BYTES: usize = 150;
/// Bytes of a record in one part.
const PART_BYTES: usize = limits::RECORD_PART_BYTES - FRAME_BYTES;
/// A record is not cut to less than this.
const LEAST_BYTES: usize = 1_024;

/// Records asked for by id.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// Those that were found, in the order asked for; more than [`limits::RECORDS_SHOWN`] are
    /// counted only.
    pub found: &'a [Record],
    /// How many ids were asked for.
    pub asked: usize,
    /// Ids that are unknown or not the caller's to see.
    pub missing: &'a [RecordId],
}

/// The answer to a read by ids: at most [`limits::RECORDS_ANSWER_BYTES`].
#[must_use]
pub fn render_records(records: Records<'_>, view: View) -> String {
    let mut blocks = Vec::new();
    let shown = records.found.len().min(limits::RECORDS_SHOWN);
    if shown > 0 {
        blocks.push(DATA_SENTENCE.to_owned());
    }
    if records.asked > limits::RECORDS_SHOWN {
        let line = format!("Showing {shown} of {}.", records.asked);
        match blocks.first_mut() {
            Some(head) => *head = format!("{head}\n{line}"),
            None => blocks.push(line),
        }
    }
    let cut = |record| render_within(record, view, limits::RECORD_PART_BYTES);
    blocks.extend(records.found[..shown].iter().map(cut));
    if !records.missing.is_empty() {
        let ids: Vec<String> = records.missing.iter().map(RecordId::to_string).collect();
        blocks.push(format!("Not found: {}.", ids.join(", ")));
    }
    blocks.join("\n\n")
}

/// One part of a record that does not fit one answer, counted from 1; `None` if it has fewer
/// parts. Every part but the first opens with a line that names the record.
#[must_use]
pub fn render_part(record: &Record, view: View, part: u32) -> Option<String> {
    let whole = render(record, view);
    let index = usize::try_from(part).ok()?.checked_sub(1)?;
    // Borders are computed from the part's number alone, so that parts meet without overlap.
    let border = |at: usize| whole.floor_char_boundary(at.saturating_mul(PART_BYTES));
    let piece = &whole[border(index)..border(index + 1)];
    if piece.is_empty() {
        return None;
    }
    let head = match index {
        0 => String::new(),
        // The piece may begin inside a line; indented, it cannot pass for structure.
        _ => format!(
            "### [{}] part {part} of {}\n    ",
            record.row.id,
            whole.len().div_ceil(PART_BYTES)
        ),
    };
    let tail = if border(index + 1) < whole.len() {
        rest_line(record.row.id, index + 2)
    } else {
        String::new()
    };
    Some(format!("{DATA_SENTENCE}\n\n{head}{piece}{tail}"))
}

/// All records within `room` bytes, blank lines between them included: each at most
/// [`limits::DETAIL_BYTES`], the longest halved until all fit. `None` if they cannot be made to.
pub(super) fn within(records: &[Record], view: View, room: usize) -> Option<Vec<String>> {
    let mut budgets = vec![limits::DETAIL_BYTES; records.len()];
    loop {
        let texts: Vec<String> = records
            .iter()
            .zip(&budgets)
            .map(|(record, budget)| render_within(record, view, *budget))
            .collect();
        if texts.iter().map(|text| text.len() + 2).sum::<usize>() <= room {
            return Some(texts);
        }
        let longest = (0..texts.len()).max_by_key(|at| texts[*at].len())?;
        budgets[longest] = texts[longest].len() / 2;
        if budgets[longest] < LEAST_BYTES {
            return None;
        }
    }
}

/// A record whole, at most [`limits::DETAIL_BYTES`].
#[must_use]
pub fn render_detail(record: &Record, view: View) -> String {
    render_within(record, view, limits::DETAIL_BYTES)
}

fn render_within(record: &Record, view: View, budget: usize) -> String {
    let whole = render(record, view);
    if whole.len() <= budget {
        return whole;
    }
    let limit = budget.min(limits::DETAIL_BYTES) - FRAME_BYTES;
    let kept = head_bytes(&whole, limit);
    // Borders of parts are computed from the limit too, not from what the last character left.
    let rest = rest_line(record.row.id, limit / PART_BYTES + 1);
    format!("{kept}{rest}")
}

/// How to get the rest: `part` is the one that holds the first byte that was left out.
fn rest_line(id: RecordId, part: usize) -> String {
    let id = match id.kind {
        RecordKind::Observation => id.to_string(),
        _ => format!("\"{id}\""),
    };
    format!("\n[cut; the rest: get_observations(ids=[{id}], part={part})]")
}

fn render(record: &Record, view: View) -> String {
    let row = &record.row;
    let mut lines = vec![
        format!("### [{}] {}", row.id, title(&row.title)),
        format!("Project: {}", one_line(&row.project.name)),
        format!(
            "By: {}, {} UTC",
            one_line(&row.author),
            row.at.format("%Y-%m-%d %H:%M")
        ),
    ];
    match &record.body {
        RecordBody::Observation(body) => observation(body, view, &mut lines),
        RecordBody::Summary(summary) => summarised(summary, &mut lines),
        RecordBody::Prompt { text, .. } => field("Prompt", text, &mut lines),
    }
    lines.join("\n")
}

fn observation(body: &ObservationBody, view: View, lines: &mut Vec<String>) {
    field("Subtitle", &body.subtitle, lines);
    field("Narrative", &body.narrative, lines);
    list("Facts", "; ", &body.facts, 0, lines);
    list(
        "Files changed",
        ", ",
        &body.files_modified,
        body.files_modified_more,
        lines,
    );
    list(
        "Files read",
        ", ",
        &body.files_read,
        body.files_read_more,
        lines,
    );
    if view.evidence {
        let ids: Vec<String> = body.tool_uses.iter().map(ToString::to_string).collect();
        listed("Tool uses", ", ", &ids, limits::DETAIL_TOOL_USES, 0, lines);
    }
}

fn summarised(summary: &SummaryDraft, lines: &mut Vec<String>) {
    field("Request", &summary.request, lines);
    field("Investigated", &summary.investigated, lines);
    field("Learned", &summary.learned, lines);
    field("Completed", &summary.completed, lines);
    field("Next steps", &summary.next_steps, lines);
    field("Notes", &summary.notes, lines);
}

fn field(name: &str, text: &str, lines: &mut Vec<String>) {
    let text = indented(text);
    if !text.trim().is_empty() {
        lines.push(format!("{name}: {text}"));
    }
}

fn list(name: &str, between: &str, items: &[String], more: u32, lines: &mut Vec<String>) {
    listed(name, between, items, limits::DETAIL_LISTED, more, lines);
}

/// The first items and how many there are beyond them.
fn listed(
    name: &str,
    between: &str,
    items: &[String],
    limit: usize,
    more: u32,
    lines: &mut Vec<String>,
) {
    let items: Vec<String> = items
        .iter()
        .map(|item| one_line(item))
        .filter(|i| !i.is_empty())
        .collect();
    let left_out = items.len().saturating_sub(limit) + more as usize;
    let mut shown: Vec<String> = items.into_iter().take(limit).collect();
    if left_out > 0 {
        shown.push(format!("+{left_out}"));
    }
    if !shown.is_empty() {
        lines.push(format!("{name}: {}", shown.join(between)));
    }
}

#[cfg(test)]
#[path = "details_tests.rs"]
mod tests;
