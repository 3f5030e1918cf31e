//! The demo: real input through `cairn` and its spool into a service of its own, then what an
//! agent gets back: the context of a fresh session and the three steps of a search.
//!
//! Everything it starts ends with it, and all its files lie in one temporary folder.

pub mod client;
mod commits;
mod record_sets;
mod replay;
mod session;
mod shim;
mod walk;

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::{grouped, heading, say};
use crate::process::{Scratch, built};
use crate::service::EmbeddedService;
use client::Client;
use replay::Replay;

/// What to replay and what to ask.
#[derive(clap::Args)]
pub struct Options {
    /// A git repository, or a folder of record sets (`sets/*/records.jsonl`).
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// What to search for; chosen from the input if left out.
    #[arg(long)]
    query: Option<String>,
}

/// Runs the demo to its end.
///
/// # Errors
/// At the first thing that does not go as it should.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let folder = &options.folder;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("opening {}", folder.display()))?;
    let scratch = Scratch::new()?;
    let replay = Replay::of(&folder, &scratch)?;
    let query = options.query.as_deref().unwrap_or(&replay.query);
    say(&format!("Input: {}", replay.describe));

    let service = EmbeddedService::start(&built("cairn-server")?, scratch.path())?;
    let client = Client::new(built("cairn")?, scratch.folder("home")?);
    client.login(&service.url, &service.key)?;
    say(&format!(
        "A service of its own listens on {}; cairn is signed in.",
        service.url
    ));

    client.record(&replay.checkout, &replay.items)?;
    let calls = session::replay(&client, &replay.checkout)?;
    client.flush()?;
    say(&format!(
        "{} observations and {calls} hook calls of a recorded Claude Code session went through \
         the spool; it is empty again.",
        grouped(replay.items.len())
    ));

    show_context(&client, &replay.checkout)?;
    walk::search(&client, &service, &replay.checkout, query)
}

fn show_context(client: &Client, checkout: &Path) -> anyhow::Result<()> {
    heading("What a fresh session is shown");
    let context = session::start_fresh(client, checkout)?;
    say(&context);
    say(&format!(
        "\n[{} tokens, estimated]",
        grouped(walk::tokens(&context))
    ));
    Ok(())
}
