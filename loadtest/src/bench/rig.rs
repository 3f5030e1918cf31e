//! The rig: a Postgres and a Redis of its own, and one replica of the service over them, all in
//! a scratch folder and gone at the end.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::Signal;
use nix::unistd::User;

use super::Machine;
use crate::process::{Running, Scratch, output_of};
use crate::service::clean_environment;

/// What a part of the rig may take to start.
const START_TIME: Duration = Duration::from_secs(60);
/// The service's connections to Postgres: its default.
const POOL: &str = "10";
/// A ring of one key; nothing outlives the rig.
const CURSOR_KEYS: &str = "bench:Y2Fpcm4tYmVuY2gtY3Vyc29yLWtleS0zMi1ieXRlcyE=";

/// What Postgres runs with, on top of its defaults. Commits wait for the disk, as they must in
/// use. Statements can be logged in a form that a program can read.
const POSTGRES_CONF: &str = "
listen_addresses = ''
max_connections = 100
shared_buffers = 512MB
max_wal_size = 4GB
random_page_cost = 1.1
jit = off
logging_collector = on
log_destination = 'jsonlog'
log_filename = 'postgres.log'
log_rotation_age = 0
log_rotation_size = 0
log_file_mode = 0644
";

/// The running rig. Its parts stop in the order in which they stand here.
pub struct Rig {
    /// The service's address.
    pub url: String,
    server: PathBuf,
    environment: Vec<(&'static str, String)>,
    data: PathBuf,
    socket: PathBuf,
    postgres_bin: PathBuf,
    _service: Running,
    _redis: Running,
    _postgres: Running,
    scratch: Scratch,
}

impl Rig {
    /// Starts everything and prepares the database.
    ///
    /// # Errors
    /// If a part does not start.
    pub fn start(machine: &Machine, server: PathBuf) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let user = machine.run_as.as_deref().map(find_user).transpose()?;
        let socket = owned_folder(&scratch, "socket", user.as_ref())?;
        let data = owned_folder(&scratch, "postgres", user.as_ref())?;
        let postgres = start_postgres(machine, &scratch, &data, &socket, user.as_ref())?;
        prepare_database(machine, &socket)?;
        let (redis, redis_url) = start_redis(machine, &scratch)?;
        let listen = format!("127.0.0.1:{}", free_port()?);
        let url = format!("http://{listen}");
        let environment = vec![
            ("CAIRN_EMBEDDED", "false".to_owned()),
            ("CAIRN_DATABASE_URL", database_url("cairn_app", &socket)),
            ("CAIRN_REDIS_URL", redis_url),
            ("CAIRN_CURSOR_KEYS", CURSOR_KEYS.to_owned()),
            ("CAIRN_PUBLIC_URL", url.clone()),
            ("CAIRN_LISTEN", listen.clone()),
            (
                "CAIRN_METRICS_LISTEN",
                format!("127.0.0.1:{}", free_port()?),
            ),
            ("CAIRN_DB_POOL", POOL.to_owned()),
            ("CAIRN_DRAIN_SECONDS", "1".to_owned()),
            ("CAIRN_LOG", "warn".to_owned()),
        ];
        let command = |word: &str| command(&server, word, &environment, &scratch);
        let as_superuser = database_url("postgres", &socket);
        output_of(command("migrate").env("CAIRN_DATABASE_URL", as_superuser))?;
        let mut serve = command("serve");
        serve.stdout(Stdio::null());
        let mut service =
            Running::start("cairn-server", &mut serve, scratch.path(), Signal::SIGTERM)?;
        service.wait_until(START_TIME, || TcpStream::connect(&listen).is_ok())?;
        Ok(Self {
            url,
            server,
            environment,
            data,
            socket,
            postgres_bin: machine.postgres_bin.clone(),
            _service: service,
            _redis: redis,
            _postgres: postgres,
            scratch,
        })
    }

    /// Makes a tenant; answers its owner's key.
    ///
    /// # Errors
    /// If the service's program refuses.
    pub fn create_tenant(&self, name: &str) -> anyhow::Result<String> {
        let mut admin = command(&self.server, "admin", &self.environment, &self.scratch);
        admin.args(["tenant", "create", name, "--owner", "bench"]);
        Ok(output_of(&mut admin)?.trim().to_owned())
    }

