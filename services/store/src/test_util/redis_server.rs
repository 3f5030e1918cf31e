//! Real Redis servers for tests: the shared one, and private ones that a test may stop.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The address of the Redis that all tests share.
///
/// # Panics
/// If `CAIRN_TEST_REDIS_URL` is not set.
#[must_use]
pub fn shared_url() -> String {
    variable("CAIRN_TEST_REDIS_URL")
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where Redis is by their runner"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run ./dev test"))
}

/// A Redis of one test. Dies with it.
pub struct PrivateRedis {
    folder: TempDir,
    child: Child,
}

impl PrivateRedis {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    /// If it cannot be started; so do the other calls.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let child = spawn(&folder);
        let redis = Self { folder, child };
        redis.await_answer();
        redis
    }

    /// Where it listens: a socket, so that a restart finds the same place free.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+unix://{}/redis.sock", self.folder.path().display())
    }

    /// Every key and every value that it holds, as text.
    ///
    /// # Panics
    /// If it does not answer.
    #[must_use]
    pub fn dump(&self) -> String {
        let client = redis::Client::open(self.url()).expect("an address");
        let mut link = client.get_connection().expect("a connection");
        let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut link).expect("keys");
        let mut text = String::new();
        for key in keys {
            // A dump holds the value whatever its type, long ones compressed: those are read too.
            let dumped: Vec<u8> = redis::cmd("DUMP")
                .arg(&key)
                .query(&mut link)
                .expect("a value");
            let value: Vec<u8> = redis::cmd("GET")
                .arg(&key)
                .query(&mut link)
                .unwrap_or_default();
            for part in [&key, &dumped, &value] {
                text.push_str(&String::from_utf8_lossy(part));
                text.push('\n');
            }
        }
        text
    }

    /// Keys that it holds.
    #[must_use]
    pub fn keys(&self) -> usize {
        let client = redis::Client::open(self.url()).expect("an address");
        let mut link = client.get_connection().expect("a connection");
        redis::cmd("DBSIZE").query(&mut link).expect("a number")
    }

    /// Stops it from answering without ending it.
    pub fn pause(&self) {
        signal(&self.child, Signal::SIGSTOP);
    }

    /// Undoes `pause`.
    pub fn resume(&self) {
        signal(&self.child, Signal::SIGCONT);
    }

    /// Ends it at once, paused or not; what it held is lost.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Starts it anew after `kill`, at the same place.
    pub fn restart(&mut self) {
        self.child = spawn(&self.folder);
        self.await_answer();
    }

    fn await_answer(&self) {
        let client = redis::Client::open(self.url()).expect("an address");
        let started = std::time::Instant::now();
        loop {
            let answer = client
                .get_connection()
                .and_then(|mut c| redis::cmd("PING").exec(&mut c));
            match answer {
                Ok(()) => return,
                Err(error) if started.elapsed().as_secs() > 30 => panic!("no Redis: {error}"),
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &TempDir) -> Child {
    start_server(folder, &["--port", "0", "--unixsocket", "redis.sock"])
}

/// Sends a signal to a server.
pub(super) fn signal(server: &Child, signal: Signal) {
    let pid = i32::try_from(server.id()).expect("a process id");
    kill(Pid::from_raw(pid), signal).expect("signalled");
}

/// Starts a server that keeps nothing, with a folder for its files.
pub(super) fn start_server(folder: &TempDir, settings: &[&str]) -> Child {
    Command::new(variable("CAIRN_TEST_REDIS_SERVER"))
        .args(["--save", "", "--dir"])
        .arg(folder.path())
        .args(settings)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server starts")
}
