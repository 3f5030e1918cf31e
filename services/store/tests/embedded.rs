//! The private Postgres with its real programs: it keeps what it acknowledged when everything is
//! killed, ends with its owner, and shares its folder with nobody.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cairn_store::embedded::{EmbeddedError, EmbeddedOptions, EmbeddedPostgres, find_running};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;

/// Set for the child in which a test of this file plays the server that gets killed.
const SERVER_OF: &str = "CAIRN_TEST_SERVER_OF";

/// A folder that the database's user may enter also when root runs the tests.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let open = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(folder.path(), open).expect("opened");
    folder
}

fn options(data: &Path) -> EmbeddedOptions {
    let named = std::env::var_os("CAIRN_PG_BIN").filter(|value| !value.is_empty());
    EmbeddedOptions {
        data: data.to_owned(),
        programs: named.map(PathBuf::from),
        search_path: std::env::var_os("PATH").unwrap_or_default(),
    }
}

async fn start(data: &Path) -> EmbeddedPostgres {
    EmbeddedPostgres::start(options(data))
        .await
        .expect("Postgres starts")
}

async fn count(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    sqlx::query_scalar("select count(*) from written")
        .fetch_one(&mut connection)
        .await
        .expect("counted")
}

async fn write_one(url: &str, sql: &'static str) {
    let mut connection = PgConnection::connect(url).await.expect("connected");
    connection.execute(sql).await.expect("written");
}

/// Plays the server when run as such a child, else tests what that server does: what is written
/// before a stop is there after the next start, and settings that lose data are off.
#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    if let Ok(data) = std::env::var(SERVER_OF) {
        let server = start(Path::new(&data)).await;
        writeln!(std::io::stdout(), "\nat {}", server.superuser_url()).expect("told");
        server.ended().await;
        return;
    }
    let data = folder();
    let server = start(data.path()).await;
    let url = server.superuser_url();
    write_one(&url, "create table written as select 1").await;
    let mut connection = PgConnection::connect(&url).await.expect("connected");
    for (setting, expected) in [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("data_checksums", "on"),
        ("listen_addresses", ""),
        ("server_encoding", "UTF8"),
    ] {
        let value: String = sqlx::query_scalar("select current_setting($1)")
            .bind(setting)
            .fetch_one(&mut connection)
            .await
            .expect("a setting");
        assert_eq!(value, expected, "{setting}");
    }
    server.stop().await;
    assert!(PgConnection::connect(&url).await.is_err(), "stopped");
    let server = start(data.path()).await;
    assert_eq!(count(&server.superuser_url()).await, 1);
    server.stop().await;
}

#[tokio::test]
async fn programs_that_are_named_count_before_those_of_the_machine() {
    let data = folder();
    let empty = folder();
    let named = EmbeddedOptions {
        programs: Some(empty.path().to_owned()),
        ..options(data.path())
    };
    // Whatever the machine has, a folder that was named and holds nothing is no reason to take it.
    match EmbeddedPostgres::start(named).await.err() {
        Some(EmbeddedError::NoPostgres(why)) => {
            assert!(why.contains(&empty.path().display().to_string()), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_app_role_reaches_the_same_database() {
    let data = folder();
    let server = start(data.path()).await;
    write_one(&server.superuser_url(), "create role cairn_app login").await;
    let mut connection = PgConnection::connect(&server.app_url())
        .await
        .expect("connected");
    let who: (String, String) =
        sqlx::query_as("select current_user::text, current_database()::text")
            .fetch_one(&mut connection)
            .await
            .expect("a row");
    assert_eq!(who, ("cairn_app".to_owned(), "cairn".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_running_server_is_found_by_its_folder() {
    let data = folder();
    let find = || find_running(data.path()).expect("readable");
    assert_eq!(find(), None, "nothing there yet");
    let server = start(data.path()).await;
    assert_eq!(find(), Some(server.app_url()));
    server.stop().await;
    assert_eq!(find(), None, "stopped");
}

#[tokio::test]
async fn a_second_server_is_kept_away_while_the_first_runs() {
    let data = folder();
    let first = start(data.path()).await;
    write_one(&first.superuser_url(), "create table written as select 1").await;
    let second = EmbeddedPostgres::start(options(data.path())).await;
    assert!(matches!(second, Err(EmbeddedError::InUse(_))));
    assert_eq!(
        count(&first.superuser_url()).await,
        1,
        "the first was not disturbed"
    );
    first.stop().await;
    start(data.path()).await.stop().await;
}

#[tokio::test]
async fn data_of_another_version_are_refused_and_left_alone() {
    let data = folder();
    start(data.path()).await.stop().await;
    let version = data.path().join("postgres/PG_VERSION");
    std::fs::write(&version, "9\n").expect("written");
    let refused = EmbeddedPostgres::start(options(data.path())).await;
    let text = refused.err().expect("refused").to_string();
    assert!(text.contains("belong to PostgreSQL 9"), "{text}");
    assert!(text.contains("postgresql-9"), "{text}");
    assert_eq!(std::fs::read_to_string(version).expect("read"), "9\n");
}

#[tokio::test]
async fn a_note_of_a_process_that_is_another_by_now_stops_nobody() {
    let data = folder();
    start(data.path()).await.stop().await;
    let note = data.path().join("postgres/postmaster.pid");
    let folder = data.path().join("postgres");
    // Our own number: alive, of the same user where the tests are not root's, and no Postgres.
    let words = format!("{}\n{}\n", std::process::id(), folder.display());
    std::fs::write(&note, words).expect("written");
    start(data.path()).await.stop().await;
}

#[tokio::test]
async fn a_half_made_database_is_made_anew() {
    let data = folder();
    let unfinished = data.path().join("postgres.new/base");
    std::fs::create_dir_all(&unfinished).expect("made");
    std::fs::write(unfinished.join("rest"), "of an interrupted start").expect("written");
    start(data.path()).await.stop().await;
    assert!(!data.path().join("postgres.new").exists());
}

#[tokio::test]
async fn a_data_folder_too_deep_for_a_socket_works() {
    let root = folder();
    let mut data = root.path().to_owned();
    for _ in 0..6 {
        data.push("a folder with a long and odd name &=?ü");
        std::fs::create_dir(&data).expect("made");
    }
    let server = start(&data).await;
    write_one(&server.superuser_url(), "create table written as select 1").await;
    assert_eq!(count(&server.superuser_url()).await, 1);
    let url = server.superuser_url();
    let (_, socket) = url.split_once("?host=").expect("a socket");
    let socket = Path::new(socket);
    assert!(socket.is_dir() && !socket.starts_with(root.path()), "{url}");
    server.stop().await;
    assert!(!socket.exists(), "nothing is left outside the data folder");
}

/// A server in a process of its own.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "what_was_written_is_there_after_a_restart",
                "--exact",
                "--nocapture",
            ])
            .env(SERVER_OF, data)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let url = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("at ").map(str::to_owned))
            .expect("the server starts");
        Self { process, url }
    }

    fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
    }
}

/// The postmaster of a data folder.
fn postmaster(data: &Path) -> Pid {
    let text = std::fs::read_to_string(data.join("postgres/postmaster.pid")).expect("running");
    let pid = text.lines().next().expect("a line").trim().parse();
    Pid::from_raw(pid.expect("a process id"))
}

/// The processes that a process has started.
fn children(parent: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
        let stat = stat.unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(1) == Some(&parent.to_string())
    })
    .map(Pid::from_raw)
    .collect()
}