    /// Runs a statement as the superuser.
    ///
    /// # Errors
    /// If Postgres refuses it.
    pub fn psql(&self, statement: &str) -> anyhow::Result<String> {
        let mut psql = self.postgres_program("psql", "postgres");
        output_of(psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement]))
    }

    /// A program of Postgres', connected to the database as a role.
    #[must_use]
    pub fn postgres_program(&self, name: &str, role: &str) -> Command {
        let mut command = Command::new(program(&self.postgres_bin, name));
        command
            .env("PGHOST", &self.socket)
            .env("PGUSER", role)
            .env("PGDATABASE", "cairn");
        command
    }

    /// What Postgres has logged so far.
    ///
    /// # Errors
    /// If its log cannot be read.
    pub fn postgres_log(&self) -> anyhow::Result<String> {
        let path = self.data.join("log/postgres.json");
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// An address that was free a moment ago.
    ///
    /// # Errors
    /// If there is none.
    pub fn free_address() -> anyhow::Result<String> {
        Ok(format!("127.0.0.1:{}", free_port()?))
    }

    /// A folder for files of this run.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.scratch.folder(name)
    }
}

fn command(
    server: &Path,
    word: &str,
    environment: &[(&'static str, String)],
    scratch: &Scratch,
) -> Command {
    let mut command = Command::new(server);
    clean_environment(&mut command, scratch.path());
    command.arg(word).current_dir(scratch.path());
    command.envs(environment.iter().map(|(name, value)| (*name, value)));
    command
}

fn find_user(name: &str) -> anyhow::Result<User> {
    User::from_name(name)?.with_context(|| format!("there is no user {name:?}"))
}

fn owned_folder(scratch: &Scratch, name: &str, user: Option<&User>) -> anyhow::Result<PathBuf> {
    let path = scratch.folder(name)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    if let Some(user) = user {
        chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    Ok(path)
}

/// A fetched Postgres may lack a program that the machine has.
fn program(bin: &Path, name: &str) -> PathBuf {
    let path = bin.join(name);
    if path.is_file() {
        path
    } else {
        PathBuf::from(name)
    }
}

fn start_postgres(
    machine: &Machine,
    scratch: &Scratch,
    data: &Path,
    socket: &Path,
    user: Option<&User>,
) -> anyhow::Result<Running> {
    let program = |name: &str| {
        let mut command = Command::new(program(&machine.postgres_bin, name));
        if let Some(user) = user {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command.current_dir(data);
        command
    };
    let mut initdb = program("initdb");
    initdb
        .arg("-D")
        .arg(data)
        .args(["-U", "postgres", "--auth=trust", "--encoding=UTF8"]);
    output_of(initdb.args(["--locale=C", "--no-sync"]))?;
    let mut conf = OpenOptions::new()
        .append(true)
        .open(data.join("postgresql.conf"))?;
    conf.write_all(POSTGRES_CONF.as_bytes())
        .context("writing postgresql.conf")?;
    let mut postgres = program("postgres");
    postgres
        .arg("-D")
        .arg(data)
        .arg("-k")
        .arg(socket)
        .stdout(Stdio::null());
    let mut running = Running::start("postgres", &mut postgres, scratch.path(), Signal::SIGINT)?;
    let pid_file = data.join("postmaster.pid");
    running.wait_until(START_TIME, || {
        let text = fs::read_to_string(&pid_file).unwrap_or_default();
        text.lines()
            .nth(7)
            .is_some_and(|state| state.trim() == "ready")
    })?;
    Ok(running)
}

fn prepare_database(machine: &Machine, socket: &Path) -> anyhow::Result<()> {
    let psql = |database: &str| {
        let mut psql = Command::new(program(&machine.postgres_bin, "psql"));
        psql.env("PGHOST", socket)
            .env("PGUSER", "postgres")
            .env("PGDATABASE", database);
        psql.args(["-Xq", "-v", "ON_ERROR_STOP=1"]);
        psql
    };
    output_of(psql("postgres").args(["-c", "create database cairn"]))?;
    output_of(psql("cairn").arg("-f").arg(&machine.roles))?;
    Ok(())
}

fn start_redis(machine: &Machine, scratch: &Scratch) -> anyhow::Result<(Running, String)> {
    let port = free_port()?.to_string();
    let mut redis = Command::new(&machine.redis);
    redis.args([
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--save",
        "",
        "--appendonly",
        "no",
    ]);
    redis.args(["--maxmemory", "512mb", "--maxmemory-policy", "noeviction"]);
    redis.current_dir(scratch.path()).stdout(Stdio::null());
    let mut running = Running::start("redis", &mut redis, scratch.path(), Signal::SIGTERM)?;
    let address = format!("127.0.0.1:{port}");
    running.wait_until(START_TIME, || TcpStream::connect(&address).is_ok())?;
    Ok((running, format!("redis://{address}/0")))
}

fn database_url(role: &str, socket: &Path) -> String {
    format!(
        "postgres://{role}@localhost/cairn?host={}",
        socket.display()
    )
}

/// A port that was free a moment ago.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}
