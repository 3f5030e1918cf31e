//! The service as a process of its own, to be killed.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use cairn_store::test_util::{TestDb, shared_redis_url};

use super::{RING, TOKEN_RING};

/// A replica in a process.
pub struct Replica {
    child: Child,
    /// Where it listens.
    pub base: String,
    /// What it printed on its first start, if it is embedded.
    pub key: Option<String>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Replica {
    /// A replica over a test's database and the shared Redis.
    pub fn shared(db: &TestDb) -> Self {
        Self::over(&db.app_url)
    }

    /// A replica over the database at an address.
    pub fn over(database_url: &str) -> Self {
        Self::with_settings(database_url, &[])
    }

    /// A replica over the database at an address, with more in its environment.
    pub fn with_settings(database_url: &str, settings: &[(&str, &str)]) -> Self {
        let address = free_address();
        let mut command = shared(&address, database_url);
        command.envs(settings.iter().copied());
        Self::start(command, &address)
    }

    /// What a replica says that must not start over the database at an address.
    pub fn refusal(database_url: &str, settings: &[(&str, &str)]) -> String {
        let address = free_address();
        let mut command = shared(&address, database_url);
        let output = command.envs(settings.iter().copied()).output();
        let output = output.expect("cairn-server runs");
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A whole service in one process, its database in `data`. The first start on an empty
    /// folder prints a key.
    pub fn embedded(data: &Path) -> Self {
        let is_first = std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_none());
        let address = free_address();
        let mut command = command(&address);
        command
            .env("CAIRN_EMBEDDED", "true")
            .env("CAIRN_DATA", data);
        let mut replica = Self::start(command, &address);
        if is_first {
            let lines = BufReader::new(replica.child.stdout.take().expect("piped")).lines();
            let mut lines = lines.map_while(Result::ok);
            let key = lines.find(|line| line.trim_start().starts_with("cairn_"));
            replica.key = Some(key.expect("a first key").trim().to_owned());
        }
        replica
    }

    fn start(mut command: Command, address: &str) -> Self {
        let child = command.spawn().expect("cairn-server starts");
        let mut replica = Self {
            base: format!("http://{address}"),
            key: None,
            log: Arc::default(),
            child,
        };
        replica.wait_until_ready();
        replica
    }

    /// Reads the log until it says ready.
    fn wait_until_ready(&mut self) {
        let stderr = self.child.stderr.take().expect("piped");
        let mut lines = BufReader::new(stderr).lines();
        let log = Arc::clone(&self.log);
        let note = |line| log.lock().expect("whole").push(line);
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("\"ready\"") => break,
                Some(Ok(line)) => note(line),
                _ => panic!("the server ended: {}", self.log()),
            }
        }
        // The pipe must be read on, or a full one would stop the server.
        let log = Arc::clone(&self.log);
        let keep = move |line| log.lock().expect("whole").push(line);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(keep));
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("whole").join("\n")
    }

    /// SIGKILL, and wait until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }

    /// SIGTERM, and its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("waited for").code()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn-server"));
    command
        .env_remove("RUST_LOG")
        .env("CAIRN_LISTEN", address)
        .env("CAIRN_LOG", "info")
        .env("CAIRN_DRAIN_SECONDS", "4")
        // Tests that are about other things come faster than a person.
        .env("CAIRN_RATE_REQUESTS", "1000000000")
        .env("CAIRN_RATE_EVENTS", "1000000000")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A replica over the shared Redis.
fn shared(address: &str, database_url: &str) -> Command {
    let mut command = command(address);
    command
        .env("CAIRN_EMBEDDED", "false")
        .env("CAIRN_DATABASE_URL", database_url)
        .env("CAIRN_REDIS_URL", shared_redis_url())
        .env("CAIRN_CURSOR_KEYS", RING)
        .env("CAIRN_TOKEN_KEYS", TOKEN_RING)
        .env("CAIRN_PUBLIC_URL", format!("http://{address}"));
    command
}

/// An address that was free a moment ago.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").to_string()
}
