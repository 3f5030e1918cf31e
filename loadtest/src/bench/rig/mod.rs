//! The rig: a Postgres and a Redis of its own, and one replica of the service over them, all in
//! a scratch folder and gone at the end.

mod database;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::{Machine, Settle, cpu};
use crate::process::{Running, Scratch, output_of};
use crate::service::clean_environment;
use database::Database;

pub use database::POSTGRES_CONF;

/// What a part of the rig may take to start.
const START_TIME: Duration = Duration::from_secs(60);
/// What Postgres may take to do what the service asks in the background.
const SETTLE_TIME: Duration = Duration::from_secs(3_600);
/// Of a second, what its regular upkeep takes of a processor at most.
const IDLE: Duration = Duration::from_millis(50);
/// The service's connections to Postgres: its default.
const POOL: &str = "10";
/// Requests and events a minute: more than any machine answers.
const RATE: &str = "1000000000";
/// A ring of one key; nothing outlives the rig.
const CURSOR_KEYS: &str = "bench:Y2Fpcm4tYmVuY2gtY3Vyc29yLWtleS0zMi1ieXRlcyE=";
/// Likewise for tokens, with which nobody calls here.
const TOKEN_KEYS: &str = "bench:Y2Fpcm4tYmVuY2gtdG9rZW4ta2V5LW9mLTMyLWJ5dGU=";

/// The running rig. Its parts stop in the order in which they stand here.
pub struct Rig {
    /// The service's address.
    pub url: String,
    server: PathBuf,
    environment: Vec<(&'static str, String)>,
    service: Option<Running>,
    _redis: Running,
    database: Database,
    scratch: Scratch,
}

impl Rig {
    /// Starts everything, over a database that ends with it.
    ///
    /// # Errors
    /// If a part does not start.
    pub fn start(machine: &Machine, server: PathBuf) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let data = scratch.path().join("postgres");
        let mut rig = Self::prepare(machine, server, scratch, &data, &[])?;
        rig.serve()?;
        Ok(rig)
    }

