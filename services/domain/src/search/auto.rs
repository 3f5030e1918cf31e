//! `mode="auto"`: all steps in one call, by the words that titles share with the query; no model,
//! no dictionary (contract 7.7).

use super::{Reason, Step};
use crate::ids::RecordKind;
use crate::record::Row;
use crate::text::TitleWords;

/// The rows whose titles hold words of the query, most words first, of equals the earlier one; at
/// most `most`, and no prompts, for they have no details.
#[must_use]
pub fn best_titles<'a>(words: &TitleWords, rows: &'a [Row], most: u32) -> Vec<&'a Row> {
    let scored = rows.iter().map(|row| (words.held_by(&row.title), row));
    let mut best: Vec<(usize, &Row)> = scored
        .filter(|(score, row)| *score > 0 && row.id.kind != RecordKind::Prompt)
        .collect();
    best.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    best.truncate(most as usize);
    best.into_iter().map(|(_, row)| row).collect()
}

/// Rows of a search and of a second one, without repeats, the first ones first; at most `most`.
#[must_use]
pub fn union(mut rows: Vec<Row>, others: Vec<Row>, most: u32) -> Vec<Row> {
    for row in others {
        if rows.iter().all(|other| other.id != row.id) {
            rows.push(row);
        }
    }
    rows.truncate(most as usize);
    rows
}

/// The text of a step that was reached without a choice: its second line says how, the third why
/// it is as it is, if that needs saying.
#[must_use]
pub fn render_automatic(step: Step, text: &str, reason: Option<Reason>) -> String {
    let phases: Vec<&str> = [Step::Index, Step::Timeline, Step::Details]
        .into_iter()
        .take_while(|phase| *phase <= step)
        .map(Step::title)
        .collect();
    let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut lines = format!("{head}\nAutomatic: {}", phases.join(" → "));
    if let Some(reason) = reason {
        lines.push('\n');
        lines.push_str(reason.sentence());
    }
    format!("{lines}\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::super::render::tests::row;
    use super::*;

    fn best(query: &str, titles: &[(&str, &str)]) -> Vec<String> {
        let rows: Vec<Row> = titles.iter().map(|(id, title)| row(id, title, 1)).collect();
        let best = best_titles(&TitleWords::of(query), &rows, 3);
        best.into_iter().map(|row| row.id.to_string()).collect()
    }

    #[test]
    fn titles_are_ordered_by_the_words_they_share_and_keep_their_order() {
        let titles = [
            ("1", "unrelated"),
            ("2", "the pool"),
            ("P3", "pool leak"),
            ("S4", "a pool with a leak"),
            ("5", "pools of leaks"),
            ("6", "leak"),
        ];
        assert_eq!(best("pool leak", &titles), ["S4", "2", "6"]);
        assert_eq!(best("the", &titles), ["2"]);
        assert_eq!(best("nothing", &titles), Vec::<String>::new());
    }

    #[test]
    fn a_second_search_only_adds() {
        let rows = |ids: &[&str]| ids.iter().map(|id| row(id, "t", 1)).collect::<Vec<_>>();
        let joined = union(rows(&["1", "2"]), rows(&["2", "3", "4"]), 3);
        let ids: Vec<String> = joined.iter().map(|row| row.id.to_string()).collect();
        assert_eq!(ids, ["1", "2", "3"]);
    }

    #[test]
    fn the_second_line_names_the_phases_that_ran() {
        assert_eq!(
            render_automatic(
                Step::Timeline,
                "mem-search step 2 of 3 — context\n\nrows",
                None
            ),
            "mem-search step 2 of 3 — context\nAutomatic: index → context\n\nrows"
        );
        assert_eq!(
            render_automatic(
                Step::Index,
                "mem-search step 1 of 3 — index\n\nrows",
                Some(Reason::NoRelevantCandidates)
            ),
            "mem-search step 1 of 3 — index\nAutomatic: index\nNo title matches the query's \
             words; these are the nearest. Choose yourself.\n\nrows"
        );
    }
}
