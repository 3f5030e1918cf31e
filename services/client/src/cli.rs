//! The command line for people: words, help, and the exit status of each end.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::commands::{self, Client};
use crate::exit::Failure;
use crate::shim;

/// Shared memory for a team's coding agents.
#[derive(Debug, Parser)]
#[command(name = "cairn", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sign in on a page, on this machine or any other; or with a key from standard input.
    Login(Login),
    /// End the sign-in of this machine, or forget its key.
    Logout,
    /// Show who the service takes you for.
    Whoami,
    /// Print what a session in this folder starts with.
    Context,
    /// Search the team's memory: titles, the best first.
    Search(Search),
    /// Print records, or original tool calls: 41 S7 P3 T118
    Show {
        /// Their ids.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Show what is open in the team's lists of this project, or add to them.
    Work(Work),
    /// Print the team's memory as lines that import reads: cairn export > memory.ndjson
    Export(Export),
    /// Take in an export, or a claude-mem database. Again it stores nothing.
    Import(Import),
    /// Show which project this folder is, or manage the team's projects.
    Project(Project),
    /// Manage the team's members.
    #[command(subcommand)]
    Member(Member),
    /// Manage your keys, and the team's.
    #[command(subcommand)]
    Key(Key),
    /// Show what was done in the tenant, the newest first.
    Audit(Audit),
    /// Send what waits in the spool.
    Flush {
        /// Detach from the caller and say nothing.
        #[arg(long)]
        background: bool,
    },
    /// Show service, account, project and spool.
    Status {
        /// One line.
        #[arg(long)]
        short: bool,
    },
    /// Look at records that were not sent.
    #[command(subcommand)]
    Spool(Spool),
    /// Spool events that no hook reports: one JSON object a line on standard input.
    #[command(hide = true)]
    Record,
    /// Serve an agent host over standard input and output.
    Mcp,
    /// Take a report of an agent host from standard input.
    Hook {
        /// The host and the event.
        words: Vec<String>,
    },
}

/// How to sign in.
#[derive(Debug, Args)]
pub struct Login {
    /// Read a key from standard input instead.
    #[arg(long)]
    pub key: bool,
    /// The service's address, if no setting names it.
    #[arg(long)]
    pub url: Option<String>,
    /// Ask for these scopes instead of the usual ones; may be given several times.
    #[arg(long = "scope", value_name = "SCOPE", conflicts_with = "key")]
    pub scopes: Vec<String>,
    /// Open no browser, even where there is a screen.
    #[arg(long, conflicts_with = "key")]
    pub no_browser: bool,
}

/// A search.
#[derive(Debug, Args)]
pub struct Search {
    /// What to look for; words that begin with a hyphen after `--`. Nothing in it is an operator.
    #[arg(required = true, value_name = "WORDS")]
    pub words: Vec<String>,
    /// Another project: its key or name, or * for all.
    #[arg(long)]
    pub project: Option<String>,
    /// Results to show, 1 to 200; 20 if left out.
    #[arg(long)]
    pub limit: Option<u32>,
    /// Go on where the page before ended: what it printed after `More:`.
    #[arg(long)]
    pub cursor: Option<String>,
    /// The answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// An export.
#[derive(Debug, Args)]
pub struct Export {
    /// One project alone: its key or name.
    #[arg(long)]
    pub project: Option<String>,
    /// One author alone: a handle.
    #[arg(long)]
    pub author: Option<String>,
    /// What you wrote yourself, private or not; anybody may.
    #[arg(long, conflicts_with = "author")]
    pub mine: bool,
    /// Some kinds alone: observation, summary, prompt, tool_use, work_entry.
    #[arg(long = "kinds", value_delimiter = ',')]
    pub kinds: Vec<String>,
}

/// An import.
#[derive(Debug, Args)]
pub struct Import {
    /// An export, or a claude-mem database.
    pub file: PathBuf,
    /// Put everything into one project: its key or name.
    #[arg(long)]
    pub project: Option<String>,
    /// Make everything your own; so it is for those who are no admins, and for claude-mem.
    #[arg(long)]
    pub mine: bool,
    /// The key of a project for its name in claude-mem; name:<name> if left out.
    #[arg(long, value_name = "NAME=KEY")]
    pub map: Vec<String>,
    /// Say what would be stored, and store nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The answer as JSON, with all new ids.
    #[arg(long)]
    pub json: bool,
}

/// The lists of a project.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Work {
    /// This list alone.
    #[arg(long)]
    pub list: Option<String>,
    /// Closed lists and tasks too.
    #[arg(long)]
    pub all: bool,
    /// Another project: its key or name, or * for all.
    #[arg(long)]
    pub project: Option<String>,
    /// What to do instead of listing.
    #[command(subcommand)]
    pub command: Option<WorkCommand>,
}

/// What to do with lists.
#[derive(Debug, Subcommand)]
pub enum WorkCommand {
    /// Add to a list: cairn work add release task=docs status=todo
    Add(WorkEntry),
    /// Close a task.
    Done {
        /// The list.
        list: String,
        /// The task.
        task: String,
    },
    /// Take a task, so that nobody else does.
    Claim {
        /// The list.
        list: String,
        /// The task.
        task: String,
        /// For how many minutes: 1 to 1,440; 60 if left out.
        #[arg(long)]
        minutes: Option<u32>,
    },
    /// Give a task back.
    Release {
        /// The list.
        list: String,
        /// The task.
        task: String,
    },
    /// Show the entries of the lists, oldest first.
    History {
        /// This list alone.
        #[arg(long)]
        list: Option<String>,
        /// How many: 1 to 200; 50 if left out.
        #[arg(long)]
        limit: Option<u32>,
    },
}

