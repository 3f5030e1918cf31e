//! A private Postgres that this process initialises, owns and stops: the database of a server
//! that was given none.
//!
//! It listens on a socket that only its user may reach, never on a port, and keeps its promises
//! to the disk. Which tables it holds is the business of the migrations.

mod binaries;
mod cluster;
mod keys;
mod process;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _, PgConnection};

pub use keys::{load_or_create_keys, load_or_create_token_keys};

use cluster::{DataLock, Folders};
use process::{Postgres, Runner};

/// The database inside the private Postgres.
const DATABASE: &str = "cairn";
const SUPERUSER: &str = "postgres";
const APP_ROLE: &str = "cairn_app";
/// Names the socket's file; nothing listens on this port.
const PORT: u16 = 5432;

/// Recovery after a crash is bounded by the amount of log kept; this is far above it.
const START_TIME: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// Where the private Postgres lives and where its programs may be found.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The data folder of the server; made if missing. The database takes a folder inside.
    pub data: PathBuf,
    /// The folder with `initdb` and `postgres` to use, before any other.
    pub programs: Option<PathBuf>,
    /// The search path of the machine, where they are looked for else, before the folders of
    /// distributions.
    pub search_path: OsString,
}

/// Why the private Postgres does not run. Each text is meant for the person who starts it.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No usable Postgres was found; the text says what to install.
    #[error("{0}")]
    NoPostgres(String),
    /// Another server uses the data folder.
    #[error("another server is using {}", .0.display())]
    InUse(PathBuf),
    /// The data folder cannot be used as it is; the text says why.
    #[error("{0}")]
    Refused(String),
    /// The file system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A program of Postgres failed; the text has its last words.
    #[error("{0}")]
    Failed(String),
}

/// Where the data folder is if nothing says otherwise: a state folder of the system for root,
/// whose home the database's user could not enter, else a folder below the home.
///
/// # Errors
/// [`EmbeddedError::Refused`] if this account has no home.
pub fn default_data() -> Result<PathBuf, EmbeddedError> {
    if nix::unistd::Uid::effective().is_root() {
        return Ok(PathBuf::from("/var/lib/cairn"));
    }
    match std::env::home_dir() {
        Some(home) if home.is_absolute() => Ok(home.join(".local/share/cairn/server")),
        _ => Err(EmbeddedError::Refused(
            "this account has no home folder: set CAIRN_DATA".to_owned(),
        )),
    }
}

/// The address, for the role of the server, of the private Postgres that another process runs on
/// a data folder now; `None` if none does.
///
/// # Errors
/// [`EmbeddedError`] if the folder cannot be read.
pub fn find_running(data: &Path) -> Result<Option<String>, EmbeddedError> {
    if !data.join("postgres").exists() {
        return Ok(None);
    }
    let folders = Folders::of(data)?;
    match folders.lock() {
        Ok(_) => Ok(None),
        Err(EmbeddedError::InUse(_)) => {
            let socket = folders.socket_text()?;
            Ok(Some(address(&socket, APP_ROLE, DATABASE)))
        }
        Err(error) => Err(error),
    }
}

impl EmbeddedError {
    fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        |source| Self::Io { what, source }
    }
}

/// A running private Postgres. Ends with [`EmbeddedPostgres::stop`], with its value, or with the
/// process, however that ends.
pub struct EmbeddedPostgres {
    postgres: Postgres,
    folders: Folders,
    /// The socket's folder as it stands in addresses.
    socket: String,
    /// Held, so that no other server uses the folder.
    _lock: DataLock,
}

impl EmbeddedPostgres {
    /// Finds Postgres, makes the database if there is none, starts it and waits until it answers.
    /// What an earlier, killed server left running on this folder is ended first.
    ///
    /// # Errors
    /// [`EmbeddedError`].
    pub async fn start(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let runner = Runner::detect()?;
        let folders = Folders::prepare(&options.data, &runner)?;
        let lock = folders.lock()?;
        let programs = binaries::find(&folders.postgres, &options).await?;
        cluster::end_orphan(&folders).await?;
        cluster::initialise(&folders, &programs, &runner).await?;
        let socket = folders.socket_text()?;
        let postgres = start_postgres(&folders, &programs, &runner, &socket).await?;
        let embedded = Self {
            postgres,
            folders,
            socket,
            _lock: lock,
        };
        embedded.create_database().await?;
        Ok(embedded)
    }

    /// The address of the database for the superuser, who may migrate it.
    #[must_use]
    pub fn superuser_url(&self) -> String {
        address(&self.socket, SUPERUSER, DATABASE)
    }

    /// The address of the database for the role of the server. The role is made by the bootstrap
    /// of the migrations.
    #[must_use]
    pub fn app_url(&self) -> String {
        address(&self.socket, APP_ROLE, DATABASE)
    }

    /// Waits until Postgres ends, unasked or by `stop` of another task.
    pub async fn ended(&self) {
        self.postgres.ended().await;
    }

    /// Ends all connections and stops Postgres; returns once it has ended.
    pub async fn stop(self) {
        self.stop_within(process::SHUTDOWN_TIME).await;
    }

    /// The same, for somebody in a hurry: it ends without writing a checkpoint if it has to, and
    /// recovers at its next start.
    pub async fn stop_within(self, patience: Duration) {
        self.postgres.stop(patience).await;
        self.folders.clear_socket();
    }

    async fn create_database(&self) -> Result<(), EmbeddedError> {
        let address = address(&self.socket, SUPERUSER, "postgres");
        create_database(&address)
            .await
            .map_err(|error| EmbeddedError::Failed(format!("cannot create {DATABASE}: {error}")))
    }
}

async fn create_database(address: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(address).await?;
    let exists: bool =
        sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(DATABASE)
            .fetch_one(&mut connection)
            .await?;
    if !exists {
        connection.execute("create database cairn").await?;
    }
    connection.close().await
}

async fn start_postgres(
    folders: &Folders,
    programs: &binaries::Programs,
    runner: &Runner,
    socket: &str,
) -> Result<Postgres, EmbeddedError> {
    let deadline = Instant::now() + START_TIME;
    loop {
        let postgres = Postgres::spawn(folders, programs, runner)?;
        match await_answer(&postgres, socket, deadline).await {
            Ok(()) => return Ok(postgres),
            Err(error) => {
                postgres.stop(process::SHUTDOWN_TIME).await;
                // Workers of a killed server may outlive it by a moment; Postgres waits for none.
                let leftover = folders
                    .log_tail()
                    .contains("pre-existing shared memory block");
                if !leftover || Instant::now() > deadline {
                    let log = folders.log_tail();
                    return Err(EmbeddedError::Failed(format!("{error}\n{log}")));
                }
                tokio::time::sleep(POLL).await;
            }
        }
    }
}

/// Connects until the server lets us in: while it recovers it refuses, while it binds nothing
/// answers.
async fn await_answer(postgres: &Postgres, socket: &str, deadline: Instant) -> Result<(), String> {
    let address = address(socket, SUPERUSER, "postgres");
    loop {
        let attempt = tokio::select! {
            attempt = PgConnection::connect(&address) => attempt,
            () = postgres.ended() => return Err("Postgres ended while starting".to_owned()),
        };
        match attempt {
            Ok(connection) => return connection.close().await.map_err(|error| error.to_string()),
            Err(error) if Instant::now() > deadline => {
                return Err(format!("Postgres does not answer: {error}"));
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

fn address(socket: &str, role: &str, database: &str) -> String {
    format!("postgres://{role}@localhost:{PORT}/{database}?host={socket}")
}
