//! The results of a search as one text: titles by day and file, as a table or a list, with the
//! records themselves where they are wanted (contract 10.4).

use super::{DATA_SENTENCE, title};
use crate::context::Zone;
use crate::context::table::{COLUMNS, cell, day_line, file_line, grouped, time_below};
use crate::ids::RecordKind;
use crate::limits;
use crate::listing::Listed;
use crate::plain::one_line;
use crate::timeline::{NO_COST, symbol};

/// How results are set out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A table for each file.
    #[default]
    Table,
    /// A line for each result.
    List,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Table, Self::List];

    /// The word of the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::List => "list",
        }
    }
}

/// A page of results.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// What was asked; `None` where filters alone were.
    pub query: Option<&'a str>,
    /// What was found, in its order.
    pub hits: &'a [Listed],
    /// The text of each record, if they are wanted; `None` for one that is gone.
    pub details: Option<&'a [Option<String>]>,
    /// How they are set out.
    pub form: Form,
    /// The reader's zone.
    pub zone: Zone,
}

/// A page within [`limits::RESULTS_BYTES`]: what does not fit is left out from its end. `cursor`
/// tells where the next page begins if so many are shown of this one.
#[must_use]
pub fn render_results(results: Results<'_>, cursor: impl Fn(usize) -> Option<String>) -> String {
    let mut count = results.hits.len();
    if count == 0 {
        return nothing(results.query);
    }
    loop {
        let shown = Results {
            hits: &results.hits[..count],
            ..results
        };
        let mut text = render(shown);
        if let Some(cursor) = cursor(count) {
            text.push_str(&format!("\n\nMore: cursor=\"{cursor}\""));
        }
        if text.len() <= limits::RESULTS_BYTES || count == 1 {
            return text;
        }
        count -= 1;
    }
}

fn nothing(query: Option<&str>) -> String {
    match query {
        Some(query) => format!("No results for \"{}\".", one_line(query)),
        None => "No results.".to_owned(),
    }
}

fn render(results: Results<'_>) -> String {
    let mut blocks = vec![head(results)];
    let hits: Vec<(usize, &Listed)> = results.hits.iter().enumerate().collect();
    let day = |(_, hit): (usize, &Listed)| results.zone.clock(hit.row.at).date_naive();
    for (day, hits) in grouped(hits, day) {
        blocks.push(day_line(day));
        for (file, hits) in grouped(hits, |(_, hit)| hit.files.first()) {
            let file = file_line(file.map(String::as_str));
            push_group(file, &hits, results, &mut blocks);
        }
    }
    blocks.join("\n\n")
}

fn head(results: Results<'_>) -> String {
    let query = results
        .query
        .map(|query| format!(" for \"{}\"", one_line(query)));
    let of = |kind| {
        let hits = results.hits.iter();
        hits.filter(|hit| hit.row.id.kind == kind).count()
    };
    let head = format!(
        "{}{} ({}, {}, {})",
        counted(results.hits.len(), "result", "results"),
        query.unwrap_or_default(),
        counted(of(RecordKind::Observation), "observation", "observations"),
        counted(of(RecordKind::Summary), "summary", "summaries"),
        counted(of(RecordKind::Prompt), "prompt", "prompts"),
    );
    match results.details {
        Some(_) => format!("{head}\n{DATA_SENTENCE}"),
        None => head,
    }
}

fn counted(count: usize, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{count} {noun}")
}

/// The results of one file. A record's text parts the lines above it from those below.
fn push_group(
    file: String,
    hits: &[(usize, &Listed)],
    results: Results<'_>,
    blocks: &mut Vec<String>,
) {
    let mut above = None;
    let mut lines = vec![file];
    let mut is_open = false;
    for (at, hit) in hits {
        if results.form == Form::Table && !is_open {
            lines.push(COLUMNS.trim_end().to_owned());
        }
        is_open = true;
        let time = time_below(&mut above, hit.row.at, results.zone);
        lines.push(line(hit, &time, results.form));
        let detail = results.details.and_then(|details| details.get(*at));
        if let Some(Some(detail)) = detail {
            blocks.push(lines.join("\n"));
            blocks.push(detail.clone());
            lines.clear();
            is_open = false;
        }
    }
    if !lines.is_empty() {
        blocks.push(lines.join("\n"));
    }
}

fn line(hit: &Listed, time: &str, form: Form) -> String {
    let row = &hit.row;
    let (id, symbol, title) = (row.id, symbol(row), title(&row.title));
    let cost = (id.kind == RecordKind::Observation).then(|| format!("~{}", hit.read_tokens));
    match form {
        Form::Table => {
            let (title, cost) = (cell(&title), cost.as_deref().unwrap_or(NO_COST));
            format!("| #{id} | {time} | {symbol} | {title} | {cost} |")
        }
        Form::List => {
            let cost = cost.map_or_else(|| NO_COST.to_owned(), |cost| format!("{cost}t"));
            format!("- #{id} · {time} · {symbol} · {title} ({cost})")
        }
    }
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
