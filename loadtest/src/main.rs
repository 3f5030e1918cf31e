//! `cairn-loadtest`: the demo, the scenarios that compare the service with its raw limits, and the
//! fuzzer of queries.
//!
//! It drives the real programs as anyone would: `cairn-server`, `cairn`, Postgres' own tools. Of
//! the project's crates it uses the wire types alone.

mod api;
mod bench;
mod demo;
mod fuzz;
mod output;
mod process;
mod record_sets;
mod rights;
mod service;
mod whole;

use std::process::ExitCode;

/// The allocator of the service, so that a comparison with a bare route is one of routes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::{Parser, Subcommand};

/// Shows Cairn at work on real input, and measures it.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay commits and an agent's session into a service of its own, then search them.
    Demo(demo::Options),
    /// Compare the service under load with its raw limit.
    Bench(bench::Options),
    /// Take a large tenant out of a service of its own and in again as another one.
    Rights(rights::Options),
    /// Ask a service of its own what nobody would.
    Fuzz(fuzz::Options),
    /// Answer with the files of a folder: what a bench compares the service with.
    #[command(hide = true)]
    Bare(bench::bare::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Rights(options) => rights::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Bare(options) => bench::bare::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_of_every_command_fit_together() {
        Arguments::command().debug_assert();
    }
}
