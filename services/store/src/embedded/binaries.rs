//! Which Postgres to run: the search for its programs, and the versions that may be used.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{EmbeddedError, EmbeddedOptions};

/// The oldest major version that the migrations are tested with.
const OLDEST_MAJOR: u32 = 15;

/// The programs of one Postgres.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// Makes a cluster.
    pub(super) initdb: PathBuf,
    /// The server.
    pub(super) postgres: PathBuf,
    major: u32,
}

/// Finds the Postgres for a database folder, which may not exist yet: the one that the options
/// name, else of those found the first whose version fits the data.
pub(super) async fn find(
    folder: &Path,
    options: &EmbeddedOptions,
) -> Result<Programs, EmbeddedError> {
    let data = data_major(folder);
    if let Some(named) = &options.programs {
        let programs = programs_in(named).await.ok_or_else(|| {
            let named = named.display();
            EmbeddedError::NoPostgres(format!(
                "CAIRN_PG_BIN={named} holds no initdb and postgres that run"
            ))
        })?;
        return check(programs, data, folder);
    }
    let mut seen = Vec::new();
    for candidate in candidates(&options.search_path) {
        if let Some(programs) = programs_in(&candidate).await {
            if fits(programs.major, data) {
                return Ok(programs);
            }
            seen.push(programs);
        }
    }
    match (seen.into_iter().next(), data) {
        (Some(programs), _) => check(programs, data, folder),
        (None, data) => Err(EmbeddedError::NoPostgres(missing(data))),
    }
}

fn fits(major: u32, data: Option<u32>) -> bool {
    major >= OLDEST_MAJOR && data.is_none_or(|data| data == major)
}

fn check(programs: Programs, data: Option<u32>, folder: &Path) -> Result<Programs, EmbeddedError> {
    let major = programs.major;
    match data {
        _ if fits(major, data) => Ok(programs),
        Some(data) if data != major => Err(EmbeddedError::Refused(format!(
            "the data in {} belong to PostgreSQL {data}, but this is PostgreSQL {major} \
             ({}). Data are never upgraded unasked. {}",
            folder.display(),
            programs.postgres.display(),
            missing(Some(data)),
        ))),
        _ => Err(EmbeddedError::NoPostgres(format!(
            "PostgreSQL {major} is too old. {}",
            missing(None)
        ))),
    }
}

fn missing(data: Option<u32>) -> String {
    let (what, package) = match data {
        Some(major) => (
            format!("PostgreSQL {major} is needed"),
            format!("postgresql-{major}"),
        ),
        None => (
            format!("PostgreSQL {OLDEST_MAJOR} or newer is needed"),
            "postgresql".to_owned(),
        ),
    };
    format!(
        "{what}. Install it, for example with\n    \
         sudo apt-get install --no-install-recommends {package}\n\
         or name the folder of its programs in CAIRN_PG_BIN, \
         or give a server of your own in CAIRN_DATABASE_URL."
    )
}

/// The major version that made the data; `None` if there are none yet.
fn data_major(folder: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join("PG_VERSION")).ok()?;
    text.trim().parse().ok()
}

/// Folders that may hold the programs: of the search path, then of distributions, newest first.
fn candidates(search_path: &OsStr) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::split_paths(search_path)
        // Distributions link single programs; their siblings stand beside the real file.
        .filter_map(|folder| folder.join("postgres").canonicalize().ok())
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect();
    folders.extend(versioned("/usr/lib/postgresql", "", "bin"));
    folders.extend(versioned("/usr", "pgsql-", "bin"));
    folders
}

/// `<parent>/<prefix><major>/<below>` of every major version there, newest first.
fn versioned(parent: &str, prefix: &str, below: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let major = name.strip_prefix(prefix)?.parse().ok()?;
            Some((major, entry.path().join(below)))
        })
        .collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

async fn programs_in(folder: &Path) -> Option<Programs> {
    let (initdb, postgres) = (folder.join("initdb"), folder.join("postgres"));
    if !initdb.is_file() {
        return None;
    }
    let output = Command::new(&postgres)
        .arg("--version")
        .output()
        .await
        .ok()?;
    let major = parse_major(&String::from_utf8_lossy(&output.stdout))?;
    Some(Programs {
        initdb,
        postgres,
        major,
    })
}

/// The major version in `postgres (PostgreSQL) 18.4 …` or `… 19beta1`.
fn parse_major(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("(PostgreSQL) ")?;
    let end = version.find(|c: char| !c.is_ascii_digit())?;
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_postgres_says() {
        for (text, major) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
                Some(15),
            ),
            ("postgres (PostgreSQL) 18.4\n", Some(18)),
            ("postgres (PostgreSQL) 19beta1\n", Some(19)),
            ("something else 15.1", None),
            ("", None),
        ] {
            assert_eq!(parse_major(text), major, "{text:?}");
        }
    }

    #[test]
    fn versions_that_are_old_or_differ_from_the_data_do_not_fit() {
        assert!(fits(15, None) && fits(18, None) && fits(16, Some(16)));
        assert!(!fits(14, None) && !fits(14, Some(14)) && !fits(18, Some(15)));
    }

    #[test]
    fn what_to_install_is_said_in_one_line_to_copy() {
        let text = missing(Some(16));
        let line = "    sudo apt-get install --no-install-recommends postgresql-16";
        assert!(text.lines().any(|l| l == line), "{text}");
    }
}
