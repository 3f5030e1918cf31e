//! The rig's Postgres: in a folder of its own, reached over a socket that only its user may enter.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use nix::sys::signal::Signal;
use nix::unistd::User;

use super::START_TIME;
use crate::bench::Machine;
use crate::process::{Running, Scratch, output_of};

/// What Postgres runs with, on top of its defaults. Commits wait for the disk, as they must in
/// use. Statements can be logged in a form that a program can read.
pub const POSTGRES_CONF: &str = "
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
/// Its log, in the folder of its data.
const LOG: &str = "log/postgres.json";

/// A running Postgres.
pub struct Database {
    data: PathBuf,
    socket: PathBuf,
    bin: PathBuf,
    running: Running,
}

impl Database {
    /// Starts it over a folder, which is filled if it is empty. `settings` are of this run alone.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(
        machine: &Machine,
        scratch: &Scratch,
        data: &Path,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let user = machine.run_as.as_deref().map(find_user).transpose()?;
        let socket = scratch.folder("socket")?;
        for folder in [data, &socket] {
            own(folder, user.as_ref())?;
        }
        let program = |name: &str| {
            let mut command = Command::new(program(&machine.postgres_bin, name));
            if let Some(user) = &user {
                command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
            }
            command.current_dir(data);
            command
        };
        if !data.join("PG_VERSION").is_file() {
            fill(&mut program("initdb"), data)?;
        }
        // What an earlier run over the same folder logged is none of this one's.
        let _ = fs::remove_file(data.join(LOG));
        let mut postgres = program("postgres");
        postgres.arg("-D").arg(data).arg("-k").arg(&socket);
        for (name, value) in settings {
            postgres.arg("-c").arg(format!("{name}={value}"));
        }
        postgres.stdout(Stdio::null());
        let mut running =
            Running::start("postgres", &mut postgres, scratch.path(), Signal::SIGINT)?;
        let pid_file = data.join("postmaster.pid");
        running.wait_until(START_TIME, || {
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            text.lines()
                .nth(7)
                .is_some_and(|state| state.trim() == "ready")
        })?;
        Ok(Self {
            data: data.to_owned(),
            socket,
            bin: machine.postgres_bin.clone(),
            running,
        })
    }

    /// Makes Cairn's database and its roles, if they are not there.
    ///
    /// # Errors
    /// If Postgres refuses.
    pub fn prepare(&self, roles: &Path) -> anyhow::Result<()> {
        let mut look = self.client("psql", "postgres", "postgres");
        look.args(["-XqAt", "-c", "select datname from pg_database"]);
        if output_of(&mut look)?.lines().any(|name| name == "cairn") {
            return Ok(());
        }
        let strict = ["-Xq", "-v", "ON_ERROR_STOP=1"];
        let mut create = self.client("psql", "postgres", "postgres");
        output_of(create.args(strict).args(["-c", "create database cairn"]))?;
        output_of(
            self.program("psql", "postgres")
                .args(strict)
                .arg("-f")
                .arg(roles),
        )?;
        Ok(())
    }

    /// Runs a statement as the superuser.
    ///
    /// # Errors
    /// If Postgres refuses it.
    pub fn psql(&self, statement: &str) -> anyhow::Result<String> {
        let mut psql = self.program("psql", "postgres");
        output_of(psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement]))
    }

    /// A program of Postgres', connected to Cairn's database as a role.
    #[must_use]
    pub fn program(&self, name: &str, role: &str) -> Command {
        self.client(name, role, "cairn")
    }

    fn client(&self, name: &str, role: &str, database: &str) -> Command {
        let mut command = Command::new(program(&self.bin, name));
        command
            .env("PGHOST", &self.socket)
            .env("PGUSER", role)
            .env("PGDATABASE", database);
        command
    }

    /// The address of Cairn's database for a role.
    #[must_use]
    pub fn url(&self, role: &str) -> String {
        let socket = self.socket.display();
        format!("postgres://{role}@localhost/cairn?host={socket}")
    }

    /// What it has logged since it was started.
    ///
    /// # Errors
    /// If its log cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        let path = self.data.join(LOG);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// The process whose children are its backends.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}

fn find_user(name: &str) -> anyhow::Result<User> {
    User::from_name(name)?.with_context(|| format!("there is no user {name:?}"))
}

/// Makes a folder, if it is not there, that nobody but its owner enters.
fn own(folder: &Path, user: Option<&User>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    if let Some(user) = user {
        chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    Ok(())
}

fn fill(initdb: &mut Command, data: &Path) -> anyhow::Result<()> {
    initdb
        .arg("-D")
        .arg(data)
        .args(["-U", "postgres", "--auth=trust", "--encoding=UTF8"]);
    output_of(initdb.args(["--locale=C", "--no-sync"]))?;
    let conf = data.join("postgresql.conf");
    let mut conf = OpenOptions::new().append(true).open(conf)?;
    conf.write_all(POSTGRES_CONF.as_bytes())
        .context("writing postgresql.conf")
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
