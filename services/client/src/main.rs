//! The `cairn` command: what a developer's machine runs of Cairn.
//!
//! Hooks come first and alone: an agent waits for them, so they meet no argument parser, no
//! runtime and no network client.

mod account;
mod api;
mod blobs;
mod claude_mem;
mod cli;
mod commands;
mod complaint;
mod config;
mod copies;
mod exit;
mod files;
mod hooks;
mod hosts;
mod log;
mod problem;
mod project;
mod reply;
mod shim;
mod spool;
mod state;
mod stdin;
mod tokens;
mod work_state;

use std::process::ExitCode;

fn main() -> ExitCode {
    quiet_panics();
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let asks_for_help = args.iter().any(|arg| arg == "--help" || arg == "-h");
    if args.first().is_some_and(|command| command == "hook") && !asks_for_help {
        // Whatever happens in a hook, the agent goes on: the status is always 0.
        drop(std::panic::catch_unwind(|| hooks::run(&args[1..])));
        return ExitCode::SUCCESS;
    }
    cli::run()
}

/// A panic is one line on stderr, without a trace.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        complaint::say_once(&format!("cairn: a fault of this program at {place}"));
    }));
}