    /// Starts all but the service, and brings the database in the folder `data` up to date.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn prepare(
        machine: &Machine,
        server: PathBuf,
        scratch: Scratch,
        data: &Path,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let database = Database::start(machine, &scratch, data, settings)?;
        database.prepare(&machine.roles)?;
        let (redis, redis_url) = start_redis(machine, &scratch)?;
        let listen = free_address()?;
        let url = format!("http://{listen}");
        let environment = vec![
            ("CAIRN_EMBEDDED", "false".to_owned()),
            ("CAIRN_DATABASE_URL", database.url("cairn_app")),
            ("CAIRN_REDIS_URL", redis_url),
            ("CAIRN_CURSOR_KEYS", CURSOR_KEYS.to_owned()),
            ("CAIRN_TOKEN_KEYS", TOKEN_KEYS.to_owned()),
            ("CAIRN_PUBLIC_URL", url.clone()),
            ("CAIRN_LISTEN", listen),
            ("CAIRN_METRICS_LISTEN", free_address()?),
            ("CAIRN_DB_POOL", POOL.to_owned()),
            ("CAIRN_DRAIN_SECONDS", "1".to_owned()),
            ("CAIRN_LOG", "warn".to_owned()),
            // One key stands for many people: it may go as fast as the service does.
            ("CAIRN_RATE_REQUESTS", RATE.to_owned()),
            ("CAIRN_RATE_EVENTS", RATE.to_owned()),
        ];
        let rig = Self {
            url,
            server,
            environment,
            service: None,
            _redis: redis,
            database,
            scratch,
        };
        let as_superuser = rig.database.url("postgres");
        output_of(
            rig.server("migrate")
                .env("CAIRN_DATABASE_URL", as_superuser),
        )?;
        Ok(rig)
    }

    /// Starts the service.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn serve(&mut self) -> anyhow::Result<()> {
        let mut serve = self.server("serve");
        serve.stdout(Stdio::null());
        let path = self.scratch.path();
        let mut service = Running::start("cairn-server", &mut serve, path, Signal::SIGTERM)?;
        let listen = self.url.trim_start_matches("http://");
        service.wait_until(START_TIME, || TcpStream::connect(listen).is_ok())?;
        self.service = Some(service);
        Ok(())
    }

    /// Waits until Postgres has been idle for a while: whatever the service does in the
    /// background, it does there.
    ///
    /// # Errors
    /// If that takes longer than anybody would wait.
    pub fn settle(&self, settle: &Settle) -> anyhow::Result<()> {
        let (began, mut idle) = (Instant::now(), 0);
        while idle < settle.settle {
            if began.elapsed() > SETTLE_TIME {
                bail!("Postgres is still at work after {SETTLE_TIME:?}");
            }
            let before = cpu::of_children(self.postgres_pid())?;
            std::thread::sleep(Duration::from_secs(1));
            let spent = cpu::of_children(self.postgres_pid())?.saturating_sub(before);
            let is_idle = Duration::from_nanos(spent) < IDLE;
            idle = if is_idle { idle + 1 } else { 0 };
        }
        Ok(())
    }

    /// A command of the service's program.
    fn server(&self, word: &str) -> Command {
        let mut command = Command::new(&self.server);
        clean_environment(&mut command, self.scratch.path());
        command.arg(word).current_dir(self.scratch.path());
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// Makes a tenant; answers its owner's key.
    ///
    /// # Errors
    /// If the service's program refuses.
    pub fn create_tenant(&self, name: &str) -> anyhow::Result<String> {
        let mut admin = self.server("admin");
        admin.args(["tenant", "create", name, "--owner", "bench"]);
        Ok(output_of(&mut admin)?.trim().to_owned())
    }

    /// Runs a statement as the superuser.
    ///
    /// # Errors
    /// If Postgres refuses it.
    pub fn psql(&self, statement: &str) -> anyhow::Result<String> {
        self.database.psql(statement)
    }

    /// A program of Postgres', connected to the database as a role.
    #[must_use]
    pub fn postgres_program(&self, name: &str, role: &str) -> Command {
        self.database.program(name, role)
    }

    /// What Postgres has logged so far.
    ///
    /// # Errors
    /// If its log cannot be read.
    pub fn postgres_log(&self) -> anyhow::Result<String> {
        self.database.log()
    }

    /// The process of the service.
    ///
    /// # Errors
    /// If it was not started.
    pub fn service_pid(&self) -> anyhow::Result<u32> {
        let service = self.service.as_ref().context("the service does not run")?;
        Ok(service.pid())
    }

    /// The process whose children are Postgres' backends.
    #[must_use]
    pub fn postgres_pid(&self) -> u32 {
        self.database.pid()
    }

    /// A folder for files of this run.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.scratch.folder(name)
    }
}

fn start_redis(machine: &Machine, scratch: &Scratch) -> anyhow::Result<(Running, String)> {
    let address = free_address()?;
    let port = address.rsplit(':').next().unwrap_or_default();
    let mut redis = Command::new(&machine.redis);
    redis.args(["--bind", "127.0.0.1", "--port", port]);
    redis.args(["--save", "", "--appendonly", "no"]);
    redis.args(["--maxmemory", "512mb", "--maxmemory-policy", "noeviction"]);
    redis.current_dir(scratch.path()).stdout(Stdio::null());
    let mut running = Running::start("redis", &mut redis, scratch.path(), Signal::SIGTERM)?;
    running.wait_until(START_TIME, || TcpStream::connect(&address).is_ok())?;
    Ok((running, format!("redis://{address}/0")))
}

/// An address that was free a moment ago.
///
/// # Errors
/// If there is none.
pub fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(format!("127.0.0.1:{}", listener.local_addr()?.port()))
}