/// An entry of a list.
#[derive(Debug, Args)]
pub struct WorkEntry {
    /// The list.
    pub list: String,
    /// Fields: task=<name> for a to-do, status=todo|doing|done|dropped, and any others.
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
}

/// This folder's project, or the team's.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Project {
    /// Name this folder's project, by a file .cairn-project at its root.
    #[arg(long)]
    pub name: Option<String>,
    /// What to do instead.
    #[command(subcommand)]
    pub command: Option<ProjectCommand>,
}

/// What to do with the team's projects.
#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// List them.
    List,
    /// Give one another name.
    Rename {
        /// The project: id, key or name.
        project: String,
        /// Its name from now on.
        name: String,
    },
    /// Make one an alias of another: reads of either show both. There is no way back.
    Merge {
        /// The project: id, key or name.
        project: String,
        /// What it is merged into: id, key or name.
        into: String,
    },
}

/// What to do with members.
#[derive(Debug, Subcommand)]
pub enum Member {
    /// List them.
    List,
    /// Add one; they have no key yet.
    Add {
        /// The handle.
        handle: String,
        /// owner, admin, member or reader.
        #[arg(long, default_value = "member")]
        role: String,
        /// The address by which sign-in finds them.
        #[arg(long)]
        email: Option<String>,
    },
    /// Make one something else.
    Role {
        /// The handle.
        handle: String,
        /// owner, admin, member or reader.
        role: String,
    },
    /// Remove one and end all their keys. What they shared stays.
    Remove {
        /// The handle.
        handle: String,
    },
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum Key {
    /// List your keys; to an admin, the team's.
    List,
    /// Make a key; prints it, once.
    Create(KeyCreate),
    /// End a key.
    Revoke {
        /// The part of the key between the underscores.
        id: String,
    },
}

/// A key to make.
#[derive(Debug, Args)]
pub struct KeyCreate {
    /// What the key is for.
    #[arg(long, default_value = "key")]
    pub name: String,
    /// Only these scopes; may be given several times.
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// Only this project: id, key or name.
    #[arg(long)]
    pub project: Option<String>,
    /// Days until it ends: 1 to 365; 90 if left out.
    #[arg(long)]
    pub days: Option<u32>,
    /// A key of the tenant's, as for CI.
    #[arg(long, conflicts_with = "member")]
    pub service: bool,
    /// A key of this member's.
    #[arg(long)]
    pub member: Option<String>,
}

/// Which lines of the audit log.
#[derive(Debug, Args)]
pub struct Audit {
    /// From this day on, or this moment.
    #[arg(long)]
    pub from: Option<String>,
    /// Up to this day, or this moment.
    #[arg(long)]
    pub to: Option<String>,
    /// What this handle, or key:<key id>, did.
    #[arg(long)]
    pub actor: Option<String>,
    /// This action alone, such as member.remove.
    #[arg(long)]
    pub action: Option<String>,
    /// How many lines: 1 to 200; 50 if left out.
    #[arg(long)]
    pub limit: Option<u32>,
    /// Go on where the page before ended: what it printed after `More:`.
    #[arg(long)]
    pub cursor: Option<String>,
}

/// What to do with set-aside records.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Spool {
    /// List them with their reasons.
    List,
    /// Put them back among those that wait.
    Retry,
    /// Delete them.
    Drop,
}

/// Runs the command of this process.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    match run_command(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            drop(writeln!(std::io::stderr(), "cairn: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

/// Help goes to stdout with 0; misuse to stderr with 64, where clap itself would end with 2.
fn explain(error: &clap::Error) -> ExitCode {
    drop(error.print());
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(64),
    }
}

fn run_command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Flush { background: true } => commands::flush::in_background(),
        // `main` has taken these already.
        Command::Hook { .. } => Ok(()),
        Command::Mcp => shim::run(),
        Command::Login(how) => commands::login::login(&Client::here()?, &how),
        Command::Logout => commands::login::logout(&Client::here()?),
        Command::Whoami => commands::login::whoami(&Client::here()?),
        Command::Context => commands::search::context(&Client::here()?),
        Command::Search(what) => commands::search::search(&Client::here()?, &what),
        Command::Show { ids } => commands::show::show(&Client::here()?, &ids),
        Command::Work(what) => commands::work::work(&Client::here()?, what),
        Command::Export(what) => commands::export::export(&Client::here()?, &what),
        Command::Import(what) => commands::import::import(&Client::here()?, &what),
        Command::Project(what) => commands::project::project(&Client::here()?, what),
        Command::Member(what) => commands::member::member(&Client::here()?, what),
        Command::Key(what) => commands::key::key(&Client::here()?, what),
        Command::Audit(what) => commands::audit::audit(&Client::here()?, &what),
        Command::Record => commands::record::record(&Client::here()?),
        Command::Flush { background: false } => commands::flush::now(&Client::here()?),
        Command::Status { short } => commands::status::status(&Client::here()?, short),
        Command::Spool(what) => commands::status::spool(&Client::here()?, what),
    }
}
