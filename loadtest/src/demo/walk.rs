//! The three steps of a search as an agent takes them, and what they cost against giving the
//! agent the ten best records whole.

use std::path::Path;

use anyhow::Context;
use cairn_wire::domain::bounds::est_tokens;
use cairn_wire::observations::Record;
use serde_json::json;

use super::client::Client;
use super::shim::Shim;
use crate::output::{grouped, heading, say};
use crate::service::EmbeddedService;
use crate::whole::render;

/// Rows of the index: as many as are dumped to compare with.
const TOP: usize = 10;
/// Hits that are opened.
const OPENED: usize = 2;

/// What a text costs its reader, in tokens, estimated.
#[must_use]
pub fn tokens(text: &str) -> usize {
    est_tokens(text)
}

/// Searches in three steps and prints each, then the comparison.
///
/// # Errors
/// If a step fails or finds nothing.
pub fn search(
    client: &Client,
    service: &EmbeddedService,
    checkout: &Path,
    query: &str,
) -> anyhow::Result<()> {
    heading(&format!("A search in three steps: {query}"));
    let mut shim = Shim::start(client, checkout)?;
    let mut spent = 0;
    let mut step = |arguments: serde_json::Value| -> anyhow::Result<String> {
        let text = shim.call("mem_search", &arguments)?;
        spent += tokens(&text);
        say(&text);
        say(&format!(
            "\n[{} tokens, estimated]\n",
            grouped(tokens(&text))
        ));
        Ok(text)
    };

    let index = step(json!({"query": query, "limit": TOP}))?;
    let found = row_ids(&index);
    let anchors = opened(&found);
    let cursor = continuation(&index).context("the search found nothing")?;
    let context = step(json!({"continuation": cursor, "selectedIds": anchors}))?;
    let cursor = continuation(&context).context("nothing was left around the hits")?;
    let shown = row_ids(&context);
    let still: Vec<&String> = anchors.iter().filter(|id| shown.contains(id)).collect();
    step(json!({"continuation": cursor, "selectedIds": still}))?;

    let dump = dump(service, &found)?;
    let (count, whole) = (found.len(), tokens(&dump));
    let line = |what: &str, cost| say(&format!("{what:<32}{:>8} tokens", grouped(cost)));
    line("The three steps together:", spent);
    line(&format!("The {count} hits of step 1 in full:"), whole);
    say(&format!(
        "The steps cost {} % of the hits in full.",
        percent(spent, whole)
    ));
    Ok(())
}

/// The best hits that can be opened: a prompt is context only.
fn opened(found: &[String]) -> Vec<String> {
    found
        .iter()
        .filter(|id| !id.starts_with('P'))
        .take(OPENED)
        .cloned()
        .collect()
}

/// The ids of the rows of a step.
fn row_ids(text: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("- ["));
    rows.filter_map(|row| Some(row.split_once(']')?.0.to_owned()))
        .collect()
}

fn continuation(text: &str) -> Option<String> {
    let cursor = text
        .lines()
        .find_map(|line| line.strip_prefix("Continue with: "))?;
    Some(cursor.trim().to_owned())
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100 + whole / 2) / whole.max(1)
}

/// The records whole, as plain fields: what an agent would get from a memory that answers a
/// query with its best hits.
fn dump(service: &EmbeddedService, ids: &[String]) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let api = crate::api::Api::new(&service.url, &service.key)?;
    let mut text = String::new();
    for id in ids.iter().take(TOP) {
        let record: Record = runtime.block_on(api.get(&record_path(id)))?;
        text.push_str(&render(&record));
        text.push('\n');
    }
    Ok(text)
}

fn record_path(id: &str) -> String {
    let noun = match id.chars().next() {
        Some('S') => "summaries",
        Some('P') => "prompts",
        _ => "observations",
    };
    format!("/v1/{noun}/{}", id.trim_start_matches(['S', 'P']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = "mem-search step 1 of 3 — index\n\n\
        - [P3] Why does it leak? · prompt · my-app · 2026-10-10 06:58 UTC\n\
        - [41] Pool [leak] · observation · my-app · 2026-10-10 07:00 UTC\n\
        - [S7] Fix 5xx · summary · my-app · 2026-10-10 07:03 UTC\n\n\
        Continue with: ms_Z6ywyNBJzkw_XuCLsD6p9-xZ\nNext: …";

    #[test]
    fn rows_and_cursor_are_read_from_the_text_of_a_step() {
        assert_eq!(row_ids(STEP), ["P3", "41", "S7"]);
        assert_eq!(opened(&row_ids(STEP)), ["41", "S7"]);
        assert_eq!(
            continuation(STEP).as_deref(),
            Some("ms_Z6ywyNBJzkw_XuCLsD6p9-xZ")
        );
        assert_eq!(continuation("mem-search step 3 of 3"), None);
    }

    #[test]
    fn each_kind_has_its_path() {
        let paths = ["41", "S7", "P3"].map(record_path);
        assert_eq!(
            paths,
            ["/v1/observations/41", "/v1/summaries/7", "/v1/prompts/3"]
        );
    }

    #[test]
    fn a_share_is_rounded() {
        assert_eq!([percent(1, 3), percent(2, 3), percent(0, 0)], [33, 67, 0]);
    }
}
