//! A claude-mem database read for an import: its rows as lines, each with an event id that stays
//! the same however often it is read (contract 20.4).
//!
//! The database is another program's, which may be running: it is opened for reading alone. What
//! its versions call their columns is found out by asking; what a version does not have yet is
//! absent.

mod lines;
mod tables;
#[cfg(test)]
mod versions_tests;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use cairn_wire::export::ExportLine;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::exit::Failure;
use lines::Names;
use tables::Table;

/// How every SQLite database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// How long another program may hold the database.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rows that are read at a time.
const PAGE: usize = 500;

/// Whether a file is an SQLite database.
///
/// # Errors
/// If it cannot be opened.
pub fn is_database(path: &Path) -> std::io::Result<bool> {
    let mut head = Vec::new();
    let limit = u64::try_from(MAGIC.len()).unwrap_or(u64::MAX);
    File::open(path)?.take(limit).read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

/// An open database.
pub struct Database {
    connection: Connection,
    /// A copy that is read in place of the original, if that could not be.
    _copy: Option<Copied>,
    /// What ids are derived from.
    pub id: Uuid,
    names: Names,
}

/// A folder of our own, gone with this value.
struct Copied(std::path::PathBuf);

impl Drop for Copied {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

impl Database {
    /// Opens a database; `map` gives keys of projects for names, by old name.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] for a file that is no claude-mem database.
    pub fn open(path: &Path, map: Vec<(String, String)>) -> Result<Self, Failure> {
        let (connection, copy) = match connect(path) {
            Ok(connection) => (connection, None),
            // A database in WAL mode cannot be read where nothing may be written beside it.
            Err(_) => {
                let copy = copied(path)?;
                let file = copy.0.join("copy.db");
                let connection = connect(&file).map_err(|e| unreadable(path, &e))?;
                (connection, Some(copy))
            }
        };
        let known = |name: &str| Table::of(&connection, name);
        let tables = [known("sdk_sessions"), known("observations")];
        let [sessions, observations] = tables.map(|table| table.map_err(|e| unreadable(path, &e)));
        let (sessions, observations) = (sessions?, observations?);
        if !observations.has("project") || sessions.session().is_none() {
            let why = format!("{} is no claude-mem database", path.display());
            return Err(Failure::Unreadable(why));
        }
        let id = identity(&connection, &sessions).map_err(|e| unreadable(path, &e))?;
        Ok(Self {
            connection,
            _copy: copy,
            id,
            names: Names::new(map),
        })
    }

    /// Gives every row as a line, sessions first, then what observations may rest on.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] for a table that cannot be read, and what `take` fails with.
    pub fn read(
        &self,
        mut take: impl FnMut(ExportLine) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for source in tables::SOURCES {
            let table = Table::of(&self.connection, source.table);
            let table = table.map_err(|e| failed(source.table, &e))?;
            let Some(statement) = (source.statement)(&table, &self.sessions()?) else {
                continue;
            };
            let mut after = 0;
            loop {
                let rows = tables::page(&self.connection, &statement, after, PAGE);
                let rows = rows.map_err(|e| failed(source.table, &e))?;
                let Some(last) = rows.last() else {
                    break;
                };
                after = last.id();
                for row in &rows {
                    let event_id = event_id(self.id, source.table, row.id());
                    if let Some(line) = (source.line)(row, &self.names, event_id) {
                        take(line)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn sessions(&self) -> Result<Table, Failure> {
        Table::of(&self.connection, "sdk_sessions").map_err(|e| failed("sdk_sessions", &e))
    }
}

/// The id of the event that a row stands for: of the same row always the same.
#[must_use]
pub fn event_id(database: Uuid, table: &str, row: i64) -> Uuid {
    let mut digest = Sha256::new();
    digest.update(database.as_bytes());
    digest.update(table.as_bytes());
    digest.update([0]);
    digest.update(row.to_be_bytes());
    uuid_of(digest)
}

fn uuid_of(digest: Sha256) -> Uuid {
    let whole: [u8; 32] = digest.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    Uuid::new_v8(half)
}

/// What tells a database from others: when it was made, which its first migration wrote down, or
/// else its first session.
fn identity(connection: &Connection, sessions: &Table) -> rusqlite::Result<Uuid> {
    let mut digest = Sha256::new();
    digest.update(b"claude-mem\0");
    let versions = Table::of(connection, "schema_versions")?;
    let ask = if versions.has("applied_at") {
        "select version || ' ' || applied_at from schema_versions order by version limit 1"
            .to_owned()
    } else {
        let name = sessions.session().unwrap_or("id");
        format!("select id || ' ' || {name} from sdk_sessions order by id limit 1")
    };
    let mark: Option<String> = match connection.query_row(&ask, [], |row| row.get(0)) {
        Ok(mark) => Some(mark),
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        Err(error) => return Err(error),
    };
    digest.update(mark.unwrap_or_default().as_bytes());
    Ok(uuid_of(digest))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "query_only", true)?;
    // Nothing in a schema that came from elsewhere is to run.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.query_row("select count(*) from sqlite_master", [], |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(connection)
}

/// Copies a database with what its log holds into a folder that nobody else can read.
fn copied(path: &Path) -> Result<Copied, Failure> {
    let folder = std::env::temp_dir().join(format!("cairn-import-{}", Uuid::now_v7()));
    let made = crate::files::make_private_dir(&folder);
    made.map_err(Failure::writing(&folder))?;
    let copy = Copied(folder);
    for ending in ["", "-wal"] {
        let mut from = path.as_os_str().to_owned();
        from.push(ending);
        let to = copy.0.join(format!("copy.db{ending}"));
        match std::fs::copy(&from, &to) {
            Ok(_) => {}
            Err(error) if !ending.is_empty() && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::Unreadable(format!("{}: {error}", path.display()))),
        }
    }
    Ok(copy)
}

fn unreadable(path: &Path, error: &rusqlite::Error) -> Failure {
    Failure::Unreadable(format!("{}: {error}", path.display()))
}

fn failed(table: &str, error: &rusqlite::Error) -> Failure {
    Failure::Unreadable(format!("table {table}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_id_and_no_other_has_it() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let id = event_id(one, "observations", 7);
        assert_eq!(id, event_id(one, "observations", 7));
        assert_eq!(id.get_version_num(), 8);
        for other in [
            event_id(two, "observations", 7),
            event_id(one, "user_prompts", 7),
            event_id(one, "observations", 8),
        ] {
            assert_ne!(id, other);
        }
    }
}