/// Writes rows of `writer` until the server is gone, and returns the last acknowledged number.
async fn write_until_it_dies(url: String, writer: i32, written: Arc<AtomicUsize>) -> i32 {
    let mut connection = PgConnection::connect(&url).await.expect("connected");
    for number in 1.. {
        let row = sqlx::query("insert into written values ($1, $2)")
            .bind(writer)
            .bind(number);
        if row.execute(&mut connection).await.is_err() {
            return number - 1;
        }
        written.fetch_add(1, Ordering::Relaxed);
    }
    unreachable!("the server is killed before the numbers end")
}

#[tokio::test]
async fn every_acknowledged_row_survives_the_death_of_everything() {
    let data = folder();
    let mut acknowledged = [0; 6];
    for round in 1..=2 {
        let mut server = Server::start(data.path());
        if round == 1 {
            write_one(&server.url, "create table written (writer int, number int)").await;
        } else {
            write_one(&server.url, "truncate written").await;
        }
        let written = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..6)
            .map(|writer| write_until_it_dies(server.url.clone(), writer, written.clone()))
            .map(tokio::spawn)
            .collect();
        let deadline = Instant::now() + Duration::from_secs(60);
        while written.load(Ordering::Relaxed) < 500 {
            assert!(
                Instant::now() < deadline,
                "500 rows take less than a minute"
            );
            tokio::task::yield_now().await;
        }
        let postmaster = postmaster(data.path());
        let workers = children(postmaster);
        assert!(workers.len() > 6, "writers and helpers: {workers:?}");
        server.kill();
        for pid in [postmaster].into_iter().chain(workers) {
            // The signal of the server's death may have ended some already.
            let _ = kill(pid, Signal::SIGKILL);
        }
        for (writer, last) in writers.into_iter().enumerate() {
            acknowledged[writer] = last.await.expect("no panic");
        }
        let server = start(data.path()).await;
        let mut connection = PgConnection::connect(&server.superuser_url())
            .await
            .expect("back");
        let rows: Vec<(i32, i64, i32)> = sqlx::query_as(
            "select writer, count(distinct number), max(number) from written
             group by writer order by writer",
        )
        .fetch_all(&mut connection)
        .await
        .expect("rows");
        for (writer, (_, distinct, last)) in rows.iter().enumerate() {
            // One more than acknowledged may have reached the disk before its answer got lost.
            let first_lost = i64::from(*last) != *distinct;
            assert!(
                !first_lost && *last >= acknowledged[writer],
                "{rows:?} {acknowledged:?}"
            );
        }
        assert_eq!(rows.len(), 6);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_killed_server_takes_its_postgres_along_and_the_next_one_starts_at_once() {
    let data = folder();
    let mut server = Server::start(data.path());
    write_one(&server.url, "create table written as select 1").await;
    let old = postmaster(data.path());
    server.kill();
    let next = start(data.path()).await;
    assert_ne!(postmaster(data.path()), old);
    assert_eq!(count(&next.superuser_url()).await, 1);
    next.stop().await;
}

#[tokio::test]
async fn postgres_ends_by_itself_when_its_server_is_killed() {
    let data = folder();
    let mut server = Server::start(data.path());
    let postmaster = postmaster(data.path());
    server.kill();
    let deadline = Instant::now() + Duration::from_secs(30);
    while kill(postmaster, None).is_ok() && !is_zombie(postmaster) {
        assert!(Instant::now() < deadline, "it still runs");
        tokio::task::yield_now().await;
    }
    let log = std::fs::read_to_string(data.path().join("postgres.log")).expect("a log");
    assert!(log.contains("database system is shut down"), "{log}");
}

/// Ended, but nobody has asked how: so it stays where no init process does.
fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_death_of_postgres_alone_is_noticed() {
    let data = folder();
    let server = start(data.path()).await;
    kill(postmaster(data.path()), Signal::SIGINT).expect("signalled");
    let noticed = tokio::time::timeout(Duration::from_secs(30), server.ended()).await;
    assert!(noticed.is_ok());
}
