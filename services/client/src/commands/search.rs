//! Looking into memory: what a session starts with, and what matches words.

use cairn_wire::context::ContextQuery;
use serde_json::{Value, json};

use super::{Client, say};
use crate::api;
use crate::cli::Search;
use crate::config;
use crate::exit::Failure;

/// Results on a page, unless more or fewer are asked for.
const RESULTS: u32 = 20;

/// Prints the context of this folder's project.
pub fn context(client: &Client) -> Result<(), Failure> {
    let api = client.api()?;
    let query = ContextQuery {
        budget: Some(client.settings.context_limit),
        ..client.settings.context.clone()
    };
    say(&api::block_on(api.context(&query))?.text);
    Ok(())
}

/// Prints a page of what matches some words, the best first.
pub fn search(client: &Client, what: &Search) -> Result<(), Failure> {
    let api = client.api()?;
    let mut question = json!({
        "query": what.words.join(" "),
        "project": what.project,
        "limit": what.limit.unwrap_or(RESULTS),
        "cursor": what.cursor,
    });
    let post = |question: &Value| api.post("/v1/search", question.to_string().into_bytes());
    if what.json {
        let answer: Value = api::block_on(api.json(post(&question)))?;
        say(&answer.to_string());
        return Ok(());
    }
    question["format"] = json!("list");
    question["tz"] = json!(config::time_zone());
    say(&api::block_on(api.text(post(&question)))?);
    Ok(())
}
